//! The store of a simulated daemon: in memory, with rejected commits, and commits that report a failure although they
//! are stored.

use crate::environment::{Shared, lock};
use std::sync::Arc;
use steadfast::store::{
    Call, Entry, Fault, Faulty, MemoryStore, ResourceRecord, Store, StoreError, StoredState,
};

/// A store in memory that outlives the daemon.
pub(crate) struct Storage {
    kept: MemoryStore,
    stage: Shared,
}

impl Storage {
    /// Wraps the store so that it fails as the environment's profile says.
    pub(crate) fn faulty(kept: MemoryStore, stage: &Shared) -> Faulty {
        let faults = Arc::clone(stage);
        let storage = Self { kept, stage: Arc::clone(stage) };
        Faulty::new(storage, move |call| {
            let fault = if matches!(call, Call::Recall) { None } else { fault(&faults) };
            if let Call::Commit(batch) = call {
                note(&faults, batch, fault);
            }
            fault
        })
    }
}

fn fault(stage: &Shared) -> Option<Fault> {
    let mut stage = lock(stage);
    if stage.dead {
        return Some(Fault::Refused);
    }
    let times = stage.profile.refusals;
    if !stage.rough || !stage.chance.once_in(times) {
        return None;
    }
    let is_kept = stage.chance.once_in(3);
    Some(if is_kept { Fault::Unanswered } else { Fault::Refused })
}

/// Notes the outcome of a commit for the coverage list and the oracle.
fn note(stage: &Shared, batch: &[Entry], fault: Option<Fault>) {
    let mut stage = lock(stage);
    let is_kept = fault.is_none();
    let has = |is_it: fn(&Entry) -> bool| batch.iter().any(is_it);
    if !is_kept && has(|entry| matches!(entry, Entry::Begin { .. })) {
        stage.saw("a begin was refused");
    }
    if !is_kept && has(|entry| matches!(entry, Entry::End { .. })) {
        stage.saw("an end was refused");
    }
    if fault == Some(Fault::Unanswered) {
        stage.saw("what was kept was not answered");
    }
    for entry in batch {
        if let Entry::Begin { identity, .. } = entry {
            stage.note_begin(identity, is_kept);
        }
        stage.say(format_args!("commit {is_kept} {entry:?}"));
    }
}

impl Storage {
    /// Notes the resources that a finished run still owes a refresh: the record must outlive the daemon until the
    /// next run.
    fn note_owed(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        for entry in batch {
            match entry {
                Entry::Begin { identity, .. } => {
                    lock(&self.stage).owed_again.remove(&**identity);
                }
                Entry::End { identity, paid: Some(_), .. } => {
                    // Reads a fork: a recall of the store itself would count as a new session.
                    let kept = self.kept.fork().recall()?;
                    let is_owed = |kept: &ResourceRecord| kept.owed.is_some();
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
    fn recall(&mut self) -> Result<StoredState, StoreError> {
        self.kept.recall()
    }

    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        self.kept.commit(batch)?;
        self.note_owed(batch)
    }
}
