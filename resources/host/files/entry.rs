//! A name in a directory that was resolved once, and what is found there.

use super::fault::Fault;
use super::safe_path::open_directory;
use crate::host::kernel::{fstat, statat};
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// The bits that lend the owner's rights to whoever runs the file.
pub const SET_ID: u32 = 0o6000;

/// A name in a directory.
#[derive(Debug)]
pub struct Entry<'a> {
    pub(super) directory: Arc<OwnedFd>,
    pub(super) path: &'a Path,
    pub(super) name: &'a OsStr,
    /// Whoever works on the whole directory makes it durable in the end.
    pub(super) synced_later: bool,
}

/// What was found at a spot: two that are equal are the same file in the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryStat {
    /// Device and inode.
    pub identity: (u64, u64),
    /// What it is.
    pub kind: FileType,
    /// Its permission bits, with set-id and sticky.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its size in bytes.
    pub size: u64,
    /// How many names it has.
    pub links: u64,
    /// When it was last changed in any way, in seconds and nanoseconds.
    pub changed: (i64, i64),
}

impl<'a> Entry<'a> {
    pub(super) fn open(path: &'a Path, own_uid: u32) -> Result<Option<Self>, Fault> {
        // The root is a name in itself.
        let name = path.file_name().unwrap_or_else(|| OsStr::new("."));
        match open_directory(path.parent().unwrap_or(path), own_uid) {
            Ok(directory) => {
                Ok(Some(Self { directory: Arc::new(directory), path, name, synced_later: false }))
            }
            Err(fault) if fault.errno() == Some(Errno::NOENT) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// The path as declared, for messages.
    #[must_use]
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// The name in its directory.
    #[must_use]
    pub fn name(&self) -> &'a OsStr {
        self.name
    }

    /// What is there now; the last part is never followed.
    pub fn look(&self) -> Result<Option<EntryStat>, Fault> {
        match statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(EntryStat::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Fault::os("look at")(errno)),
        }
    }

    /// Nothing but what was seen is there.
    pub(super) fn still(&self, seen: Option<&EntryStat>) -> Result<(), Fault> {
        if self.look()?.as_ref() == seen { Ok(()) } else { Err(Fault::moved()) }
    }

    pub(super) fn directory_seen(&self) -> Result<EntryStat, Fault> {
        fstat(&self.directory)
            .map(|stat| EntryStat::of(&stat))
            .map_err(Fault::os("look at the directory of"))
    }
}

impl EntryStat {
    /// Tells whether this is the same thing, with the same owner, group and mode; its content may be another by now.
    #[must_use]
    pub fn is_as_judged(&self, judged: &Self) -> bool {
        let who = |seen: &Self| (seen.identity, seen.kind, seen.mode, seen.uid, seen.gid);
        who(self) == who(judged)
    }

    /// Tells whether this is the same thing in the same state. What happens in a directory changes its time and size: for a
    /// directory, neither counts.
    #[must_use]
    pub fn is_still(&self, found: &Self) -> bool {
        match self.kind {
            FileType::Directory => self.is_as_judged(found),
            _ => self == found,
        }
    }

    /// Its mode when it is written anew for this owner and group: set-id bits are not handed to others undeclared.
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
    pub(super) fn of(stat: &Stat) -> Self {
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
