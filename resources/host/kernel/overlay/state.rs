//! The nodes of an overlay: the known state of the host, with the changes on top.
//!
//! This file makes no system calls. An operation that needs an unknown fact of the host stops with that
//! [`Fact`] and has changed nothing; the caller reads the fact and starts the operation again.

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};

/// The number of a node.
pub(super) type Ino = u64;

/// A name in a directory.
pub(super) type Place = (Ino, Vec<u8>);

/// Extended attributes by name.
pub(super) type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// The number of the root.
pub(super) const ROOT: Ino = 0;

/// The first number of new inodes, larger than any inode number of a file system.
const FIRST_NEW: u64 = 1 << 62;

/// A fact of the host that an operation needs. Paths are those on the host.
#[derive(Debug)]
pub(super) enum Fact {
    Entry { directory: Ino, name: Vec<u8>, path: Vec<u8> },
    Names { directory: Ino, path: Vec<u8> },
    Content { node: Ino, path: Vec<u8> },
    Attributes { node: Ino, path: Vec<u8> },
}

/// The reason that an operation did not finish.
#[derive(Debug)]
pub(super) enum Stop {
    Failed(Errno),
    Missing(Fact),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

pub(super) type Result<T> = std::result::Result<T, Stop>;

/// The entry of a name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Gone,
    There(Ino),
    /// The host has an object there that was not examined yet.
    OnHost,
}

#[derive(Debug)]
pub(super) enum What {
    /// A regular file; without content, the content is that of the host.
    File(Option<Vec<u8>>),
    /// A directory; once listed, its names are complete.
    Directory {
        entries: BTreeMap<Vec<u8>, Entry>,
        is_listed: bool,
    },
    Link(Vec<u8>),
    Other,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) what: What,
    pub(super) stat: Stat,
    /// The path on the host; none for a node made in the overlay.
    pub(super) host: Option<Vec<u8>>,
    /// The extended attributes; none if they are those of the host.
    pub(super) attributes: Option<Attributes>,
    /// The parent directory, for a directory.
    pub(super) above: Ino,
    /// The node was made without a name and may get one.
    pub(super) is_unborn: bool,
    /// The node may differ from the host.
    pub(super) is_changed: bool,
}

/// An open file.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) ino: Ino,
    pub(super) at: usize,
    pub(super) only_path: bool,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// The limits of an overlay.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The limit of content in bytes.
    pub bytes: u64,
    /// The limit of changed files, directories and links. The same number of unchanged ones is stored, or twice
    /// as many as must stay.
    pub nodes: u64,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) nodes: BTreeMap<Ino, Node>,
    next: Ino,
    /// The nodes of the host by device and inode, because an object may have several names.
    pub(super) known: HashMap<(u64, u64), Ino>,
    pub(super) open: HashMap<i32, Open>,
    /// The nodes that are about to get a descriptor.
    pub(super) opening: Vec<Ino>,
    pub(super) limits: Limits,
    /// The number of nodes and names of the host that were read.
    pub(super) looked: u64,
    /// The limit above which such nodes are dropped.
    pub(super) most_looked: u64,
    bytes: u64,
    made: u64,
    pub(super) is_full: bool,
}

impl State {
    /// Makes an overlay over a host with this root.
    pub(super) fn new(root: Stat, limits: Limits) -> Self {
        let mut state = Self {
            nodes: BTreeMap::new(),
            next: ROOT,
            known: HashMap::new(),
            open: HashMap::new(),
            opening: Vec::new(),
            limits,
            looked: 0,
            most_looked: limits.nodes,
            bytes: 0,
            made: 0,
            is_full: false,
        };
        state.add_host((root, None), b"/".to_vec(), ROOT);
        state
    }

    pub(super) fn node(&self, ino: Ino) -> Result<&Node> {
        self.nodes.get(&ino).ok_or(Stop::Failed(Errno::NOENT))
    }

    pub(super) fn node_mut(&mut self, ino: Ino) -> Result<&mut Node> {
        let node = self.nodes.get_mut(&ino).ok_or(Stop::Failed(Errno::NOENT))?;
        node.is_changed = true;
        Ok(node)
    }

