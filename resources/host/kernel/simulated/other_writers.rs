//! Changes by other processes on a simulated host: whole steps that are reported to watches, not counted and
//! free of injected faults.

use super::Machine;
use crate::host::kernel::dispatch::{
    chmodat, chownat, linkat, mkdirat, openat, pwrite, renameat, symlinkat, unlinkat,
};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::Path;

impl Machine {
    fn act<T>(&self, act: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        self.foreign(|here| {
            let _entered = here.enter();
            let before = here.set_identity(Some(0), Some(0));
            let done = act();
            here.set_identity(Some(before.0), Some(before.1));
            done
        })
    }

    /// Writes a file in place, as some editors do; a missing file is made with mode 0644.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<(), Errno> {
        let path = path.as_ref();
        self.act(|| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NONBLOCK;
            let is_new = self.look(|tree| tree.at(path).is_none());
            let file = openat(CWD, path, flags, Mode::from_raw_mode(0o644))?;
            pwrite(&file, content.as_ref(), 0)?;
            if is_new {
                chmodat(CWD, path, Mode::from_raw_mode(0o644), AtFlags::empty())?;
            }
            Ok(())
        })
    }

    /// Writes a new file beside the old one and renames it over the old one.
    pub fn replace(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<(), Errno> {
        let path = path.as_ref();
        let beside = path.with_extension("new~");
        self.write(&beside, content)?;
        let placed = self.act(|| renameat(CWD, &beside, CWD, path));
        placed
            .or_else(|errno| self.act(|| unlinkat(CWD, &beside, AtFlags::empty())).and(Err(errno)))
    }

    /// Makes a directory (0755) and all missing parents.
    pub fn make_directories(&self, path: impl AsRef<Path>) -> Result<(), Errno> {
        let mut above: Vec<&Path> = path.as_ref().ancestors().collect();
        above.pop();
        for directory in above.into_iter().rev() {
            match self.act(|| mkdirat(CWD, directory, Mode::from_raw_mode(0o755))) {
                Ok(()) => self.chmod(directory, 0o755)?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Makes a symbolic link.
    pub fn symlink(&self, target: &str, path: impl AsRef<Path>) -> Result<(), Errno> {
        self.act(|| symlinkat(target, CWD, path.as_ref()))
    }

    /// Gives a file another name.
    pub fn hard_link(&self, old: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<(), Errno> {
        self.act(|| linkat(CWD, old.as_ref(), CWD, new.as_ref(), AtFlags::empty()))
    }

    /// Renames an object over the target.
    pub fn rename_over(&self, old: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<(), Errno> {
        self.act(|| renameat(CWD, old.as_ref(), CWD, new.as_ref()))
    }

    /// Changes permission bits.
    pub fn chmod(&self, path: impl AsRef<Path>, mode: u32) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(mode);
        self.act(|| chmodat(CWD, path.as_ref(), mode, AtFlags::empty()))
    }

    /// Changes the owner.
    pub fn chown(&self, path: impl AsRef<Path>, uid: u32, gid: u32) -> Result<(), Errno> {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        self.act(|| chownat(CWD, path.as_ref(), uid, gid, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Removes an object with everything below; a missing object is no error.
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<(), Errno> {
        let path = path.as_ref();
        let names = self.look(|tree| match &tree.at(path)?.what {
            super::What::Directory(entries) => {
                let names = entries.keys().map(|name| String::from_utf8_lossy(name).into_owned());
                Some(names.collect::<Vec<_>>())
            }
            _ => None,
        });
        for name in names.iter().flatten() {
            self.remove(path.join(name))?;
        }
        let flags = if names.is_some() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match self.act(|| unlinkat(CWD, path, flags)) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    /// Returns the content of a regular file, if there is one.
    #[must_use]
    pub fn content(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        self.look(|tree| match &tree.at(path)?.what {
            super::What::File(content) => Some(content.clone()),
            _ => None,
        })
    }

    /// Returns the names in a directory, if there is one.
    #[must_use]
    pub fn names(&self, path: impl AsRef<Path>) -> Option<BTreeMap<Vec<u8>, super::Ino>> {
        self.look(|tree| match &tree.at(path)?.what {
            super::What::Directory(entries) => Some(entries.clone()),
            _ => None,
        })
    }
}
