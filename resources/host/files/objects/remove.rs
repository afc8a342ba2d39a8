//! Removes one object, or with consent a whole tree, through descriptors and never across a mount.

use crate::host::files::Files;
use crate::host::files::content::read::seen;
use crate::host::files::fault::{Fault, said};
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::files::paths::protected_paths::{guard, protected_inodes};
use crate::host::files::paths::tree_walk::DEEPEST;
use crate::host::files::prior_state::record::{Noted, denies_others};
use crate::host::files::takeover::other_users::is_shut;
use crate::host::kernel::{Entries, openat2, statat, unlinkat};
use crate::permit::Permit;
use crate::prior_state::Loss;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

/// The extent of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only the object itself.
    One,
    /// A directory with everything below. The history stores each object as it goes, without contents if `secret`
    /// is set.
    AllBelow {
        /// The contents are sensitive.
        secret: bool,
    },
}

impl Files {
    /// Removes the examined object; a directory with contents only with [`Reach::AllBelow`].
    ///
    /// # Errors
    ///
    /// Fails for protected paths and mount points, if the object was replaced, the permit was revoked, or the
    /// kernel returned an error. The fault says whether anything was removed.
    pub fn remove(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        found: &EntryStat,
        reach: Reach,
    ) -> Result<(), Fault> {
        guard(spot, found)?;
        permit.check()?;
        let directory = self.sweep_once(permit, spot)?;
        spot.still(Some(found))?;
        let mut touched = false;
        if let (FileType::Directory, Reach::AllBelow { secret }) = (found.kind, reach) {
            let protected_paths = protected_inodes();
            let mut tree =
                Tree { files: self, permit, spot, secret, protected_paths, touched: false };
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
    files: &'a Files,
    permit: &'a Permit,
    spot: &'a Entry<'a>,
    secret: bool,
    protected_paths: HashSet<(u64, u64)>,
    touched: bool,
}

/// An open directory of the tree.
struct Level {
    handle: Arc<OwnedFd>,
    /// The name in the parent directory.
    name: OsString,
    entries: Entries,
    /// Somebody besides its owner can have moved the directory, or one on the way to it, into the tree.
    is_moved: bool,
    /// The directory was moved and is closed to others: its content stays.
    is_kept: bool,
}

impl Tree<'_> {
    /// Empties the directory of this name, which must still be the examined one.
    fn empty(&mut self, parent: &OwnedFd, name: &OsStr, found: &EntryStat) -> Result<(), Fault> {
        let top = self.enter(parent, name)?;
        if seen(&top.handle)?.identity != found.identity {
            return Err(Fault::moved());
        }
        let mut levels = vec![top];
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                let Some(done) = levels.pop() else { break };
                let Some(above) = levels.last() else { break };
                let handle = Arc::clone(&above.handle);
                self.unlink((&handle, &levels), &done.name, AtFlags::REMOVEDIR)?;
                continue;
            };
            let entry = entry.map_err(Fault::os("list"))?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            if level.is_kept {
                return Err(self.refuse_moved(&levels));
            }
            let name = OsStr::from_bytes(bytes);
            let (handle, is_moved) = (Arc::clone(&level.handle), level.is_moved);
            if is_directory(&handle, name)? {
                if levels.len() >= DEEPEST {
                    return Err(self.refuse("the tree is deeper than 200 directories"));
                }
                let name = name.to_owned();
                let mut inner = self.enter(&handle, &name)?;
                let found = seen(&inner.handle)?;
                inner.is_moved = is_moved || self.files.is_movable_into(&handle, &found)?;
                inner.is_kept = inner.is_moved && is_shut(&found);
                levels.push(inner);
            } else {
                let name = name.to_owned();
                self.unlink((&handle, &levels), &name, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    fn enter(&self, parent: &OwnedFd, name: &OsStr) -> Result<Level, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        let handle = match openat2(parent, name, flags, Mode::empty(), resolve) {
            Ok(handle) => handle,
            Err(Errno::XDEV) => {
                return Err(self.refuse("a file system is mounted below the directory"));
            }
            Err(errno) => return Err(Fault::os("empty")(errno)),
        };
        if self.protected_paths.contains(&seen(&handle)?.identity) {
            return Err(self.refuse("the directory contains a protected directory"));
        }
        let entries = Entries::read_from(&handle).map_err(Fault::os("list"))?;
        let (handle, name) = (Arc::new(handle), name.to_owned());
        Ok(Level { handle, name, entries, is_moved: false, is_kept: false })
    }

    fn unlink(
        &mut self,
        (parent, levels): (&Arc<OwnedFd>, &[Level]),
        name: &OsStr,
        flags: AtFlags,
    ) -> Result<(), Fault> {
        self.permit.check()?;
        let mut path = self.spot.path.to_owned();
        path.extend(levels.iter().skip(1).map(|level| &level.name).chain([&name.to_owned()]));
        let noted = self.note(parent, &path)?;
        let gone = unlinkat(parent, name, flags).map_err(Fault::os("empty"));
        match noted.unwrap_or_default().after(gone) {
            Ok(()) => {
                self.touched = true;
                Ok(())
            }
            Err(fault) if fault.errno() == Some(Errno::NOENT) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    fn note(&self, parent: &Arc<OwnedFd>, path: &Path) -> Result<Option<Noted<'_>>, Fault> {
        if self.permit.keeper().is_none() {
            return Ok(None);
        }
        let name = path.file_name().unwrap_or_default();
        let spot = Entry { directory: Arc::clone(parent), path, name, synced_later: true };
        let Some(found) = spot.look()? else { return Ok(None) };
        let is_file = found.kind == FileType::RegularFile;
        let secret = is_file && (self.secret || denies_others(found.mode));
        let losing = Loss { content: true, secret, purged: false, edited: None, what: "removed" };
        spot.note(self.permit, Some(&found), losing).map(Some)
    }

    /// Rejects the removal of the content of the innermost directory.
    fn refuse_moved(&self, levels: &[Level]) -> Fault {
        let mut path = self.spot.path.to_owned();
        path.extend(levels.iter().skip(1).map(|level| &level.name));
        let why = "the directory is closed to others, and other users can have moved it there";
        Fault::refused(said("remove", &path, why).hint("move the directory elsewhere"))
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