    /// Stores the extended attributes of a node of the host, unless they are known.
    pub(super) fn learn_attributes(&mut self, ino: Ino, all: Attributes) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.attributes.get_or_insert(all);
        }
    }

    /// Adds an object of the host, with the target of a link.
    pub(super) fn add_host(
        &mut self,
        (stat, target): (Stat, Option<Vec<u8>>),
        path: Vec<u8>,
        above: Ino,
    ) -> Ino {
        let identity = (stat.st_dev, stat.st_ino);
        let kind = FileType::from_raw_mode(stat.st_mode);
        let has_names = kind == FileType::Directory || stat.st_nlink > 1;
        if let Some(known) = self.known.get(&identity).filter(|_| has_names) {
            return *known;
        }
        let what = match (kind, target) {
            (FileType::RegularFile, _) => What::File(None),
            (FileType::Directory, _) => {
                What::Directory { entries: BTreeMap::new(), is_listed: false }
            }
            (FileType::Symlink, Some(target)) => What::Link(target),
            _ => What::Other,
        };
        let (attributes, is_unborn, is_changed) = (None, false, false);
        let host = Some(path);
        let ino = self.add(Node { what, stat, host, attributes, above, is_unborn, is_changed });
        self.looked = self.looked.saturating_add(1);
        if has_names {
            self.known.insert(identity, ino);
        }
        ino
    }

    fn add(&mut self, node: Node) -> Ino {
        let ino = self.next;
        self.next += 1;
        self.nodes.insert(ino, node);
        ino
    }

    /// Makes a node without a name, in the file system of a directory.
    pub(super) fn make(&mut self, what: What, mode: u32, above: Ino) -> Result<Ino> {
        self.note_room(0, 1)?;
        let directory = &self.node(above)?.stat;
        let (kind, size) = match &what {
            What::File(_) => (FileType::RegularFile, 0),
            What::Directory { .. } => (FileType::Directory, 4096),
            What::Link(target) => (FileType::Symlink, target.len()),
            What::Other => return Err(Errno::PERM.into()),
        };
        let mut stat = *directory;
        let is_shared = directory.st_mode & 0o2000 != 0;
        let (uid, gid) = super::super::set_identity(None, None);
        stat.st_uid = uid.as_raw();
        stat.st_gid = if is_shared { directory.st_gid } else { gid.as_raw() };
        stat.st_mode = kind.as_raw_mode() | mode;
        if is_shared && kind == FileType::Directory {
            stat.st_mode |= 0o2000;
        }
        stat.st_ino = FIRST_NEW + self.next;
        stat.st_nlink = 0;
        stat.st_size = i64::try_from(size).unwrap_or(i64::MAX);
        let attributes = Some(Attributes::new());
        let (is_unborn, is_changed, host) = (false, true, None);
        let ino = self.add(Node { what, stat, host, attributes, above, is_unborn, is_changed });
        self.stamp(ino, true);
        Ok(ino)
    }

    /// Counts content and nodes before they are stored.
    ///
    /// # Errors
    ///
    /// Fails if a limit is exceeded.
    pub(super) fn note_room(&mut self, bytes: usize, nodes: u64) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.made = self.made.saturating_add(nodes);
        if self.bytes > self.limits.bytes || self.made > self.limits.nodes {
            self.is_full = true;
            return Err(Errno::NOSPC.into());
        }
        Ok(())
    }

    pub(super) fn stamp(&mut self, ino: Ino, content: bool) {
        let now = super::super::wall();
        if let Some(Node { stat, is_changed, .. }) = self.nodes.get_mut(&ino) {
            *is_changed = true;
            let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
            (stat.st_ctime, stat.st_ctime_nsec) = (seconds, now.subsec_nanos().into());
            if content {
                (stat.st_mtime, stat.st_mtime_nsec) = (seconds, now.subsec_nanos().into());
            }
        }
    }

    /// Returns the node of a name in a directory.
    pub(super) fn lookup(&self, directory: Ino, name: &[u8]) -> Result<Option<Ino>> {
        let node = self.node(directory)?;
        let What::Directory { entries, is_listed } = &node.what else {
            return Err(Errno::NOTDIR.into());
        };
        match (entries.get(name), &node.host) {
            (Some(Entry::There(ino)), _) => Ok(Some(*ino)),
            (None, Some(path)) if !is_listed => Err(entry_fact(directory, name, path)),
            (Some(Entry::OnHost), Some(path)) => Err(entry_fact(directory, name, path)),
            (Some(Entry::Gone | Entry::OnHost) | None, _) => Ok(None),
        }
    }

    /// Returns the names in a directory.
    pub(super) fn names(&self, directory: Ino) -> Result<impl Iterator<Item = &[u8]>> {
        let node = self.node(directory)?;
        let What::Directory { entries, is_listed } = &node.what else {
            return Err(Errno::NOTDIR.into());
        };
        if let Some(path) = node.host.as_ref().filter(|_| !is_listed) {
            return Err(Stop::Missing(Fact::Names { directory, path: path.clone() }));
        }
        let there = entries.iter().filter(|(_, entry)| **entry != Entry::Gone);
        Ok(there.map(|(name, _)| name.as_slice()))
    }

    pub(super) fn set_entry(&mut self, (directory, name): Place, entry: Entry) {
        if let Some(Node { what: What::Directory { entries, .. }, is_changed, .. }) =
            self.nodes.get_mut(&directory)
        {
            *is_changed = true;
            entries.insert(name, entry);
        }
    }

    pub(super) fn is_directory(&self, ino: Ino) -> bool {
        self.nodes.get(&ino).is_some_and(|node| matches!(node.what, What::Directory { .. }))
    }

    /// Stores the names of a directory on the host; known entries stay.
    pub(super) fn learn_names(&mut self, directory: Ino, names: Vec<Vec<u8>>) {
        let Some(Node { what: What::Directory { entries, is_listed }, .. }) =
            self.nodes.get_mut(&directory)
        else {
            return;
        };
        *is_listed = true;
        self.looked = self.looked.saturating_add(names.len() as u64);
        for name in names {
            entries.entry(name).or_insert(Entry::OnHost);
        }
    }

    /// Stores the host's object at a name, unless the name is known.
    pub(super) fn learn_entry(
        &mut self,
        (directory, name): Place,
        path: Vec<u8>,
        found: Option<(Stat, Option<Vec<u8>>)>,
    ) {
        let Some(Node { what: What::Directory { entries, .. }, .. }) = self.nodes.get(&directory)
        else {
            return;
        };
        if matches!(entries.get(&name), Some(Entry::There(_) | Entry::Gone)) {
            return;
        }
        let entry = match found {
            Some(found) => Entry::There(self.add_host(found, path, directory)),
            None => Entry::Gone,
        };
        if let Some(Node { what: What::Directory { entries, .. }, .. }) =
            self.nodes.get_mut(&directory)
        {
            entries.insert(name, entry);
        }
    }
}

fn entry_fact(directory: Ino, name: &[u8], above: &[u8]) -> Stop {
    let mut path = above.to_vec();
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    Stop::Missing(Fact::Entry { directory, name: name.to_vec(), path })
}
