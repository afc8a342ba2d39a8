//! Detects a removed or replaced state directory, in which no entry would be found again.

use super::HistoryError;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;

/// The state directory of the first use. It stays open, so that no other directory gets its inode number.
#[derive(Debug, Default)]
pub(super) struct Placement(OnceLock<File>);

impl Placement {
    /// Checks that the state directory is the one of the first call.
    pub(super) fn check(&self, state_directory: &Path) -> Result<(), HistoryError> {
        let path = || state_directory.display().to_string();
        let refuse = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                HistoryError::Gone(path())
            }
            _ => HistoryError::Database { path: path(), why: error.to_string() },
        };
        let Some(open) = self.0.get() else {
            let opened = File::open(state_directory).map_err(refuse)?;
            // A concurrent call has opened the same directory.
            drop(self.0.set(opened));
            return Ok(());
        };
        let own = open.metadata().map_err(refuse)?;
        let found = std::fs::metadata(state_directory).map_err(refuse)?;
        if (own.dev(), own.ino()) == (found.dev(), found.ino()) {
            return Ok(());
        }
        Err(HistoryError::Gone(path()))
    }
}
