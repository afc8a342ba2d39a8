//! The marker of waiting events: a file beside the event log that exists while events wait in memory for a full disk.
//! A kill loses such events; the next session finds the marker and reports the gap.

use crate::store::database::with_suffix;
use crate::store::private;
use std::path::{Path, PathBuf};

/// The marker of an event log.
#[derive(Debug)]
pub(super) struct WaitingMarker {
    path: PathBuf,
    /// Events of this process wait.
    is_own: bool,
    /// An earlier process left the file, and its loss is not reported yet.
    is_left: bool,
}

impl WaitingMarker {
    /// Returns the marker of a log, before any event of this process waits.
    pub(super) fn of(database: &Path) -> Self {
        let path = with_suffix(database, "-waiting");
        let is_left = path.exists();
        Self { path, is_own: false, is_left }
    }

    /// Makes the file. An empty file needs a directory entry only, for which there is room on most full disks.
    pub(super) fn set(&mut self) {
        if self.is_own {
            return;
        }
        match private(&self.path) {
            Ok(_) => self.is_own = true,
            Err(error) => tracing::debug!(%error, "waiting events cannot be marked"),
        }
    }

    /// Records that no event of this process waits any more.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_own) {
            self.remove_unless_needed();
        }
    }

    /// Returns true if an earlier process left the file, and its loss is not reported yet.
    pub(super) const fn is_left(&self) -> bool {
        self.is_left
    }

    /// Records that the loss of the earlier process is reported.
    pub(super) fn report(&mut self) {
        self.is_left = false;
        self.remove_unless_needed();
    }

    fn remove_unless_needed(&self) {
        if self.is_own || self.is_left {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "the marker of waiting events cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_left_by_a_killed_process_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let database = directory.path().join("events.db");
        let mut marker = WaitingMarker::of(&database);
        marker.set();
        assert!(!marker.is_left(), "this process lives");
        assert!(WaitingMarker::of(&database).is_left());
        marker.clear();
        assert!(!WaitingMarker::of(&database).is_left());
    }

    /// The gap may be unwritable at first, while new events wait as well.
    #[test]
    fn a_left_marker_stays_until_its_loss_is_reported() {
        let directory = tempfile::tempdir().expect("a directory");
        let database = directory.path().join("events.db");
        WaitingMarker::of(&database).set();
        let mut marker = WaitingMarker::of(&database);
        marker.set();
        assert!(marker.is_left());
        marker.clear();
        assert!(WaitingMarker::of(&database).is_left(), "a kill before the report loses nothing");
        marker.set();
        marker.report();
        assert!(WaitingMarker::of(&database).is_left(), "new events wait");
        marker.clear();
        assert!(!WaitingMarker::of(&database).is_left());
    }
}
