//! Marks directories that other users could change until root took them over.
//!
//! A user can rename a private file of root into the user's own directory. The file stays suspect after root
//! has taken the directory over, also for a later process. The mark is an extended attribute that only root
//! can read and write, and holds the time of the takeover: a later entry is root's work. On a file system
//! without such attributes, the mark lasts as long as the process.

use crate::host::files::Files;
use crate::host::files::content::read::{READ, seen};
use crate::host::files::fault::Fault;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::files::takeover::marks::{
    Closed, TAKEN_OVER, is_full, is_older, no_room, read_takeover,
};
use crate::host::kernel::{fsetxattr, getxattr, openat, setxattr_of};
use rustix::fs::{CWD, FileType, Mode, OFlags, XattrFlags};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::PoisonError;

impl Files {
    /// Marks a directory that others can change before root takes it over. Returns true if the directory is such
    /// a one.
    pub(in crate::host::files) fn begin_takeover(
        &self,
        handle: &OwnedFd,
        found: &EntryStat,
    ) -> Result<bool, Fault> {
        let is_open = found.kind == FileType::Directory
            && self.is_root()
            && !self.is_closed_directory(handle, found, None);
        if is_open {
            self.mark(handle, found.identity, None)?;
        }
        Ok(is_open)
    }

    /// Marks a regular file that another user can have open for writing when its attributes change: a declared
    /// content later gets a new inode, and the file gets no privileges.
    ///
    /// # Errors
    ///
    /// Fails if the other user has filled the room for attributes.
    pub(in crate::host::files) fn mark_open_file(
        &self,
        handle: &OwnedFd,
        identity: (u64, u64),
    ) -> Result<(), Fault> {
        // A lease of another user would prevent an open(2), so the mark goes through the path-only handle.
        match setxattr_of(handle, TAKEN_OVER, b"", XattrFlags::empty()) {
            Ok(()) => {}
            Err(errno) if is_full(errno) => return Err(no_room()),
            // Without extended attributes on this file system, the mark stays in memory.
            Err(_) => {
                let mut marks = self.marked_open.lock().unwrap_or_else(PoisonError::into_inner);
                marks.insert(identity);
            }
        }
        Ok(())
    }

    /// Returns true if the regular file has the mark of a file that another user can have open.
    #[must_use]
    pub fn is_marked_open(&self, spot: &Entry<'_>, found: &EntryStat) -> bool {
        if !self.is_root() || found.kind != FileType::RegularFile {
            return false;
        }
        let marks = self.marked_open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = marks.contains(&found.identity);
        drop(marks);
        let directory = format!("/proc/self/fd/{}", spot.directory.as_raw_fd());
        is_known
            || getxattr(Path::new(&directory).join(spot.name), TAKEN_OVER, &mut [0; 64]).is_ok()
    }

    /// Records the time at which the directory was closed to others; a directory that is still open gets no time.
    pub(in crate::host::files) fn finish_takeover(&self, handle: &OwnedFd) {
        if let Ok(now) = seen(handle)
            && self.is_closed_directory(handle, &now, None)
        {
            let nanoseconds = u32::try_from(now.changed.1).unwrap_or_default();
            // The mark without a time stays if this one finds no room: then all entries count as older.
            let _full = self.mark(handle, now.identity, Some((now.changed.0, nanoseconds)));
        }
    }

    fn mark(&self, handle: &OwnedFd, identity: (u64, u64), closed: Closed) -> Result<(), Fault> {
        let mut marks = self.taken_over.lock().unwrap_or_else(PoisonError::into_inner);
        marks.insert(identity, closed);
        drop(marks);
        // A path-only handle cannot set attributes.
        if let Ok(directory) = openat(handle, ".", READ | OFlags::DIRECTORY, Mode::empty()) {
            let text = closed.map(|(seconds, nanoseconds)| format!("{seconds}.{nanoseconds}"));
            let value = text.unwrap_or_default();
            match fsetxattr(&directory, TAKEN_OVER, value.as_bytes(), XattrFlags::empty()) {
                Err(errno) if is_full(errno) => return Err(no_room()),
                // Without extended attributes on this file system, the mark stays in memory.
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Returns true if another user can have put this entry into the directory before root took it over.
    pub(in crate::host::files) fn is_older_than_takeover(
        &self,
        directory: &OwnedFd,
        identity: (u64, u64),
        name: &OsStr,
    ) -> bool {
        let marks = self.taken_over.lock().unwrap_or_else(PoisonError::into_inner);
        let known = marks.get(&identity).copied();
        drop(marks);
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let Some(closed) = known.or_else(|| read_takeover(&path)) else { return false };
        is_older(directory.as_fd(), name, closed)
    }

    /// Returns true if the path leads through an entry that another user can have put there.
    pub(in crate::host::files) fn leads_through_takeover(&self, path: &Path) -> bool {
        let pairs = path.ancestors().zip(path.ancestors().skip(1));
        self.is_root()
            && pairs.into_iter().any(|(entry, above)| {
                let closed = above.to_str().and_then(read_takeover);
                closed.is_some_and(|closed| is_older(CWD, entry.as_os_str(), closed))
            })
    }
}
