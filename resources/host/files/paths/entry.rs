//! A name in a directory that was resolved once, and the state of its object.

use crate::host::files::fault::Fault;
use crate::host::files::paths::safe_path::open_directory;
use crate::host::kernel::{fstat, statat};
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The set-user-id and set-group-id bits, which grant the rights of the file's owner or group to a process
/// that runs the file.
pub const SET_ID: u32 = 0o6000;

/// The bit of the mode that gives the rights of the owner.
pub const SET_UID: u32 = 0o4000;

/// A name in an open directory.
#[derive(Debug)]
pub struct Entry<'a> {
    pub(in crate::host::files) directory: Arc<OwnedFd>,
    pub(in crate::host::files) path: &'a Path,
    pub(in crate::host::files) name: &'a OsStr,
    /// The caller works on the whole directory and syncs the directory at the end.
    pub(in crate::host::files) synced_later: bool,
}

/// The state of an object: equal values mean the same object in the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryStat {
    /// The device and inode.
    pub identity: (u64, u64),
    /// The type of the object.
    pub kind: FileType,
    /// The permission bits, with set-id and sticky.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The size in bytes.
    pub size: u64,
    /// The number of names (hard links).
    pub links: u64,
    /// The time of the last change of any kind, in seconds and nanoseconds.
    pub changed: (i64, i64),
}

impl EntryStat {
    /// Returns the time of the last change since 1970; none for an earlier time.
    pub(crate) fn changed_at(&self) -> Option<Duration> {
        let (seconds, nanoseconds) = self.changed;
        let seconds = u64::try_from(seconds).ok()?;
        Some(Duration::new(seconds, u32::try_from(nanoseconds).unwrap_or_default()))
    }
}

impl<'a> Entry<'a> {
    pub(in crate::host::files) fn open(
        path: &'a Path,
        own_uid: u32,
    ) -> Result<Option<Self>, Fault> {
        // The root directory has no name; `.` stands for the root itself.
        let name = path.file_name().unwrap_or_else(|| OsStr::new("."));
        match open_directory(path.parent().unwrap_or(path), own_uid) {
            Ok(directory) => {
                Ok(Some(Self { directory: Arc::new(directory), path, name, synced_later: false }))
            }
            Err(fault) if fault.errno() == Some(Errno::NOENT) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Returns the declared path, for messages.
    #[must_use]
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// Returns the name in the directory.
    #[must_use]
    pub fn name(&self) -> &'a OsStr {
        self.name
    }

    /// Returns the present state of the object, without following a link as the last part.
    ///
    /// # Errors
    ///
    /// Returns the error of fstatat(2), except for a missing object.
    pub fn look(&self) -> Result<Option<EntryStat>, Fault> {
        match statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(EntryStat::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Fault::os("look at")(errno)),
        }
    }

    /// Fails unless the present state is the one that was found before.
    pub(in crate::host::files) fn still(&self, seen: Option<&EntryStat>) -> Result<(), Fault> {
        if self.look()?.as_ref() == seen { Ok(()) } else { Err(Fault::moved()) }
    }

    pub(in crate::host::files) fn directory_seen(&self) -> Result<EntryStat, Fault> {
        fstat(&self.directory)
            .map(|stat| EntryStat::of(&stat))
            .map_err(Fault::os("look at the directory of"))
    }
}

impl EntryStat {
    /// Returns true if this is the same object with the same owner, group and mode; the content may differ.
    #[must_use]
    pub fn is_as_judged(&self, judged: &Self) -> bool {
        let who = |seen: &Self| (seen.identity, seen.kind, seen.mode, seen.uid, seen.gid);
        who(self) == who(judged)
    }

    /// Returns true if this is the same object in the same state. Work inside a directory changes its time and
    /// size, so neither counts for a directory.
    #[must_use]
    pub fn is_still(&self, found: &Self) -> bool {
        match self.kind {
            FileType::Directory => self.is_as_judged(found),
            _ => self == found,
        }
    }

    /// Returns the mode for a rewrite with this owner and group: undeclared set-id bits are not passed to another
    /// owner.
    #[must_use]
    pub fn kept_mode(&self, owner: Option<u32>, group: Option<u32>) -> u32 {
        let owner_stays = owner.is_none_or(|uid| uid == self.uid);
        let group_stays = group.is_none_or(|gid| gid == self.gid);
        if owner_stays && group_stays { self.mode } else { self.mode & !SET_ID }
    }

    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "the kernel's sizes and times, whose types differ between machines"
    )]
    pub(in crate::host::files) fn of(stat: &Stat) -> Self {
        Self {
            identity: (stat.st_dev, stat.st_ino),
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: stat.st_size as u64,
            links: stat.st_nlink,
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }
}
