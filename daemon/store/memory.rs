//! A store in memory, for one-shot commands and tests. Clones share their content, so that a test can simulate a crash
//! and restart.

use super::replay::{Records, fold, settle};
use super::{Entry, Store, StoreError, StoredState};
use std::sync::{Arc, Mutex, PoisonError};

/// A store whose content lasts as long as one clone of it.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    records: Arc<Mutex<Records>>,
}

impl MemoryStore {
    /// Returns a store with this content.
    #[must_use]
    pub fn with(recalled: StoredState) -> Self {
        Self { records: Arc::new(Mutex::new(Records::from(recalled))) }
    }

    /// Returns an independent copy of the store, as a crash at this moment would leave it.
    #[must_use]
    pub fn fork(&self) -> Self {
        let kept = self.records.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self { records: Arc::new(Mutex::new(kept)) }
    }
}

impl Store for MemoryStore {
    fn recall(&mut self) -> Result<StoredState, StoreError> {
        let mut kept = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        for identity in kept.in_flight() {
            settle(&identity, &mut *kept)?;
        }
        Ok(kept.clone().recalled())
    }

    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        let mut kept = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in batch {
            fold(entry, &mut *kept)?;
        }
        Ok(())
    }
}
