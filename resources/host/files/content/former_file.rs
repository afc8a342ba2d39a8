//! A file that is being replaced, kept open: a program that had opened it before writes into it, and no longer into the
//! file at the path.

use crate::host::files::Files;
use crate::host::files::content::read::{read_whole, seen};
use crate::host::files::fault::Fault;
use crate::host::files::paths::entry::{Entry, EntryStat, SET_ID};
use crate::host::kernel::{is_bound_to_thread, is_in_overlay};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The time for which writes into a replaced file are noticed. Most programs write right after they have opened a
/// file.
const LATE: Duration = Duration::from_millis(50);

/// A file that is being replaced.
#[derive(Debug)]
pub(crate) struct FormerFile {
    file: OwnedFd,
    found: EntryStat,
    /// A user besides root and the owner can put another file at the name.
    is_movable: bool,
}

/// The text that another program has written into a replaced file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LateContent {
    /// The file is unchanged.
    Nothing,
    /// The whole content, which may come into the new file.
    Whole(Vec<u8>),
    /// There is text that may not come into the new file, for this reason.
    Lost(&'static str),
}

impl FormerFile {
    /// Opens the examined file before it is replaced; none on a simulated host and in an overlay, where nobody else
    /// writes.
    ///
    /// # Errors
    ///
    /// Fails if the file was replaced or the kernel returned an error.
    pub(crate) fn open(
        files: &Files,
        entry: &Entry<'_>,
        found: &EntryStat,
    ) -> Result<Option<Self>, Fault> {
        if is_in_overlay() || is_bound_to_thread() {
            return Ok(None);
        }
        let is_movable = files.is_movable_by_others(entry, found)?;
        entry.open_judged(found).map(|file| Some(Self { file, found: *found, is_movable }))
    }

    /// Returns true if the late text may come into a file: one with the rights of the replaced file. Who could write
    /// into that one gets no other file, and no program with set-id bits.
    pub(crate) fn may_go_into(found: &EntryStat, current: &EntryStat) -> bool {
        let rights = |stat: &EntryStat| (stat.kind, stat.uid, stat.gid, stat.mode);
        rights(found) == rights(current) && current.mode & SET_ID == 0 && current.links == 1
    }

    /// Returns the state in which the file was replaced.
    pub(crate) fn found(&self) -> EntryStat {
        self.found
    }

    /// Waits for late writes, and returns the content if it is another one than `expected`. The text is lost if it
    /// exceeds `at_most` bytes, if the file has other rights now (its owner may have closed it before the text came),
    /// and if another user could lead it into another file. Blocks the thread. The content can be read once.
    ///
    /// # Errors
    ///
    /// Fails if the kernel returned an error.
    pub(crate) fn late_content(
        self,
        expected: &[u8],
        at_most: usize,
    ) -> Result<LateContent, Fault> {
        std::thread::sleep(LATE);
        let now = seen(&self.file)?;
        let Some(content) = read_whole(&self.file, at_most)? else {
            return Ok(LateContent::Lost("the text exceeds 4 MiB"));
        };
        let rights = |stat: &EntryStat| (stat.uid, stat.gid, stat.mode);
        Ok(if content == expected {
            LateContent::Nothing
        } else if rights(&now) != rights(&self.found) {
            LateContent::Lost("the replaced file has other rights now")
        } else if self.is_movable {
            LateContent::Lost("other users can swap the file")
        } else {
            LateContent::Whole(content)
        })
    }
}
