//! The lock of the state directory: the worker of the store takes it, and all workers that write there have a part.

use crate::store::{StateLock, StoreError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The interval of attempts to take the lock from a command.
const RETRY: Duration = Duration::from_millis(200);

/// The number of attempts while the holder is not known to be a command.
const MOST_UNKNOWN: u32 = 2;

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
        let lock = Arc::new(self.wait_for_commands().await?);
        let epoch = lock.epoch();
        self.taken.send_replace(Some(Arc::clone(&lock)));
        self.epoch.send_replace(Some(epoch));
        Ok(lock)
    }

    /// Takes the lock, and waits while a command such as `apply` holds it. A daemon that holds it is an error.
    async fn wait_for_commands(&self) -> Result<StateLock, StoreError> {
        let (mut is_told, mut unknown) = (false, 0);
        loop {
            let directory = self.directory.clone();
            let taken = tokio::task::spawn_blocking(move || StateLock::take(&directory)).await;
            let panicked = |why: tokio::task::JoinError| StoreError::Directory {
                dir: self.directory.display().to_string(),
                why: why.to_string(),
                denied: false,
            };
            match taken.map_err(panicked)? {
                Err(StoreError::Locked { pid, .. })
                    if is_command(&pid) || unknown < MOST_UNKNOWN =>
                {
                    // A command that has just ended cannot be looked at; neither can a daemon in another container.
                    unknown = if is_command(&pid) { 0 } else { unknown + 1 };
                    if unknown == 0 && !is_told {
                        let what = "the start waits for a command that holds the state";
                        tracing::warn!(event = "waiting_for_state", "{what}: pid {pid}");
                    }
                    is_told |= unknown == 0;
                    tokio::time::sleep(RETRY).await;
                }
                result => return result,
            }
        }
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

/// Returns true for a process that can be looked at and does not run `steadfast run`.
fn is_command(pid: &str) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    !line.is_empty() && line.split(|byte| *byte == 0).all(|word| word != b"run")
}
