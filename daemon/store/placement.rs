//! Detects removed or replaced files of a held state directory: such a directory stores nothing any more.

use super::write_ahead_log::is_emptied;
use crate::file_identity::FileIdentity;
use std::borrow::Cow;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

/// The files that the process has open, and their loss.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// The open database; none while it is being replaced.
    database: Mutex<Option<FileIdentity>>,
    /// The first loss that was detected. It lasts until the process ends.
    lost: OnceLock<String>,
    seen: CancellationToken,
}

impl Placement {
    /// Records the database at this path as the open one.
    pub(super) fn note_database(&self, path: &Path) {
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = FileIdentity::of(path).ok();
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

    /// Checks the lock file and the database, and records a loss, also of the content of the database.
    pub(super) fn look(&self, lock: &FileIdentity) {
        // The lock is held meanwhile: a replacement of the database calls `forget_database` first.
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes =
            [Some(lock), database.as_ref()].into_iter().flatten().filter_map(|file| {
                Some(format!("the file `{}` was {}", name(file.path()), file.change()?.word()))
            });
        let loss = changes.next().or_else(|| {
            let path = database.as_ref()?.path();
            let truncated = || format!("the file `{}` was truncated", name(path));
            is_emptied(path).then(truncated)
        });
        if let Some(loss) = loss
            && self.lost.set(loss).is_ok()
        {
            self.seen.cancel();
        }
    }
}

fn name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}
