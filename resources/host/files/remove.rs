//! Removal: of one thing, or with consent of all below a directory, through descriptors and never across a mount.

use super::Files;
use super::branch::DEEPEST;
use super::fault::{Fault, said};
use super::read::seen;
use super::sacred::{guard, sacred_inodes};
use super::spot::{Seen, Spot};
use crate::host::kernel::{Entries, openat2, statat, unlinkat};
use crate::permit::Permit;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

impl Files {
    /// Removes what was seen; a directory that is not empty only with `all_below`.
    pub fn remove(
        &self,
        permit: &Permit,
        spot: &Spot<'_>,
        found: &Seen,
        all_below: bool,
    ) -> Result<(), Fault> {
        guard(spot, found)?;
        permit.check()?;
        let directory = self.sweep_once(permit, spot)?;
        spot.still(Some(found))?;
        let mut touched = false;
        if found.kind == FileType::Directory && all_below {
            let mut tree = Tree { permit, spot, sacred: sacred_inodes(), touched: false };
            let emptied = tree.empty(&spot.directory, spot.name, found);
            touched = tree.touched;
            emptied.map_err(|fault| fault.after(touched))?;
        }
        permit.check().map_err(|revoked| Fault::from(revoked).after(touched))?;
        let flags = match found.kind {
            FileType::Directory => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        match unlinkat(&spot.directory, spot.name, flags) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::ISDIR | Errno::NOTDIR) if !touched => {
                return Err(Fault::moved());
            }
            Err(errno) => return Err(Fault::os("remove")(errno).after(touched)),
        }
        self.sync_directory(spot, directory)
    }
}

/// A tree that is being emptied.
struct Tree<'a> {
    permit: &'a Permit,
    spot: &'a Spot<'a>,
    sacred: HashSet<(u64, u64)>,
    touched: bool,
}

/// A directory of it.
struct Level {
    handle: OwnedFd,
    /// Its name in the directory above.
    name: OsString,
    entries: Entries,
}

impl Tree<'_> {
    /// Empties the directory of that name, which must still be the one that was seen.
    fn empty(&mut self, parent: &OwnedFd, name: &OsStr, found: &Seen) -> Result<(), Fault> {
        let top = self.enter(parent, name)?;
        if seen(&top.handle)?.identity != found.identity {
            return Err(Fault::moved());
        }
        let mut levels = vec![top];
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                let Some(done) = levels.pop() else { break };
                let Some(above) = levels.last() else { break };
                self.unlink(&above.handle, &done.name, AtFlags::REMOVEDIR)?;
                continue;
            };
            let entry = entry.map_err(Fault::os("list"))?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            let name = OsStr::from_bytes(bytes);
            let handle = &level.handle;
            if is_directory(handle, name)? {
                if levels.len() >= DEEPEST {
                    return Err(self.refuse("it is deeper than 200 directories"));
                }
                let below = self.enter(&levels[levels.len() - 1].handle, name)?;
                levels.push(below);
            } else {
                self.unlink(handle, name, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    fn enter(&self, parent: &OwnedFd, name: &OsStr) -> Result<Level, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        let handle = match openat2(parent, name, flags, Mode::empty(), resolve) {
            Ok(handle) => handle,
            Err(Errno::XDEV) => return Err(self.refuse("something is mounted below it")),
            Err(errno) => return Err(Fault::os("empty")(errno)),
        };
        if self.sacred.contains(&seen(&handle)?.identity) {
            return Err(self.refuse("it holds a directory a host cannot do without"));
        }
        let entries = Entries::read_from(&handle).map_err(Fault::os("list"))?;
        Ok(Level { handle, name: name.to_owned(), entries })
    }

    fn unlink(&mut self, parent: &OwnedFd, name: &OsStr, flags: AtFlags) -> Result<(), Fault> {
        self.permit.check()?;
        match unlinkat(parent, name, flags) {
            Ok(()) => {
                self.touched = true;
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(Fault::os("empty")(errno)),
        }
    }

    fn refuse(&self, why: &str) -> Fault {
        Fault::refused(said("remove", self.spot.path(), why))
    }
}

fn is_directory(parent: &OwnedFd, name: &OsStr) -> Result<bool, Fault> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(Fault::os("look at")(errno)),
    }
}
