//! The marker of waiting events: a file beside the event log that exists while events wait in memory for a full disk.
//! A kill loses such events; the next session finds the marker and reports the gap.

use crate::store::database::with_suffix;
use crate::store::private;
use std::path::{Path, PathBuf};

/// The marker of an event log.
#[derive(Debug)]
pub(super) struct WaitingMarker {
    path: PathBuf,
    /// This process has made the file.
    is_own: bool,
}

impl WaitingMarker {
    /// Returns the marker of a log.
    pub(super) fn of(database: &Path) -> Self {
        Self { path: with_suffix(database, "-waiting"), is_own: false }
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

    /// Removes the file: nothing waits any more.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_own) {
            self.remove();
        }
    }

    /// Returns true if an earlier process left the file.
    pub(super) fn is_left(&self) -> bool {
        !self.is_own && self.path.exists()
    }

    /// Removes a file that an earlier process left.
    pub(super) fn remove(&self) {
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
        let next = WaitingMarker::of(&database);
        assert!(next.is_left());
        marker.clear();
        assert!(!next.is_left());
    }
}
