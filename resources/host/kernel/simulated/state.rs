//! What the host is made of.

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

/// The root.
pub(super) const ROOT: Ino = 1;

/// How often the clock ticks that stamps files.
const TICK: u128 = 4_000_000;

/// What a node is.
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
    /// What it is.
    pub what: What,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Extended attributes.
    pub attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// When its content changed, and when anything of it did, in nanoseconds since 1970.
    pub stamps: (u128, u128),
    /// The directory above, of a directory.
    pub(super) above: Ino,
    /// Where it has its newest name.
    pub(super) place: Option<Place>,
    /// Born without a name, and never had one: it may get one.
    pub(super) unborn: bool,
}

/// Something happened, as inotify tells whoever watches the directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Changed {
    /// The directory.
    pub directory: Ino,
    /// The name in it; empty for the directory itself.
    pub name: Vec<u8>,
    /// It came, went or was replaced; else its content or attributes changed.
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
    /// How much randomness was drawn; none where there is none to be had.
    pub(super) drawn: Option<u64>,
    pub(super) changes: Vec<Changed>,
    pub(super) faults: Faults,
    pub(super) durable: Journal,
    /// Descriptors are copies of this one, and answers to `stat` begin as its.
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

    /// A node without a name.
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

    /// How many names a node has.
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

    /// Tells those who watch the directory of a name.
    pub(super) fn tell(&mut self, directory: Ino, name: &[u8], structural: bool) {
        self.changes.push(Changed { directory, name: name.to_vec(), structural });
    }

    /// Tells of a node that was changed through this name.
    pub(super) fn tell_of(&mut self, ino: Ino, place: Option<&Place>) {
        let still = place.filter(|(directory, name)| {
            self.entries(*directory).and_then(|entries| entries.get(name)) == Some(&ino)
        });
        // Of several names the kernel tells the one that was used; a directory has one alone.
        let only = self.nodes.get(&ino).filter(|node| matches!(node.what, What::Directory(_)));
        let place = still.cloned().or_else(|| only?.place.clone());
        if let Some((directory, name)) = place {
            self.tell(directory, &name, false);
        }
        if self.entries(ino).is_some() {
            self.tell(ino, b"", false);
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

/// The whole, to be looked at.
#[derive(Debug)]
pub struct Tree<'a>(pub(super) &'a State);

impl Tree<'_> {
    /// What is at an absolute path; links are not followed.
    #[must_use]
    pub fn at(&self, path: impl AsRef<Path>) -> Option<&Node> {
        self.node(self.ino(path)?)
    }

    /// Which inode that is.
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

    /// An inode.
    #[must_use]
    pub fn node(&self, ino: Ino) -> Option<&Node> {
        self.0.nodes.get(&ino)
    }

    /// Every name with what is there, in order; inodes by the order in which they are met, so that two hosts can be compared.
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
