//! The worker that keeps state: opens the store, holds the state directory, and offers the journal.

use super::Shared;
use crate::store::{Hold, Journal, Key, Recalled, SqliteStore, StoreError};
use crate::supervisor::{Failure, Life, Manifold, Outputs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How much a store that cannot be opened at all matters beside other fatal failures.
const RANK: u8 = 3;

/// What the worker offers.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) journal: Journal,
    key: Key,
}

impl Kept {
    /// All that is kept now. Blocks.
    pub(super) fn recall(&self) -> Result<Recalled, StoreError> {
        Ok(Recalled { key: Some(self.key.clone()), ..self.journal.recall()? })
    }
}

fn open(hold: Arc<Hold>, directory: &Path) -> Result<Kept, StoreError> {
    let store = SqliteStore::open_held(hold)?;
    let key = SqliteStore::key(directory)?;
    let journal = Journal::spawn(Box::new(store));
    let journal = journal.map_err(|error| StoreError::Directory {
        dir: directory.display().to_string(),
        why: error.to_string(),
        denied: false,
    })?;
    Ok(Kept { journal, key })
}

/// Keeps state. Where that cannot be had at the start, the daemon ends; later it is tried again.
pub(super) fn store(shared: &Arc<Shared>) -> Manifold {
    let own = Arc::clone(shared);
    let was_open = Arc::new(AtomicBool::new(false));
    let worker = shared.worker("store", move |_, life: Life| {
        let (shared, was_open) = (Arc::clone(&own), Arc::clone(&was_open));
        async move {
            let directory = shared.state_directory.clone();
            life.say("waits for the lease");
            let mut lease = shared.held.clone();
            let hold = tokio::select! {
                hold = lease.wait_for(Option::is_some) => hold.map_err(Failure::again)?.clone(),
                () = life.stopping().cancelled() => return Ok(()),
            };
            let Some(hold) = hold else { return Err(Failure::again("the lease is gone")) };
            life.say(format!("in {}", directory.display()));
            let history = Arc::clone(&shared.history);
            let opened = tokio::task::spawn_blocking(move || {
                let opened = open(hold, &directory)?;
                history.tend();
                Ok(opened)
            });
            let opened: Result<Kept, StoreError> = opened.await.map_err(Failure::again)?;
            let kept = match opened {
                Ok(kept) => kept,
                Err(error) if was_open.load(Ordering::SeqCst) => return Err(Failure::again(error)),
                Err(error) => return Err(Failure::fatal(RANK, error)),
            };
            was_open.store(true, Ordering::SeqCst);
            drop(lease);
            let journal = kept.journal.clone();
            let closing = Closing(journal.clone());
            life.ready(Outputs::none().with(kept));
            tokio::select! {
                () = life.stopping().cancelled() => {}
                () = journal.ended().cancelled() => {
                    return Err(Failure::again(StoreError::Ended));
                }
                never = life.tend(|| journal.ping()) => match never {},
            }
            // What was written is durable, and the directory is free, before the worker has ended.
            let closed = tokio::task::spawn_blocking(move || drop(closing)).await;
            closed.map_err(Failure::again)
        }
    });
    worker.handles("lease")
}

/// Closes the journal also where the worker is cut off.
struct Closing(Journal);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}
