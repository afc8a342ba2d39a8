//! A store with fault injection: a wrapper around any store, for tests of rejected writes and of writes whose reply is
//! lost. The wrapper enforces B-6: after an error every call fails until the handle is reopened.

use super::{Entry, Store, StoreError, StoredState};
use std::fmt;

/// A call to a store.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// [`Store::recall`].
    Recall,
    /// [`Store::commit`].
    Commit(&'a [Entry]),
    /// [`Store::reopen`].
    Reopen,
}

/// The kind of an injected failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, as on a full disk.
    Refused,
    /// The operation is done and an error is returned: the write was durable, and its sync failed.
    Unanswered,
}

/// Decides for each call if it fails, before the call reaches the store.
type Faults = Box<dyn FnMut(Call<'_>) -> Option<Fault> + Send>;

/// A store with fault injection.
pub struct Faulty {
    store: Box<dyn Store>,
    faults: Faults,
    /// An error was returned, and the handle is not reopened yet.
    lost: bool,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl Faulty {
    /// Wraps a store; `faults` decides the failures.
    pub fn new(
        store: impl Store + 'static,
        faults: impl FnMut(Call<'_>) -> Option<Fault> + Send + 'static,
    ) -> Self {
        Self { store: Box::new(store), faults: Box::new(faults), lost: false }
    }

    fn ask<T>(
        &mut self,
        call: Call<'_>,
        act: impl FnOnce(&mut dyn Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let opens = matches!(call, Call::Reopen);
        if self.lost && !opens {
            return Err(error("the handle was lost and cannot be reopened"));
        }
        let fault = (self.faults)(call);
        if fault == Some(Fault::Refused) {
            self.lost = true;
            return Err(error("no space left on device"));
        }
        let done = act(&mut *self.store);
        let answer = match fault {
            Some(_) => done.and(Err(error("the file cannot be synced"))),
            None => done,
        };
        self.lost = answer.is_err();
        answer
    }
}

fn error(why: &str) -> StoreError {
    StoreError::Database { path: "/state".to_owned(), why: why.to_owned() }
}

impl Store for Faulty {
    fn recall(&mut self) -> Result<StoredState, StoreError> {
        self.ask(Call::Recall, |store| store.recall())
    }

    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        self.ask(Call::Commit(batch), |store| store.commit(batch))
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.ask(Call::Reopen, |store| store.reopen())
    }
}
