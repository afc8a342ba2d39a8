//! The store of a simulated daemon: the one in memory, which sometimes refuses.

use crate::stage::{Shared, lock};
use steadfast::store::{Entry, MemoryStore, Recalled, Remembered, Store, StoreError};

/// What it keeps outlives the daemon.
pub(crate) struct Storage {
    pub(crate) kept: MemoryStore,
    pub(crate) stage: Shared,
}

impl Storage {
    fn refuse(&self) -> Result<(), StoreError> {
        let mut stage = lock(&self.stage);
        let times = stage.profile.refusals;
        if stage.dead || (stage.rough && stage.chance.once_in(times)) {
            let (path, why) = ("/state".to_owned(), "no space left on device".to_owned());
            return Err(StoreError::Database { path, why });
        }
        Ok(())
    }
}

impl Storage {
    /// Who has ended a run that paid, and is owed again by what came meanwhile: that must outlive the daemon until it runs again.
    fn note_owed(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        for entry in batch {
            match entry {
                Entry::Begin { identity, .. } => {
                    lock(&self.stage).owed_again.remove(&**identity);
                }
                Entry::End { identity, paid: Some(_), .. } => {
                    // A look of somebody else: to recall is to begin anew.
                    let kept = self.kept.fork().recall()?;
                    let is_owed = |kept: &Remembered| kept.owed.is_some();
                    if kept.resources.get(&**identity).is_some_and(is_owed) {
                        lock(&self.stage).owed_again.insert(identity.to_string());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Store for Storage {
    fn recall(&mut self) -> Result<Recalled, StoreError> {
        self.kept.recall()
    }

    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        let refused = self.refuse();
        {
            let mut stage = lock(&self.stage);
            if refused.is_err() && batch.iter().any(|entry| matches!(entry, Entry::Begin { .. })) {
                stage.saw("a begin was refused");
            }
            if refused.is_err() && batch.iter().any(|entry| matches!(entry, Entry::End { .. })) {
                stage.saw("an end was refused");
            }
            for entry in batch {
                if let Entry::Begin { identity, .. } = entry {
                    stage.note_begin(identity, refused.is_ok());
                }
                stage.say(format_args!("commit {} {entry:?}", refused.is_ok()));
            }
        }
        refused?;
        self.kept.commit(batch)?;
        self.note_owed(batch)
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.refuse()
    }
}
