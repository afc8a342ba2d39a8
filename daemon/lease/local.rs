//! The lease of one host: a lock on the state directory.

use super::{Answer, Lease, Renewal, Token};
use crate::store::{StateLock, StoreError};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// A lock on the state directory, which the kernel releases only when the process ends.
#[derive(Debug)]
pub struct StateDirLease {
    directory: PathBuf,
    held: watch::Sender<Option<Arc<StateLock>>>,
}

impl StateDirLease {
    /// Returns a lease on this state directory.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, held: watch::Sender::new(None) }
    }

    /// Returns the held lock, for workers that act under the lease.
    #[must_use]
    pub fn held(&self) -> watch::Receiver<Option<Arc<StateLock>>> {
        self.held.subscribe()
    }
}

impl Lease for StateDirLease {
    type Refusal = StoreError;

    fn acquire(&mut self) -> Answer<'_, Result<Token, StoreError>> {
        Box::pin(async move {
            // A repeated call returns the lock that is already held: a second lock of ours would conflict with it.
            let before = self.held.borrow().clone();
            let hold = if let Some(hold) = before {
                hold
            } else {
                let directory = self.directory.clone();
                let taken = tokio::task::spawn_blocking(move || StateLock::take(&directory)).await;
                let broken = |why: tokio::task::JoinError| StoreError::Directory {
                    dir: self.directory.display().to_string(),
                    why: why.to_string(),
                    denied: false,
                };
                Arc::new(taken.map_err(broken)??)
            };
            let epoch = hold.epoch();
            self.held.send_replace(Some(hold));
            Ok(Token { epoch, lifetime: None })
        })
    }

    fn renew(&mut self, token: Token) -> Answer<'_, Renewal> {
        Box::pin(std::future::ready(Renewal::Renewed(token)))
    }

    fn release(&mut self, _token: Token) -> Answer<'_, Result<(), String>> {
        self.held.send_replace(None);
        Box::pin(std::future::ready(Ok(())))
    }
}
