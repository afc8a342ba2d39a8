//! The reserve of the event log: a file whose space is freed for the last events of a session if the disk is full.

use crate::store::private;
use rustix::fs::FallocateFlags;
use std::path::{Path, PathBuf};

/// The name of the file beside the database.
const NAME: &str = "events.db-reserve";

/// The size of the file: room for the pages of a gap and of the end of a session, several times over.
const BYTES: u64 = 256 * 1024;

/// Space on the disk of the event log that nothing else can take.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// Returns the reserve of a log, on the same disk.
    pub(super) fn of(database: &Path) -> Self {
        Self { path: database.with_file_name(NAME) }
    }

    /// Allocates the space. Without room, or on a file system that cannot allocate, there is no reserve.
    pub(super) fn fill(&self) {
        let filled = private(&self.path)
            .and_then(|file| Ok(rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, BYTES)?));
        if let Err(error) = filled {
            tracing::debug!(%error, "the event log has no reserve");
            self.free();
        }
    }

    /// Frees the space; returns true if there was a reserve.
    pub(super) fn free(&self) -> bool {
        std::fs::remove_file(&self.path).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn the_reserve_takes_space_until_it_is_freed() {
        let directory = tempfile::tempdir().expect("a directory");
        let reserve = Reserve::of(&directory.path().join("events.db"));
        assert!(!reserve.free(), "no reserve yet");
        reserve.fill();
        let found = std::fs::metadata(directory.path().join(NAME)).expect("a reserve");
        assert!(found.blocks() * 512 >= BYTES, "{} blocks", found.blocks());
        assert_eq!(found.mode() & 0o777, 0o600);
        assert!(reserve.free());
        assert!(!directory.path().join(NAME).exists());
    }
}
