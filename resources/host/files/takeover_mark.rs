//! Marks the directories that others could change until root took them over.
//!
//! A user can rename a private file of root's into a directory of that user. The file stays suspect after the directory
//! is root's, also for a later process. The mark is an extended attribute that only root can read and write; it holds
//! the time at which the directory was closed. An entry that was made later is root's work. Where a file system keeps no
//! such attributes, the mark lasts as long as the process.

use super::Files;
use super::attributes::Attributes;
use super::entry::{Entry, EntryStat};
use super::read::{READ, seen};
use crate::host::kernel::{born_at, fgetxattr, fsetxattr, getxattr, openat};
use rustix::fs::{CWD, FileType, Mode, OFlags, XattrFlags};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::PoisonError;

const MARK: &str = "trusted.steadfast.taken_over";

/// Seconds and nanoseconds since 1970, by the clock that stamps files.
type Moment = (i64, u32);

/// The time at which a directory was closed to others; none while that is not finished, or was cut off.
pub(super) type Closed = Option<Moment>;

/// Tells whether this file has the mark of a file that others may have open.
pub(super) fn has_open_mark(file: &OwnedFd) -> bool {
    fgetxattr(file, MARK, &mut [0; 64]).is_ok()
}

impl Files {
    /// Marks a directory that others can change, before it is taken over. Answers whether it is one.
    pub(super) fn begin_takeover(&self, handle: &OwnedFd, found: &EntryStat) -> bool {
        let is_open = found.kind == FileType::Directory
            && self.is_root()
            && !self.is_closed_directory(handle, found, None);
        if is_open {
            self.mark(handle, found.identity, None);
        }
        is_open
    }

    /// Marks a regular file that somebody else can have open for writing when its attributes change: its inode goes as soon as
    /// a content is declared.
    pub(super) fn mark_open_file(&self, spot: &Entry<'_>, found: &EntryStat, after: Attributes) {
        let is_file = found.kind == FileType::RegularFile && self.is_root();
        if is_file
            && self.may_be_open(spot, found, after)
            && let Ok(file) = openat(&spot.directory, spot.name, READ, Mode::empty())
            && seen(&file).is_ok_and(|now| now.identity == found.identity)
        {
            match fsetxattr(&file, MARK, b"", XattrFlags::empty()) {
                // A file system without such attributes keeps no mark.
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Tells a regular file that was marked as one that somebody else can have open.
    #[must_use]
    pub fn is_marked_open(&self, spot: &Entry<'_>) -> bool {
        let directory = format!("/proc/self/fd/{}", spot.directory.as_raw_fd());
        self.is_root()
            && getxattr(Path::new(&directory).join(spot.name), MARK, &mut [0; 64]).is_ok()
    }

    /// Notes when the directory was closed to others; where it is still open, nothing is noted.
    pub(super) fn finish_takeover(&self, handle: &OwnedFd) {
        if let Ok(now) = seen(handle)
            && self.is_closed_directory(handle, &now, None)
        {
            let nanoseconds = u32::try_from(now.changed.1).unwrap_or_default();
            self.mark(handle, now.identity, Some((now.changed.0, nanoseconds)));
        }
    }

    fn mark(&self, handle: &OwnedFd, identity: (u64, u64), closed: Closed) {
        let mut marks = self.taken_over.lock().unwrap_or_else(PoisonError::into_inner);
        marks.insert(identity, closed);
        drop(marks);
        // A handle that is only a path sets no attributes.
        if let Ok(directory) = openat(handle, ".", READ | OFlags::DIRECTORY, Mode::empty()) {
            let text = closed.map(|(seconds, nanoseconds)| format!("{seconds}.{nanoseconds}"));
            let value = text.unwrap_or_default();
            match fsetxattr(&directory, MARK, value.as_bytes(), XattrFlags::empty()) {
                // A file system without such attributes leaves the mark in memory.
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Tells an entry that somebody else can have put into this directory before root took it over.
    pub(super) fn is_older_than_takeover(
        &self,
        directory: &OwnedFd,
        identity: (u64, u64),
        name: &OsStr,
    ) -> bool {
        let marks = self.taken_over.lock().unwrap_or_else(PoisonError::into_inner);
        let known = marks.get(&identity).copied();
        drop(marks);
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let Some(closed) = known.or_else(|| read(&path)) else { return false };
        is_older(directory.as_fd(), name, closed)
    }

    /// Tells a path that leads through an entry which somebody else can have put there.
    pub(super) fn leads_through_takeover(&self, path: &Path) -> bool {
        let pairs = path.ancestors().zip(path.ancestors().skip(1));
        self.is_root()
            && pairs.into_iter().any(|(entry, above)| {
                let closed = above.to_str().and_then(read);
                closed.is_some_and(|closed| is_older(CWD, entry.as_os_str(), closed))
            })
    }
}

pub(super) fn is_older(directory: BorrowedFd<'_>, name: &OsStr, closed: Closed) -> bool {
    match (closed, born_at(directory, name)) {
        (Some(closed), Some(born)) => born <= closed,
        _ => true,
    }
}

/// The mark of a directory, if it has one.
fn read(directory: &str) -> Option<Closed> {
    let mut value = [0_u8; 64];
    let length = getxattr(directory, MARK, &mut value).ok()?;
    Some(value.get(..length).and_then(moment))
}

pub(super) fn moment(value: &[u8]) -> Closed {
    let (seconds, nanoseconds) = std::str::from_utf8(value).ok()?.split_once('.')?;
    Some((seconds.parse().ok()?, nanoseconds.parse().ok()?))
}
