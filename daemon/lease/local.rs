//! The lease of one host: a lock on the state directory.

use super::{Answer, Lease, Renewal, Token};
use crate::store::{StateLock, StoreError};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// A lock on the state directory, which the system takes away from nobody but the dead.
#[derive(Debug)]
pub struct StateDirLease {
    directory: PathBuf,
    held: watch::Sender<Option<Arc<StateLock>>>,
}

impl StateDirLease {
    /// On this state directory.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, held: watch::Sender::new(None) }
    }

    /// What is held, for whoever works under it.
    #[must_use]
    pub fn held(&self) -> watch::Receiver<Option<Arc<StateLock>>> {
        self.held.subscribe()
    }
}

impl Lease for StateDirLease {
    type Refusal = StoreError;

    fn acquire(&mut self) -> Answer<'_, Result<Token, StoreError>> {
        Box::pin(async move {
            // Who asks for it again has it still: a lock of ours would be in our own way.
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
