//! The simulated host as the watch hub sees it: a file system for path walks, and a kernel that reports changes.

use crate::environment::{Shared, here, lock};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use steadfast::watch::{Backend, DirectoryId, EntryHandle, Failure, FileSystem, Found, Identity};
use steadfast_resources::host::simulated::{Ino, What};

const DEVICE: u64 = 77;
const ROOT: Ino = 1;

/// The file system of the simulated host that this thread has entered, with its file events.
pub(crate) struct Meadow(pub(crate) Shared);

fn found(ino: Ino) -> Result<Found, Errno> {
    let kind = here().look(|tree| {
        Some(match tree.node(ino)?.what {
            What::Directory(_) => FileType::Directory,
            What::File(_) => FileType::RegularFile,
            What::Link(_) => FileType::Symlink,
            What::Fifo => FileType::Fifo,
        })
    });
    let kind = kind.ok_or(Errno::NOENT)?;
    Ok(Found { at: EntryHandle::Number(ino), identity: (DEVICE, ino), kind })
}

fn ino(at: &EntryHandle) -> Result<Ino, Errno> {
    match at {
        EntryHandle::Number(ino) => Ok(*ino),
        EntryHandle::Descriptor(_) => Err(Errno::BADF),
    }
}

fn target(what: &What) -> Option<PathBuf> {
    match what {
        What::Link(target) => Some(PathBuf::from(OsString::from_vec(target.clone()))),
        _ => None,
    }
}

impl FileSystem for Meadow {
    fn root(&self) -> Result<Found, Errno> {
        found(ROOT)
    }

    fn look(&self, at: &EntryHandle, name: &OsStr) -> Result<Found, Errno> {
        lock(&self.0).meddle_maybe(&here());
        let at = ino(at)?;
        let below = here().look(|tree| match &tree.node(at).ok_or(Errno::NOENT)?.what {
            What::Directory(entries) => entries.get(name.as_bytes()).copied().ok_or(Errno::NOENT),
            _ => Err(Errno::NOTDIR),
        });
        found(below?)
    }

    fn target(&self, link: &EntryHandle) -> Result<PathBuf, Errno> {
        let link = ino(link)?;
        here().look(|tree| target(&tree.node(link)?.what)).ok_or(Errno::INVAL)
    }

    fn silent(&self, _directory: &EntryHandle) -> Option<&'static str> {
        None
    }

    fn identity(&self, path: &Path) -> Option<Identity> {
        lock(&self.0).meddle_maybe(&here());
        Some((DEVICE, here().look(|tree| tree.ino(path))?))
    }

    fn is_mounted_file(&self, _path: &Path) -> bool {
        false
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        here().look(|tree| target(&tree.at(path)?.what))
    }

    fn directories_in(&self, path: &Path, identity: Identity) -> Vec<PathBuf> {
        here().look(|tree| {
            let known = tree.ino(path).filter(|ino| *ino == identity.1);
            let Some(What::Directory(entries)) =
                known.and_then(|ino| tree.node(ino)).map(|n| &n.what)
            else {
                return Vec::new();
            };
            let is_directory = |ino: &Ino| {
                tree.node(*ino).is_some_and(|node| matches!(node.what, What::Directory(_)))
            };
            let below = entries.iter().filter(|(_, ino)| is_directory(ino));
            below.map(|(name, _)| PathBuf::from(OsStr::from_bytes(name))).collect()
        })
    }
}

impl Backend for Meadow {
    fn watch(&self, directory: DirectoryId, path: &Path, at: &EntryHandle) -> Result<(), Failure> {
        let ino = ino(at).map_err(|error| Failure::Other(error.to_string()))?;
        let mut stage = lock(&self.0);
        stage.meddle_maybe(&here());
        if here().look(|tree| tree.node(ino).is_none()) {
            return Err(Failure::Gone);
        }
        if stage.world.watch(&here(), ino, (directory, path)) {
            return Ok(());
        }
        stage.saw("no watch is free");
        Err(Failure::Limit("fs.inotify.max_user_watches"))
    }

    fn unwatch(&self, directory: DirectoryId) {
        lock(&self.0).world.unwatch(directory);
    }
}
