//! The lock of the state directory: the worker of the store takes it, and all workers that write there have a part.

use crate::store::{StateLock, StoreError};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// The lock of one state directory. The kernel releases it when the process ends.
pub(in crate::workers) struct SharedStateLock {
    directory: PathBuf,
    taken: watch::Sender<Option<Arc<StateLock>>>,
    /// The epoch of the lock when it was taken.
    epoch: watch::Sender<Option<u64>>,
}

impl SharedStateLock {
    /// Returns the lock of a directory, not taken yet.
    pub(in crate::workers) fn new(directory: PathBuf) -> Self {
        Self { directory, taken: watch::Sender::default(), epoch: watch::Sender::default() }
    }

    /// Takes the lock. A repeated call returns the lock that is already taken: a second one would conflict with it.
    ///
    /// # Errors
    /// The state directory cannot be used, or another process has locked it.
    pub(in crate::workers) async fn take(&self) -> Result<Arc<StateLock>, StoreError> {
        if let Some(lock) = self.taken.borrow().clone() {
            return Ok(lock);
        }
        let directory = self.directory.clone();
        let taken = tokio::task::spawn_blocking(move || StateLock::take(&directory)).await;
        let panicked = |why: tokio::task::JoinError| StoreError::Directory {
            dir: self.directory.display().to_string(),
            why: why.to_string(),
            denied: false,
        };
        let lock = Arc::new(taken.map_err(panicked)??);
        let epoch = lock.epoch();
        self.taken.send_replace(Some(Arc::clone(&lock)));
        self.epoch.send_replace(Some(epoch));
        Ok(lock)
    }

    /// Returns the lock, if it is taken.
    pub(in crate::workers) fn current(&self) -> Option<Arc<StateLock>> {
        self.taken.borrow().clone()
    }

    /// Returns a receiver of the lock.
    pub(in crate::workers) fn subscribe(&self) -> watch::Receiver<Option<Arc<StateLock>>> {
        self.taken.subscribe()
    }

    /// Returns a receiver of the epoch.
    pub(in crate::workers) fn epoch(&self) -> watch::Receiver<Option<u64>> {
        self.epoch.subscribe()
    }
}
