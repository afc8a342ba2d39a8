//! The exchange of values at loads and at the ends of runs: senders that must send again, receivers with outdated
//! inputs, and records of sent values.

use super::codec::SentRecord;
use super::{OutgoingValues, ValueStore, senders};
use crate::config::Vertex;
use crate::driver::Driver;
use crate::driver::Notification;
use crate::driver::graph::registry::GraphRegistry;
use crate::driver::runs::ActiveRun;
use crate::store::{Entry, OpaqueText};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steadfast_engine::{Event, RunId, VertexId};
use steadfast_resources::{CheckResult, Failure, Origin, Outcome, RunPolicy, ValueRetention};

impl ValueStore {
    /// Returns the senders of the waiting graph that have not sent a value that a receiver needs.
    pub(in crate::driver) fn silent_senders(&self, graph: &GraphRegistry) -> BTreeSet<VertexId> {
        let mut silent = BTreeSet::new();
        for recipe in graph.waiting_receivers().filter_map(|(_, it)| it.recipe.as_ref()) {
            for origin in &recipe.origins {
                if let Origin::Sent { by, key } = origin
                    && !self.has(by, key)
                {
                    silent.extend(graph.number(by));
                }
            }
        }
        silent
    }

    /// returns the receivers of the waiting graph whose inputs differ from those of their last successful run.
    pub(in crate::driver) fn outdated_receivers(&self, graph: &GraphRegistry) -> Vec<VertexId> {
        let is_outdated = |(_, entry): &(VertexId, &Vertex)| {
            let recipe = entry.recipe.as_ref();
            recipe.is_some_and(|recipe| self.is_outdated(&entry.identity, recipe))
        };
        let outdated = graph.waiting_receivers().filter(is_outdated);
        outdated.map(|(id, _)| id).collect()
    }

    /// Prepares the sent values of a successful run for storage; a failure turns the run into a failed one that sends
    /// nothing (B-26).
    pub(in crate::driver) fn packed(
        &self,
        graph: &GraphRegistry,
        live: Option<&ActiveRun>,
        outcome: Outcome,
    ) -> (Outcome, Option<OutgoingValues>) {
        let touched = match outcome {
            Outcome::Unchanged => false,
            Outcome::Changed(_) => true,
            Outcome::Failed { .. } | Outcome::Interrupted => return (outcome, None),
        };
        match self.pack_of_run(graph, live) {
            Ok(parcel) => (outcome, parcel),
            Err(failure) => (Outcome::Failed { failure, touched }, None),
        }
    }

    /// Prepares the sent values of a run for storage; `None` if nothing is to be stored.
    fn pack_of_run(
        &self,
        graph: &GraphRegistry,
        live: Option<&ActiveRun>,
    ) -> Result<Option<OutgoingValues>, Failure> {
        let Some(live) = live else { return Ok(None) };
        let Some(entry) = graph.get(live.vertex) else { return Ok(None) };
        // A placeholder is never sent.
        if live.made.get().is_some_and(|made| made.blind) {
            return Ok(None);
        }
        // The expressions of the graph read the answer of a probe, also after a restart.
        let is_once = live.resource.with_sent(ValueRetention::Sealed).is_some();
        let is_kept = is_once || live.resource().sends_answers();
        if !self.is_wanted(&entry.identity, is_kept) {
            return Ok(None);
        }
        let mut sent = live.resource().sends();
        sent.extend(live.sent.iter().flat_map(|slot| slot.values()));
        if sent.is_empty() {
            return Ok(None);
        }
        self.pack(&entry.identity, entry.definition, (sent, is_once))
    }

    /// Drops the values that no receiver got before a crash, and that are stored only as a hash, if a receiver of the
    /// waiting graph needs them: nobody knows them. Returns their senders, which make new ones.
    pub(in crate::driver) fn drop_lost(&mut self, graph: &GraphRegistry) -> BTreeSet<Arc<str>> {
        let recipes = graph.waiting_receivers().filter_map(|(_, it)| it.recipe.as_ref());
        let lost = |by: &&Arc<str>| self.sent.get(*by).is_some_and(SentRecord::is_lost);
        let lost: BTreeSet<Arc<str>> =
            recipes.flat_map(|recipe| senders(recipe).filter(lost).cloned()).collect();
        self.sent.retain(|by, _| !lost.contains(by));
        lost
    }

    /// Returns the entries after which these receivers may have got the values of their senders. They must be durable
    /// before a receiver runs.
    pub(in crate::driver) fn reaching(
        &self,
        graph: &GraphRegistry,
        receivers: &[VertexId],
    ) -> Vec<Entry> {
        let recipes = receivers.iter().filter_map(|id| graph.get(*id)?.recipe.as_ref());
        let unreached = recipes.flat_map(|recipe| senders(recipe)).filter_map(|by| {
            let record = self.sent.get(by).filter(|record| record.is_unreached)?;
            let record = SentRecord { is_unreached: false, ..record.clone() };
            let text = record.to_text(by, &self.key, &self.host).ok()?;
            Some((Arc::clone(by), OpaqueText(text.into())))
        });
        let unreached: BTreeMap<_, _> = unreached.collect();
        let entry = |(identity, values)| Entry::Sent { identity, values };
        unreached.into_iter().map(entry).collect()
    }

