//! The simulated kernel's file events, and a record of who changed each path last.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use steadfast::watch::DirectoryId;
use steadfast_resources::host::simulated::{Changed, Ino, Machine, What};

/// The actor that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The daemon.
    Us,
    /// The adversary.
    Foreign,
}

/// A file event in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileEvent {
    Entry { directory: DirectoryId, name: Vec<u8>, structural: bool },
    Lost(DirectoryId),
    Overflow,
}

/// A watched directory.
#[derive(Debug)]
struct Watched {
    directory: DirectoryId,
    /// The parent and the name of the directory when its watch began.
    place: Option<(Ino, Vec<u8>)>,
    /// True once the kernel has reported that the directory moved or is gone.
    moved: bool,
}

/// The kernel's side of watches.
#[derive(Debug)]
pub(crate) struct World {
    watched: BTreeMap<Ino, Watched>,
    /// The limit of watched directories.
    pub(crate) most_watched: usize,
    /// The undelivered events, and the limit of the queue.
    pub(crate) queue: VecDeque<FileEvent>,
    pub(crate) longest_queue: usize,
    /// The time of the last change to each path, by the daemon and by the adversary, in milliseconds.
    pub(crate) ours: BTreeMap<PathBuf, u64>,
    pub(crate) foreign: BTreeMap<PathBuf, u64>,
}

impl World {
    pub(crate) fn new(longest_queue: usize, most_watched: usize) -> Self {
        Self {
            watched: BTreeMap::new(),
            most_watched,
            queue: VecDeque::new(),
            longest_queue,
            ours: BTreeMap::new(),
            foreign: BTreeMap::new(),
        }
    }

    /// Watches a directory; returns false if no watch is free.
    pub(crate) fn watch(&mut self, machine: &Machine, ino: Ino, to: (DirectoryId, &Path)) -> bool {
        let (directory, path) = to;
        let is_new = !self.watched.contains_key(&ino);
        if is_new && self.watched.len() >= self.most_watched {
            return false;
        }
        let place = path.parent().zip(path.file_name()).and_then(|(parent, name)| {
            Some((machine.look(|tree| tree.ino(parent))?, name.as_encoded_bytes().to_vec()))
        });
        self.watched.insert(ino, Watched { directory, place, moved: false });
        true
    }

    pub(crate) fn unwatch(&mut self, directory: DirectoryId) {
        self.watched.retain(|_, known| known.directory != directory);
    }

    /// Returns the id of a watched directory.
    pub(crate) fn directory(&self, ino: Ino) -> Option<DirectoryId> {
        self.watched.get(&ino).map(|known| known.directory)
    }

    /// Attributes all changes since the last call to one actor, and queues their events.
    pub(crate) fn take_in(
        &mut self,
        machine: &Machine,
        (who, now): (Who, u64),
        paths: impl Iterator<Item = PathBuf>,
    ) {
        let changes = machine.take_changes();
        if changes.is_empty() {
            return;
        }
        for path in paths {
            let parent = path.parent().and_then(|parent| machine.look(|tree| tree.ino(parent)));
            let is_it = |change: &Changed| {
                parent == Some(change.directory)
                    && path.file_name().is_some_and(|name| name.as_encoded_bytes() == change.name)
            };
            if changes.iter().any(is_it) {
                let times = if who == Who::Us { &mut self.ours } else { &mut self.foreign };
                times.insert(path, now);
            }
        }
        for Changed { directory, name, structural } in changes {
            if let Some(directory) = self.directory(directory) {
                self.push(FileEvent::Entry { directory, name, structural });
            }
            if structural {
                self.queue_moves(machine);
            }
        }
    }

    /// Queues an event for each watched directory that has moved or is gone.
    fn queue_moves(&mut self, machine: &Machine) {
        let mut lost = Vec::new();
        for (ino, known) in self.watched.iter_mut().filter(|(_, known)| !known.moved) {
            let Some((parent, name)) = &known.place else { continue };
            let there = machine.look(|tree| match &tree.node(*parent)?.what {
                What::Directory(entries) => entries.get(name).copied(),
                _ => None,
            });
            if there != Some(*ino) {
                known.moved = true;
                lost.push(known.directory);
            }
        }
        for directory in lost {
            self.push(FileEvent::Lost(directory));
        }
    }

    fn push(&mut self, event: FileEvent) {
        // The kernel merges repeated events and replaces those that do not fit with one overflow event.
        if self.queue.back() == Some(&event) || self.queue.back() == Some(&FileEvent::Overflow) {
            return;
        }
        let full = self.queue.len() >= self.longest_queue;
        self.queue.push_back(if full { FileEvent::Overflow } else { event });
    }

    /// Drops all watches and events of a daemon that has ended.
    pub(crate) fn close_watches(&mut self) {
        self.watched.clear();
        self.queue.clear();
    }
}
