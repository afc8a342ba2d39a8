//! The state of a simulated host.

use super::durable::Journal;
use super::fault::Faults;
use rustix::fs::{FileType, Stat};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// The number of an inode.
pub type Ino = u64;

/// A name in a directory.
pub(super) type Place = (Ino, Vec<u8>);

/// The number of the root.
pub(super) const ROOT: Ino = 1;

/// The interval of the clock that stamps files, in nanoseconds.
const TICK: u128 = 4_000_000;

/// The type and content of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A regular file.
    File(Vec<u8>),
    /// A directory.
    Directory(BTreeMap<Vec<u8>, Ino>),
    /// A symbolic link.
    Link(Vec<u8>),
    /// A fifo.
    Fifo,
}

/// An inode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The type and content.
    pub what: What,
    /// The permission bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The extended attributes.
    pub attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The times of the last change of the content and of anything, in nanoseconds since 1970.
    pub stamps: (u128, u128),
    /// The parent directory, for a directory.
    pub(super) above: Ino,
    /// The position of the newest name.
    pub(super) place: Option<Place>,
    /// The node was made without a name and never had one, so it may get one.
    pub(super) unborn: bool,
}

/// A change, as inotify reports it to a watch of the directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Changed {
    /// The directory.
    pub directory: Ino,
    /// The name in the directory; empty for the directory itself.
    pub name: Vec<u8>,
    /// The entry appeared, disappeared or was replaced; false for a change of content or attributes.
    pub structural: bool,
}

/// An open file.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) ino: Ino,
    pub(super) at: usize,
    pub(super) only_path: bool,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) place: Option<Place>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) nodes: BTreeMap<Ino, Node>,
    pub(super) next: Ino,
    pub(super) open: BTreeMap<i32, Open>,
    pub(super) identity: (u32, u32),
    pub(super) wall: Duration,
    pub(super) incarnation: u64,
    /// The number of random values drawn; none if randomness is unavailable.
    pub(super) drawn: Option<u64>,
    pub(super) changes: Vec<Changed>,
    pub(super) faults: Faults,
    pub(super) durable: Journal,
    /// The base of all descriptors, whose `stat` is the template of every answer.
    pub(super) nothing: OwnedFd,
    pub(super) blank: Stat,
}

