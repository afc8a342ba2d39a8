//! Any store with faults on request: the simulated host with which tests and simulations ask what becomes of a refused write, and of one whose answer
//! is lost. It holds its caller to B-6: after an error nothing is answered before the handle is opened anew.

use super::{Entry, Store, StoreError, StoredState};
use std::fmt;

/// What is asked of a store.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// [`Store::recall`].
    Recall,
    /// [`Store::commit`].
    Commit(&'a [Entry]),
    /// [`Store::reopen`].
    Reopen,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done (no space is left, say).
    Refused,
    /// It is done, and an error is answered: the write was durable, and its sync failed.
    Unanswered,
}

/// Says of each call whether it fails, before it reaches the store.
type Faults = Box<dyn FnMut(Call<'_>) -> Option<Fault> + Send>;

/// A store with faults.
pub struct Faulty {
    store: Box<dyn Store>,
    faults: Faults,
    /// An error was answered, and the handle is not opened anew yet.
    lost: bool,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl Faulty {
    /// This store, with the faults that are asked for.
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
