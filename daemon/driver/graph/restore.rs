//! The restore at startup: pauses continue, skipped runs count as done, and records of undeclared resources are
//! forgotten.

use crate::driver::{Driver, Notification};
use crate::store::{Ended, Entry, StoredState};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_engine::{RestoredState, Stamp, VertexId};
use steadfast_resources::{OnInterrupt, RunPolicy};

impl Driver {
    /// Reports the runs that a stop or a crash has cut off. Runs with `on_interrupt: skip` are recorded as ended, so
    /// that they are not skipped again at each start.
    pub(in crate::driver) fn take_skipped_as_done(
        &mut self,
        recall: &BTreeMap<VertexId, RestoredState>,
        stamp: u64,
    ) {
        for (id, restored) in recall.iter().filter(|(_, r)| r.interrupted) {
            if let Some(entry) = self.graph.waiting(*id) {
                let identity = &entry.identity;
                self.notifier.notify(&Notification::InterruptedBefore { identity });
            }
            if let Some(entry) = self.graph.waiting(*id)
                && entry.resource.traits().on_interrupt == OnInterrupt::Skip
                && entry.resource.traits().repeat != RunPolicy::State
            {
                let identity = Arc::clone(&entry.identity);
                let recipe = entry.recipe.as_ref();
                let hashes = recipe.map(|recipe| self.values.take_as_done(&identity, recipe));
                // Inputs come before the end: with the end alone, a later start would see other inputs.
                if let Some(hashes) = hashes {
                    let identity = Arc::clone(&identity);
                    self.journal.record(Entry::Taken { identity, hashes: hashes.into() });
                }
                self.journal.record(Entry::End {
                    identity,
                    definition: entry.definition,
                    outcome: Ended::Well,
                    begun: None,
                    stamp,
                    owes: Vec::new(),
                    // The refreshes that the run was doing count as done, too.
                    paid: (restored.pays > Stamp::NEVER).then_some(restored.pays.0),
                });
            }
        }
    }

    /// Handles records of identities that the first graph does not declare: forgotten after an operator's load of a
    /// complete graph, undeclared otherwise.
    pub(in crate::driver) fn forget_strangers(&mut self, recalled: &StoredState) {
        if !self.settings.whole || !self.journal.exists() {
            return;
        }
        for (identity, kept) in &recalled.resources {
            if self.graph.number(identity).is_some() {
                continue;
            }
            if !self.ownership.forgets() || self.ownership.stays(identity) {
                self.ownership.undeclared.note(identity, kept);
            } else {
                self.journal.record(Entry::Forget(identity.as_str().into()));
            }
        }
    }
}