impl State {
    pub(super) fn new() -> Self {
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        #[expect(clippy::expect_used, reason = "a test without /dev/null is no test")]
        let nothing = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())
            .expect("every host has /dev/null");
        #[expect(clippy::expect_used, reason = "a test without /dev/null is no test")]
        let blank = rustix::fs::fstat(&nothing).expect("it is open");
        let mut state = Self {
            nodes: BTreeMap::new(),
            next: ROOT,
            open: BTreeMap::new(),
            identity: (0, 0),
            wall: Duration::from_secs(1_700_000_000),
            incarnation: 1,
            drawn: Some(0),
            changes: Vec::new(),
            faults: Faults::default(),
            durable: Journal::default(),
            nothing,
            blank,
        };
        state.make(What::Directory(BTreeMap::new()), 0o755, ROOT);
        state.durable.sync_all(&state.nodes);
        state
    }

    pub(super) fn now(&self) -> u128 {
        let now = self.wall.as_nanos();
        now - now % TICK
    }

    /// Makes a node without a name.
    pub(super) fn make(&mut self, what: What, mode: u32, above: Ino) -> Ino {
        let (ino, now) = (self.next, self.now());
        self.next += 1;
        let (uid, mut gid) = self.identity;
        let mut mode = mode;
        if let Some(above) = self.nodes.get(&above).filter(|above| above.mode & 0o2000 != 0) {
            gid = above.gid;
            if matches!(what, What::Directory(_)) {
                mode |= 0o2000;
            }
        }
        let (stamps, attributes) = ((now, now), BTreeMap::new());
        let node =
            Node { what, mode, uid, gid, attributes, stamps, above, place: None, unborn: false };
        self.nodes.insert(ino, node);
        ino
    }

    pub(super) fn entries(&self, ino: Ino) -> Option<&BTreeMap<Vec<u8>, Ino>> {
        match &self.nodes.get(&ino)?.what {
            What::Directory(entries) => Some(entries),
            _ => None,
        }
    }

    pub(super) fn entries_mut(&mut self, ino: Ino) -> Option<&mut BTreeMap<Vec<u8>, Ino>> {
        match &mut self.nodes.get_mut(&ino)?.what {
            What::Directory(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the number of names of a node.
    pub(super) fn links(&self, ino: Ino) -> u64 {
        if let Some(entries) = self.entries(ino) {
            if ino != ROOT && self.nodes.get(&ino).is_some_and(|node| node.place.is_none()) {
                return 0;
            }
            let below = entries.values().filter(|below| self.entries(**below).is_some());
            return 2 + below.count() as u64;
        }
        let all = self.nodes.values().filter_map(|node| match &node.what {
            What::Directory(entries) => Some(entries),
            _ => None,
        });
        all.flat_map(BTreeMap::values).filter(|named| **named == ino).count() as u64
    }

    pub(super) fn stat(&self, ino: Ino) -> Option<Stat> {
        let node = self.nodes.get(&ino)?;
        let (kind, size) = match &node.what {
            What::File(content) => (FileType::RegularFile, content.len()),
            What::Directory(_) => (FileType::Directory, 4096),
            What::Link(target) => (FileType::Symlink, target.len()),
            What::Fifo => (FileType::Fifo, 0),
        };
        let mut stat = self.blank;
        stat.st_dev = 77;
        stat.st_ino = ino;
        stat.st_mode = kind.as_raw_mode() | node.mode;
        stat.st_uid = node.uid;
        stat.st_gid = node.gid;
        stat.st_nlink = self.links(ino);
        stat.st_size = i64::try_from(size).ok()?;
        let split = |stamp: u128| {
            let nanoseconds = u32::try_from(stamp % 1_000_000_000).unwrap_or_default();
            (i64::try_from(stamp / 1_000_000_000).unwrap_or(i64::MAX), nanoseconds)
        };
        let (seconds, nanoseconds) = split(node.stamps.0);
        (stat.st_mtime, stat.st_mtime_nsec) = (seconds, nanoseconds.into());
        let (seconds, nanoseconds) = split(node.stamps.1);
        (stat.st_ctime, stat.st_ctime_nsec) = (seconds, nanoseconds.into());
        Some(stat)
    }

    /// Reports a change of a name to the watches of the directory.
    pub(super) fn report_change(&mut self, directory: Ino, name: &[u8], structural: bool) {
        self.changes.push(Changed { directory, name: name.to_vec(), structural });
    }

    /// Reports a change of a node through this name.
    pub(super) fn report_node_change(&mut self, ino: Ino, place: Option<&Place>) {
        let still = place.filter(|(directory, name)| {
            self.entries(*directory).and_then(|entries| entries.get(name)) == Some(&ino)
        });
        // With several names, the kernel reports the one in use; a directory has only one.
        let only = self.nodes.get(&ino).filter(|node| matches!(node.what, What::Directory(_)));
        let place = still.cloned().or_else(|| only?.place.clone());
        if let Some((directory, name)) = place {
            self.report_change(directory, &name, false);
        }
        if self.entries(ino).is_some() {
            self.report_change(ino, b"", false);
        }
    }

    pub(super) fn stamp(&mut self, ino: Ino, content: bool) {
        let now = self.now();
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.stamps.1 = now;
            if content {
                node.stamps.0 = now;
            }
        }
    }
}

/// A read-only view of the whole file system.
#[derive(Debug)]
pub struct Tree<'a>(pub(super) &'a State);

impl Tree<'_> {
    /// Returns the node at an absolute path, without following links.
    #[must_use]
    pub fn at(&self, path: impl AsRef<Path>) -> Option<&Node> {
        self.node(self.ino(path)?)
    }

    /// Returns the inode number at an absolute path.
    #[must_use]
    pub fn ino(&self, path: impl AsRef<Path>) -> Option<Ino> {
        use std::os::unix::ffi::OsStrExt as _;
        let mut here = ROOT;
        for part in path.as_ref().components() {
            if let std::path::Component::Normal(name) = part {
                here = *self.0.entries(here)?.get(name.as_bytes())?;
            }
        }
        Some(here)
    }

    /// Returns an inode.
    #[must_use]
    pub fn node(&self, ino: Ino) -> Option<&Node> {
        self.0.nodes.get(&ino)
    }

    /// Returns every name with its node, in order. Inodes are numbered by first appearance, so that two hosts can
    /// be compared.
    #[must_use]
    pub fn all(&self) -> Vec<(String, &Node)> {
        let mut all = Vec::new();
        let mut left = vec![(String::new(), ROOT)];
        while let Some((path, ino)) = left.pop() {
            let Some(node) = self.node(ino) else { continue };
            if let What::Directory(entries) = &node.what {
                for (name, below) in entries.iter().rev() {
                    let name = String::from_utf8_lossy(name);
                    left.push((format!("{path}/{name}"), *below));
                }
            }
            all.push((path, node));
        }
        all
    }
}
