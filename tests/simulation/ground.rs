//! The simulated machine as the hub sees it: something to walk on, and a kernel that reports what changes.

use crate::stage::{Shared, lock};
use crate::world::{Node, ROOT};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use steadfast::driver::watch::{Backend, DirectoryId, Failure, Foothold, Found, Ground, Identity};

const DEVICE: u64 = 7;

/// The files of the simulated machine, and its events.
pub(crate) struct Meadow(pub(crate) Shared);

impl Meadow {
    fn found(&self, inode: u64) -> Result<Found, Errno> {
        let stage = lock(&self.0);
        let kind = match stage.world.node(inode) {
            Some(Node::Directory { .. }) => FileType::Directory,
            Some(Node::File { .. }) => FileType::RegularFile,
            None => return Err(Errno::NOENT),
        };
        Ok(Found { at: Foothold::Number(inode), identity: (DEVICE, inode), kind })
    }

    fn inode(at: &Foothold) -> Result<u64, Errno> {
        match at {
            Foothold::Number(inode) => Ok(*inode),
            Foothold::Descriptor(_) => Err(Errno::BADF),
        }
    }
}

impl Ground for Meadow {
    fn root(&self) -> Result<Found, Errno> {
        self.found(ROOT)
    }

    fn look(&self, at: &Foothold, name: &OsStr) -> Result<Found, Errno> {
        lock(&self.0).between_calls();
        let name = name.to_str().ok_or(Errno::NOENT)?;
        let inode = lock(&self.0).world.entry(Self::inode(at)?, name);
        self.found(inode.ok_or(Errno::NOENT)?)
    }

    fn target(&self, _link: &Foothold) -> Result<PathBuf, Errno> {
        Err(Errno::INVAL)
    }

    fn silent(&self, _directory: &Foothold) -> Option<&'static str> {
        None
    }

    fn identity(&self, path: &Path) -> Option<Identity> {
        lock(&self.0).between_calls();
        Some((DEVICE, lock(&self.0).world.find(path)?))
    }

    fn link(&self, _path: &Path) -> Option<PathBuf> {
        None
    }

    fn directories_in(&self, path: &Path, identity: Identity) -> Vec<PathBuf> {
        let stage = lock(&self.0);
        let Some(inode) = stage.world.find(path).filter(|inode| *inode == identity.1) else {
            return Vec::new();
        };
        let Some(Node::Directory { entries, .. }) = stage.world.node(inode) else {
            return Vec::new();
        };
        let is_directory =
            |inode: &u64| matches!(stage.world.node(*inode), Some(Node::Directory { .. }));
        let below = entries.iter().filter(|(_, inode)| is_directory(inode));
        below.map(|(name, _)| PathBuf::from(name)).collect()
    }
}

impl Backend for Meadow {
    fn watch(&self, directory: DirectoryId, _path: &Path, at: &Foothold) -> Result<(), Failure> {
        let inode = Self::inode(at).map_err(|error| Failure::Other(error.to_string()))?;
        let mut stage = lock(&self.0);
        stage.between_calls();
        if stage.world.node(inode).is_none() {
            return Err(Failure::Gone);
        }
        let is_new = !stage.world.watched.contains_key(&inode);
        if is_new && stage.world.watched.len() >= stage.world.most_watched {
            stage.saw("no watch is free");
            return Err(Failure::Limit("fs.inotify.max_user_watches"));
        }
        stage.world.watched.insert(inode, directory);
        Ok(())
    }

    fn unwatch(&self, directory: DirectoryId) {
        lock(&self.0).world.watched.retain(|_, known| *known != directory);
    }
}
