//! Watches that the files of a held state directory stay in their places: a removed or replaced directory keeps nothing any more.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

/// A file, as the kernel tells it from every other.
type FileId = (u64, u64);

fn file_id(found: &Metadata) -> FileId {
    (found.dev(), found.ino())
}

/// The places of the files that a holder has open.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// The database that is open; none while it is being replaced.
    database: Mutex<Option<FileId>>,
    /// The first loss that was seen. It lasts until the process ends.
    lost: OnceLock<String>,
    seen: CancellationToken,
}

impl Placement {
    /// The database at this path is the open one.
    pub(super) fn note_database(&self, path: &Path) {
        let found = std::fs::metadata(path).ok().map(|found| file_id(&found));
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// The database may be replaced by this process.
    pub(super) fn forget_database(&self) {
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Cancelled when a file is not in its place any more.
    pub(super) fn seen(&self) -> &CancellationToken {
        &self.seen
    }

    /// The loss that was seen.
    pub(super) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// The lock file that is open is still the one at its path.
    pub(super) fn has_lock(open: &File, path: &Path) -> bool {
        open.metadata().is_ok_and(|own| moved(path, file_id(&own)).is_none())
    }

    /// Looks at both files, and remembers a loss.
    pub(super) fn look(&self, (lock, lock_path): (&File, &Path), database: &Path) {
        let own = lock.metadata().ok().map(|own| file_id(&own));
        // Held meanwhile: who replaces the database forgets it first.
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

/// The fate of a file that is not at its path any more. A path that cannot be looked at now says nothing.
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
