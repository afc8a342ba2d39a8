//! The simulated machine: a tree of files in memory, who changed what last, and the queue of its file events.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Component, Path, PathBuf};
use steadfast::driver::watch::DirectoryId;

/// The number of a file or directory; never given twice.
pub(crate) type Inode = u64;

pub(crate) const ROOT: Inode = 1;

/// What stands at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Directory { entries: BTreeMap<String, Inode>, mode: u32 },
    File { content: String, mode: u32 },
}

/// Who changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The daemon.
    Us,
    /// Somebody else.
    Foreign,
}

/// One event in the queue of the simulated kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileEvent {
    Entry { directory: DirectoryId, name: String, structural: bool },
    Lost(DirectoryId),
    Overflow,
}

/// The files of the machine.
#[derive(Debug)]
pub(crate) struct World {
    nodes: BTreeMap<Inode, Node>,
    next: Inode,
    /// The directories that are watched.
    pub(crate) watched: BTreeMap<Inode, DirectoryId>,
    /// At most so many.
    pub(crate) most_watched: usize,
    /// What the kernel has to tell, and how much of that it keeps.
    pub(crate) queue: VecDeque<FileEvent>,
    pub(crate) longest_queue: usize,
    /// When each path was changed last by us, on the clock of whoever asks.
    pub(crate) ours: BTreeMap<PathBuf, u64>,
    pub(crate) foreign: BTreeMap<PathBuf, u64>,
    pub(crate) now: u64,
    /// How many changes were made by anybody.
    pub(crate) changes: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        let root = Node::Directory { entries: BTreeMap::new(), mode: 0o755 };
        Self {
            nodes: BTreeMap::from([(ROOT, root)]),
            next: ROOT + 1,
            watched: BTreeMap::new(),
            most_watched: usize::MAX,
            queue: VecDeque::new(),
            longest_queue: 1 << 14,
            ours: BTreeMap::new(),
            foreign: BTreeMap::new(),
            now: 0,
            changes: 0,
        }
    }

    pub(crate) fn node(&self, inode: Inode) -> Option<&Node> {
        self.nodes.get(&inode)
    }

    pub(crate) fn entry(&self, directory: Inode, name: &str) -> Option<Inode> {
        match self.nodes.get(&directory)? {
            Node::Directory { entries, .. } => entries.get(name).copied(),
            Node::File { .. } => None,
        }
    }

    pub(crate) fn find(&self, path: &Path) -> Option<Inode> {
        let names = path.components().filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
        names.into_iter().try_fold(ROOT, |at, name| self.entry(at, name))
    }

    pub(crate) fn at(&self, path: &Path) -> Option<&Node> {
        self.node(self.find(path)?)
    }

    /// All paths, in order.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let (mut all, mut left) = (Vec::new(), vec![(PathBuf::from("/"), ROOT)]);
        while let Some((path, inode)) = left.pop() {
            if let Some(Node::Directory { entries, .. }) = self.nodes.get(&inode) {
                left.extend(entries.iter().map(|(name, inode)| (path.join(name), *inode)));
            }
            all.push(path);
        }
        all.sort();
        all
    }

    /// Makes, writes or changes the mode of what is at a path; false where that cannot be.
    pub(crate) fn write(&mut self, path: &Path, node: Node, who: Who) -> bool {
        let Some((parent, name)) = self.place(path) else { return false };
        match (self.entry(parent, &name), node) {
            (None, node) => {
                let inode = self.next;
                self.next += 1;
                self.nodes.insert(inode, node);
                self.link(parent, name.clone(), Some(inode));
                self.tell(parent, &name, true);
            }
            (Some(inode), Node::File { content, mode }) => {
                let Some(known @ Node::File { .. }) = self.nodes.get_mut(&inode) else {
                    return false;
                };
                *known = Node::File { content, mode };
                self.tell(parent, &name, false);
            }
            (Some(inode), Node::Directory { mode, .. }) => {
                let Some(Node::Directory { mode: known, .. }) = self.nodes.get_mut(&inode) else {
                    return false;
                };
                *known = mode;
                self.tell(parent, &name, false);
                self.tell(inode, "", false);
            }
        }
        self.note(path, who);
        true
    }

    /// Removes what is at a path, with all below it.
    pub(crate) fn remove(&mut self, path: &Path, who: Who) -> bool {
        let Some((parent, name)) = self.place(path) else { return false };
        let Some(inode) = self.entry(parent, &name) else { return false };
        if let Some(Node::Directory { entries, .. }) = self.nodes.get(&inode) {
            for name in entries.keys().cloned().collect::<Vec<_>>() {
                self.remove(&path.join(name), who);
            }
        }
        self.link(parent, name.clone(), None);
        self.nodes.remove(&inode);
        self.tell(parent, &name, true);
        self.lose(inode);
        self.note(path, who);
        true
    }

    /// Moves a file over another, or to where nothing is.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path, who: Who) -> bool {
        let Some(((old, was), (new, name))) = self.place(from).zip(self.place(to)) else {
            return false;
        };
        let Some(inode) = self.entry(old, &was) else { return false };
        if from == to {
            return true;
        }
        if let Some(there) = self.entry(new, &name) {
            let both = self.nodes.get(&inode).zip(self.nodes.get(&there));
            let Some((Node::File { .. }, Node::File { .. })) = both else { return false };
            self.nodes.remove(&there);
        } else if to.starts_with(from) {
            return false;
        }
        self.link(old, was.clone(), None);
        self.link(new, name.clone(), Some(inode));
        self.tell(old, &was, true);
        self.tell(new, &name, true);
        if matches!(self.nodes.get(&inode), Some(Node::Directory { .. })) {
            // The kernel keeps the watch and says that it was moved; whoever watches lets it go.
            if let Some(directory) = self.watched.get(&inode) {
                self.push(FileEvent::Lost(*directory));
            }
        }
        self.note(from, who);
        self.note(to, who);
        true
    }

    fn place(&self, path: &Path) -> Option<(Inode, String)> {
        let parent = self.find(path.parent()?)?;
        matches!(self.nodes.get(&parent)?, Node::Directory { .. }).then_some(())?;
        Some((parent, path.file_name()?.to_str()?.to_owned()))
    }

    fn link(&mut self, directory: Inode, name: String, inode: Option<Inode>) {
        let Some(Node::Directory { entries, .. }) = self.nodes.get_mut(&directory) else { return };
        match inode {
            Some(inode) => drop(entries.insert(name, inode)),
            None => drop(entries.remove(&name)),
        }
    }

    fn note(&mut self, path: &Path, who: Who) {
        self.changes += 1;
        let times = if who == Who::Us { &mut self.ours } else { &mut self.foreign };
        times.insert(path.to_owned(), self.now);
    }

    fn tell(&mut self, directory: Inode, name: &str, structural: bool) {
        if let Some(directory) = self.watched.get(&directory) {
            let (directory, name) = (*directory, name.to_owned());
            self.push(FileEvent::Entry { directory, name, structural });
        }
    }

    /// A directory is gone, and its watch with it.
    fn lose(&mut self, inode: Inode) {
        if let Some(directory) = self.watched.remove(&inode) {
            self.push(FileEvent::Lost(directory));
        }
    }

    fn push(&mut self, event: FileEvent) {
        // As the kernel does: what repeats is one, and what does not fit is one word for all.
        if self.queue.back() == Some(&event) || self.queue.back() == Some(&FileEvent::Overflow) {
            return;
        }
        let full = self.queue.len() >= self.longest_queue;
        self.queue.push_back(if full { FileEvent::Overflow } else { event });
    }

    /// Forgets whoever listened.
    pub(crate) fn close_watches(&mut self) {
        self.watched.clear();
        self.queue.clear();
    }
}
