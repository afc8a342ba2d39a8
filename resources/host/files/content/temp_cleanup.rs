//! Removes the temporary files of earlier processes of this program that were cut off (S-5), and nothing
//! else.

use crate::host::files::Files;
use crate::host::files::content::read::{open_listed, seen};
use crate::host::files::content::temp_names::Maker;
use crate::host::files::fault::Fault;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::kernel::{Entries, openat, statat, unlinkat};
use crate::permit::Permit;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::PoisonError;

impl Files {
    /// Cleans a directory before its first change by this process, and returns the directory's identity.
    pub(in crate::host::files) fn sweep_once(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
    ) -> Result<(u64, u64), Fault> {
        let identity = spot.directory_seen()?.identity;
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.insert(identity) {
            drop(swept);
            self.sweep_directory(permit, &spot.directory)?;
        }
        Ok(identity)
    }

    /// Removes the temporary files of dead processes from the directory at this path, and returns their number.
    pub fn sweep(&self, permit: &Permit, directory: &Path) -> Result<usize, Fault> {
        let inside = directory.join("x");
        match self.open_entry(&inside)? {
            Some(spot) => self.sweep_directory(permit, &spot.directory),
            None => Ok(0),
        }
    }

    fn sweep_directory(&self, permit: &Permit, directory: &OwnedFd) -> Result<usize, Fault> {
        // A directory that cannot be listed is not cleaned.
        let Ok(listed) = open_listed(directory, Path::new(".")) else { return Ok(0) };
        let Ok(entries) = Entries::read_from(&listed) else { return Ok(0) };
        let mut count = 0;
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if Maker::of(name).is_some_and(|maker| !maker.lives()) {
                permit.check()?;
                count += usize::from(self.sweep_one(directory, name));
            }
        }
        Ok(count)
    }

    /// Removes one temporary object: a file, a link, an empty directory, or the private directory of a staged
    /// file. The object must belong to this process's user or to the owner of the directory, or to anybody if
    /// only this process's user can change the directory.
    fn sweep_one(&self, directory: &OwnedFd, name: &OsStr) -> bool {
        let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
        let Ok(above) = seen(directory) else { return false };
        let seen = EntryStat::of(&stat);
        let is_ours_alone = above.uid == self.uid && above.mode & 0o022 == 0;
        if seen.uid != self.uid && seen.uid != above.uid && !is_ours_alone {
            return false;
        }
        let flags = match seen.kind {
            FileType::RegularFile | FileType::Symlink => AtFlags::empty(),
            FileType::Directory => {
                sweep_room(directory, name, self.uid);
                AtFlags::REMOVEDIR
            }
            _ => return false,
        };
        unlinkat(directory, name, flags).is_ok()
    }
}

/// Empties the private directory of a staged file. Anybody may have chosen its name, but only this program
/// can have put the link of the same name inside.
fn sweep_room(directory: &OwnedFd, name: &OsStr, own_uid: u32) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(room) = openat(directory, name, flags, Mode::empty()) else { return };
    let is_ours = seen(&room).is_ok_and(|seen| seen.uid == own_uid && seen.mode & 0o777 == 0o700);
    let is_room = statat(&room, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
    if !is_ours || !is_room {
        return;
    }
    let Ok(entries) = Entries::read_from(&room) else { return };
    // The identifying link goes last, so that the next cleanup can finish an interrupted one.
    let others = entries.flatten().map(|entry| entry.file_name().to_owned());
    let others: Vec<_> = others.filter(|other| other.to_bytes() != name.as_bytes()).collect();
    for other in others.iter().filter(|other| !matches!(other.to_bytes(), b"." | b"..")) {
        let _gone = unlinkat(&room, other.as_c_str(), AtFlags::empty());
    }
    if is_empty_but(&room, name) {
        let _gone = unlinkat(&room, name, AtFlags::empty());
    }
}

fn is_empty_but(room: &OwnedFd, name: &OsStr) -> bool {
    let Ok(entries) = Entries::read_from(room) else { return false };
    entries.flatten().all(|entry| {
        let bytes = entry.file_name().to_bytes();
        matches!(bytes, b"." | b"..") || bytes == name.as_bytes()
    })
}