    /// Notes that a receiver has got the values of its senders.
    fn note_reached(&mut self, senders: &[Arc<str>]) {
        for by in senders {
            if let Some(record) = self.sent.get_mut(by) {
                record.is_unreached = false;
            }
        }
    }
}

impl Driver {
    /// Schedules another run for running senders, ahead of their receivers.
    pub(in crate::driver) fn ask_to_send(&mut self, silent: BTreeSet<VertexId>) {
        for id in silent {
            let Some(entry) = self.graph.get(id) else { continue };
            let is_state = entry.resource.traits().repeat == RunPolicy::State;
            self.turn(if is_state { Event::Suspect(id) } else { Event::RetryNow(id) });
        }
    }

    /// Encrypts values that an older version stored in clear text (B-26).
    pub(in crate::driver) fn encrypt_what_was_in_clear(&mut self) {
        let in_clear = self.values.take_in_clear();
        if in_clear.is_empty() {
            return;
        }
        // Recorded first: after a crash in between, the next session repeats the wipe.
        self.journal.record_soon(Entry::Wipe { now: false });
        for identity in in_clear {
            let sent = self.sent_as_written(&identity);
            if let Some(values) = sent {
                self.journal.record_soon(Entry::Sent { identity, values });
            }
        }
        self.journal.record_soon(Entry::Wipe { now: true });
    }

    /// Returns the stored text of the sent values of a resource.
    pub(in crate::driver) fn sent_as_written(&self, identity: &Arc<str>) -> Option<OpaqueText> {
        match self.values.text(identity) {
            Ok(text) => text.map(|text| OpaqueText(text.into())),
            Err(failure) => {
                tracing::warn!(%identity, %failure, "the sent values were not stored again");
                None
            }
        }
    }

    /// Processes the sent values of a resource that its check found as declared; a failure makes the check unknown.
    pub(in crate::driver) fn same(&mut self, run: RunId) -> CheckResult {
        match self.values.pack_of_run(&self.graph, self.runs.active.get(&run)) {
            Ok(parcel) => {
                self.exchange(run, parcel);
                self.notify_answer(run);
                CheckResult::Same
            }
            Err(failure) => CheckResult::Unknown(failure),
        }
    }

    /// Reports the answer of a probe, for the expressions of the graph.
    fn notify_answer(&mut self, run: RunId) {
        let Some(live) = self.runs.active.get(&run) else { return };
        let resource = live.resource();
        if !resource.sends_answers() {
            return;
        }
        let values = resource.sends();
        if !values.is_empty() {
            let identity = self.graph.name(live.vertex);
            self.notifier.notify(&Notification::Answered { identity, values: &values });
        }
    }

    /// Reports the last answer of a probe that has failed: also after a restart it stays in use.
    pub(in crate::driver) fn notify_stored_answer(&mut self, id: VertexId) {
        let Some(entry) = self.graph.get(id) else { return };
        // A single apply knows only the answers of its own probes.
        if self.settings.one_shot || !entry.resource.sends_answers() {
            return;
        }
        let values = self.values.stored_answer(&entry.identity, entry.definition);
        if !values.is_empty() {
            self.notifier
                .notify(&Notification::Answered { identity: &entry.identity, values: &values });
        }
    }

    /// Records the inputs and the sent values of a successful run, and reports the values to their receivers. This
    /// precedes the end of the run, so that receivers are marked before they may run.
    pub(in crate::driver) fn exchange(&mut self, run: RunId, parcel: Option<OutgoingValues>) {
        let Some(live) = self.runs.active.get(&run) else { return };
        let Some(entry) = self.graph.get(live.vertex) else { return };
        let identity = Arc::clone(&entry.identity);
        let received = live.origins.clone().zip(live.made.get());
        let copied = live.copied();
        if received.is_some() || copied.is_some() {
            let hashes = self.values.note_taken(&identity, received, copied);
            if let Some(hashes) = hashes {
                let identity = Arc::clone(&identity);
                self.journal.record(Entry::Taken { identity, hashes: hashes.into() });
            }
        }
        for entry in self.values.reaching(&self.graph, &[live.vertex]) {
            self.journal.record(entry);
        }
        let got: Vec<_> = entry.recipe.iter().flat_map(|recipe| senders(recipe)).cloned().collect();
        self.values.note_reached(&got);
        let Some(parcel) = parcel else { return };
        let (values, receivers) = self.values.note_sent(&identity, parcel, &self.graph);
        self.journal.record(Entry::Sent { identity, values: OpaqueText(values.into()) });
        for id in receivers {
            self.turn(Event::Received(id));
        }
    }
}
