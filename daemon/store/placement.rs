//! Detects removed or replaced files of a held state directory: such a directory stores nothing any more.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

/// The device and inode numbers that identify a file.
type FileId = (u64, u64);

fn file_id(found: &Metadata) -> FileId {
    (found.dev(), found.ino())
}

/// The expected places of the files that the process has open.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// The open database; none while it is being replaced.
    database: Mutex<Option<FileId>>,
    /// The first loss that was detected. It lasts until the process ends.
    lost: OnceLock<String>,
    seen: CancellationToken,
}

impl Placement {
    /// Records the database at this path as the open one.
    pub(super) fn note_database(&self, path: &Path) {
        let found = std::fs::metadata(path).ok().map(|found| file_id(&found));
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// Allows this process to replace the database.
    pub(super) fn forget_database(&self) {
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns a token that is cancelled when a file is no longer in its place.
    pub(super) fn seen(&self) -> &CancellationToken {
        &self.seen
    }

    /// Returns the loss that was detected.
    pub(super) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Returns true if the open lock file is still the one at its path.
    pub(super) fn has_lock(open: &File, path: &Path) -> bool {
        open.metadata().is_ok_and(|own| moved(path, file_id(&own)).is_none())
    }

    /// Checks both files, and records a loss.
    pub(super) fn look(&self, (lock, lock_path): (&File, &Path), database: &Path) {
        let own = lock.metadata().ok().map(|own| file_id(&own));
        // The lock is held meanwhile: a replacement of the database calls `forget_database` first.
        let open = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let files = [(lock_path, own), (database, *open)];
        let mut moves = files.into_iter().filter_map(|(path, own)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Some(format!("the file `{name}` was {}", moved(path, own?)?))
        });
        if let Some(loss) = moves.next()
            && self.lost.set(loss).is_ok()
        {
            self.seen.cancel();
        }
    }
}

/// Returns `removed` or `replaced` for a file that is no longer at its path. An unreadable path is no evidence.
fn moved(path: &Path, own: FileId) -> Option<&'static str> {
    match std::fs::metadata(path) {
        Ok(found) if file_id(&found) == own => None,
        Ok(_) => Some("replaced"),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Some("removed")
        }
        Err(_) => None,
    }
}
