//! What an earlier process of ours left behind when it was cut off is removed (S-5), and nothing else.

use super::Files;
use super::fault::Fault;
use super::read::open_listed;
use super::spot::{Seen, Spot};
use super::temporary::Maker;
use crate::permit::Permit;
use rustix::fs::{AtFlags, Dir, FileType, statat, unlinkat};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::PoisonError;

impl Files {
    /// Sweeps the directory of a spot when it is written for the first time. Returns the identity of the directory.
    pub(super) fn sweep_once(&self, permit: &Permit, spot: &Spot<'_>) -> Result<(u64, u64), Fault> {
        let identity = spot.directory_seen()?.identity;
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.insert(identity) {
            drop(swept);
            self.sweep_directory(permit, &spot.directory)?;
        }
        Ok(identity)
    }

    /// Removes what dead processes of ours left in the directory at this path; says how many.
    pub fn sweep(&self, permit: &Permit, directory: &Path) -> Result<usize, Fault> {
        let inside = directory.join("x");
        match self.spot(&inside)? {
            Some(spot) => self.sweep_directory(permit, &spot.directory),
            None => Ok(0),
        }
    }

    fn sweep_directory(&self, permit: &Permit, directory: &OwnedFd) -> Result<usize, Fault> {
        // A directory that cannot be listed is not ours to tidy.
        let Ok(listed) = open_listed(directory, Path::new(".")) else { return Ok(0) };
        let Ok(entries) = Dir::read_from(&listed) else { return Ok(0) };
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

    /// A file, a link or an empty directory that is owned by us.
    fn sweep_one(&self, directory: &OwnedFd, name: &OsStr) -> bool {
        let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
        let seen = Seen::of(&stat);
        if seen.uid != self.uid {
            return false;
        }
        let flags = match seen.kind {
            FileType::RegularFile | FileType::Symlink => AtFlags::empty(),
            FileType::Directory => AtFlags::REMOVEDIR,
            _ => return false,
        };
        unlinkat(directory, name, flags).is_ok()
    }
}
