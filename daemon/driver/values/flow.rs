//! The exchange of values at loads and at the ends of runs: senders that must send again, receivers with outdated
//! inputs, and records of sent values.

use super::OutgoingValues;
use crate::config::Vertex;
use crate::driver::Driver;
use crate::store::{Entry, OpaqueText};
use std::collections::BTreeSet;
use std::sync::Arc;
use steadfast_engine::{Event, RunId, VertexId};
use steadfast_resources::{CheckResult, Failure, Origin, Outcome, RunPolicy, ValueRetention};

impl Driver {
    /// Returns the senders of the waiting graph that have not sent a value that a receiver needs.
    pub(in crate::driver) fn silent_senders(&self) -> BTreeSet<VertexId> {
        let mut silent = BTreeSet::new();
        for recipe in self.table.waiting_receivers().filter_map(|(_, it)| it.recipe.as_ref()) {
            for origin in &recipe.origins {
                if let Origin::Sent { by, key } = origin
                    && !self.values.has(by, key)
                {
                    silent.extend(self.table.number(by));
                }
            }
        }
        silent
    }

    /// Schedules another run for running senders, ahead of their receivers.
    pub(in crate::driver) fn ask_to_send(&mut self, silent: BTreeSet<VertexId>) {
        for id in silent {
            let Some(entry) = self.table.get(id) else { continue };
            let is_state = entry.resource.traits().repeat == RunPolicy::State;
            self.turn(if is_state { Event::Suspect(id) } else { Event::Redo(id) });
        }
    }

    /// returns the receivers of the waiting graph whose inputs differ from those of their last successful run.
    pub(in crate::driver) fn outdated_receivers(&self) -> Vec<VertexId> {
        let is_outdated = |(_, entry): &(VertexId, &Vertex)| {
            let recipe = entry.recipe.as_ref();
            recipe.is_some_and(|recipe| self.values.is_outdated(&entry.identity, recipe))
        };
        let outdated = self.table.waiting_receivers().filter(is_outdated);
        outdated.map(|(id, _)| id).collect()
    }

    /// Encrypts values that an older version stored in clear text (B-26).
    pub(in crate::driver) fn encrypt_what_was_in_clear(&mut self) {
        let in_clear = self.values.take_in_clear();
        if in_clear.is_empty() {
            return;
        }
        let wipe = |driver: &mut Self, now| {
            if let Some(keeper) = &mut driver.keeper {
                keeper.soon(Entry::Wipe { now });
            }
        };
        // Recorded first: after a crash in between, the next session repeats the wipe.
        wipe(self, false);
        for identity in in_clear {
            let sent = self.sent_as_written(&identity);
            if let Some((keeper, values)) = self.keeper.as_mut().zip(sent) {
                keeper.soon(Entry::Sent { identity, values });
            }
        }
        wipe(self, true);
    }

    /// Returns the stored text of the sent values of a resource.
    pub(in crate::driver) fn sent_as_written(&self, identity: &Arc<str>) -> Option<OpaqueText> {
        match self.values.text(identity) {
            Ok(text) => text.map(|text| OpaqueText(text.into())),
            Err(trouble) => {
                tracing::warn!(%identity, %trouble, "the sent values were not stored again");
                None
            }
        }
    }

    /// Prepares the sent values of a successful run for storage; a failure turns the run into a failed one that sends
    /// nothing (B-26).
    pub(in crate::driver) fn packed(
        &self,
        run: RunId,
        outcome: Outcome,
    ) -> (Outcome, Option<OutgoingValues>) {
        let touched = match outcome {
            Outcome::Unchanged => false,
            Outcome::Changed(_) => true,
            Outcome::Failed { .. } | Outcome::Interrupted => return (outcome, None),
        };
        match self.pack(run) {
            Ok(parcel) => (outcome, parcel),
            Err(trouble) => (Outcome::Failed { trouble, touched }, None),
        }
    }

    /// Processes the sent values of a resource that its check found as declared; a failure makes the check unknown.
    pub(in crate::driver) fn same(&mut self, run: RunId) -> CheckResult {
        match self.pack(run) {
            Ok(parcel) => {
                self.exchange(run, parcel);
                CheckResult::Same
            }
            Err(trouble) => CheckResult::Unknown(trouble),
        }
    }

    fn pack(&self, run: RunId) -> Result<Option<OutgoingValues>, Failure> {
        let Some(live) = self.runs.0.get(&run) else { return Ok(None) };
        let Some(entry) = self.table.get(live.vertex) else { return Ok(None) };
        // A placeholder is never sent.
        if live.made.get().is_some_and(|made| made.blind) {
            return Ok(None);
        }
        let is_kept = live.resource.with_sent(ValueRetention::Sealed).is_some();
        if !self.values.is_wanted(&entry.identity, is_kept) {
            return Ok(None);
        }
        let sent = live.resource().sends();
        if sent.is_empty() {
            return Ok(None);
        }
        self.values.pack(&entry.identity, entry.definition, sent)
    }

    /// Records the inputs and the sent values of a successful run, and reports the values to their receivers. This
    /// precedes the end of the run, so that receivers are marked before they may run.
    pub(in crate::driver) fn exchange(&mut self, run: RunId, parcel: Option<OutgoingValues>) {
        let Some(live) = self.runs.0.get(&run) else { return };
        let Some(entry) = self.table.get(live.vertex) else { return };
        let identity = Arc::clone(&entry.identity);
        let received = live.origins.clone().zip(live.made.get());
        let copied = live.copied();
        if received.is_some() || copied.is_some() {
            let hashes = self.values.note_taken(&identity, received, copied);
            if let (Some(keeper), Some(hashes)) = (&mut self.keeper, hashes) {
                let identity = Arc::clone(&identity);
                keeper.other(Entry::Taken { identity, hashes: hashes.into() });
            }
        }
        let Some(parcel) = parcel else { return };
        let (values, receivers) = self.values.note_sent(&identity, parcel, &self.table);
        if let Some(keeper) = &mut self.keeper {
            keeper.other(Entry::Sent { identity, values: OpaqueText(values.into()) });
        }
        for id in receivers {
            self.turn(Event::Received(id));
        }
    }
}
