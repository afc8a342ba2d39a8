//! Marks directories that changed their owner, with the user who could move entries into them before.
//!
//! A user can rename a private file of another user into a directory. The file stays suspect after the
//! directory has changed its owner. The files of the earlier owner do not, because nobody else can have moved
//! those. The mark is an extended attribute, like the mark of a directory that root took over
//! (`takeover_mark.rs`), for objects of users.

use crate::host::files::Files;
use crate::host::files::content::read::{READ, seen};
use crate::host::files::fault::Fault;
use crate::host::files::objects::attributes::{Attributes, path_of};
use crate::host::files::paths::entry::EntryStat;
use crate::host::files::takeover::marks::{
    HANDED_OVER, Handover, is_full, is_older, no_room, read_handover,
};
use crate::host::kernel::{fsetxattr, openat};
use rustix::fs::{CWD, FileType, Mode, OFlags, XattrFlags};
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::PoisonError;

impl Files {
    /// Marks a directory before a change of its owner, or before it is closed to users who could change it.
    /// Returns none if no other user could move entries into the directory before.
    pub(in crate::host::files) fn begin_handover(
        &self,
        handle: &OwnedFd,
        found: &EntryStat,
        wanted: Attributes,
    ) -> Result<Option<Handover>, Fault> {
        if found.kind != FileType::Directory || !self.is_root() {
            return Ok(None);
        }
        // Everybody could move entries into a sticky directory; without the sticky bit, only its owner can.
        let is_sticky = found.mode & wanted.mode.unwrap_or(found.mode) & 0o1000 != 0;
        let is_one_users = is_sticky || self.is_closed_directory(handle, found, Some(found.uid));
        let by = is_one_users.then_some(found.uid);
        let stays = by.is_some() && wanted.owner.is_none_or(|uid| uid == found.uid);
        if by == Some(0) || stays {
            return Ok(None);
        }
        let before = self.handover_of(found.identity, &path_of(handle));
        let by = by.filter(|_| before.is_none_or(|before| before.by == by));
        let mark = Handover { at: None, by };
        self.mark_handover(handle, found.identity, mark)?;
        Ok(Some(mark))
    }

    /// Records the time of the finished change in the mark.
    pub(in crate::host::files) fn finish_handover(&self, handle: &OwnedFd, mark: Handover) {
        if let Ok(now) = seen(handle) {
            let nanoseconds = u32::try_from(now.changed.1).unwrap_or_default();
            let mark = Handover { at: Some((now.changed.0, nanoseconds)), ..mark };
            // The mark without a time stays if this one finds no room: then all entries count as older.
            let _full = self.mark_handover(handle, now.identity, mark);
        }
    }

    fn mark_handover(
        &self,
        handle: &OwnedFd,
        identity: (u64, u64),
        mark: Handover,
    ) -> Result<(), Fault> {
        let mut marks = self.handed_over.lock().unwrap_or_else(PoisonError::into_inner);
        marks.insert(identity, mark);
        drop(marks);
        // A path-only handle cannot set attributes.
        if let Ok(directory) = openat(handle, ".", READ | OFlags::DIRECTORY, Mode::empty()) {
            match fsetxattr(&directory, HANDED_OVER, mark.text().as_bytes(), XattrFlags::empty()) {
                Err(errno) if is_full(errno) => return Err(no_room()),
                // Without extended attributes on this file system, the mark stays in memory.
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn handover_of(&self, identity: (u64, u64), path: &str) -> Option<Handover> {
        let marks = self.handed_over.lock().unwrap_or_else(PoisonError::into_inner);
        let known = marks.get(&identity).copied();
        drop(marks);
        known.or_else(|| read_handover(path))
    }

    /// Returns true if another user can have put this owner's entry into the directory before the change of
    /// owner.
    pub(in crate::host::files) fn is_older_than_handover(
        &self,
        directory: &OwnedFd,
        identity: (u64, u64),
        (name, owner): (&OsStr, u32),
    ) -> bool {
        let mark = self.handover_of(identity, &path_of(directory));
        mark.is_some_and(|mark| !mark.clears(owner) && is_older(directory.as_fd(), name, mark.at))
    }

    /// Returns true if the path to this owner's object leads through an entry that another user can have put
    /// there.
    pub(in crate::host::files) fn leads_through_handover(&self, path: &Path, owner: u32) -> bool {
        let pairs = path.ancestors().zip(path.ancestors().skip(1));
        self.is_root()
            && pairs.into_iter().any(|(entry, above)| {
                let mark = above.to_str().and_then(read_handover);
                mark.is_some_and(|mark| {
                    !mark.clears(owner) && is_older(CWD, entry.as_os_str(), mark.at)
                })
            })
    }
}
