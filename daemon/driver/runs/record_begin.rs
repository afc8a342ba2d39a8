//! The begin of a run: it is recorded before the apply, or the run is refused.

use crate::driver::Driver;
use crate::store::{Entry, Verb};
use steadfast_engine::{Event, Intent, Stamp, VertexId};
use steadfast_resources::Failure;

impl Driver {
    /// Returns the verb for one member in the record of a begin.
    fn verb(&self, intent: &Intent, id: VertexId) -> Verb {
        let live = self.runs.active.get(&intent.run);
        if self.graph.get(id).is_some_and(|entry| entry.removes) {
            Verb::Delete
        } else if self.graph.is_deed(id) {
            Verb::Run
        } else if live.is_some_and(|live| live.creates(id)) {
            Verb::Create
        } else if live.is_some_and(|live| live.differences.is_empty() && live.parts.is_empty()) {
            Verb::Refresh
        } else {
            Verb::Update
        }
    }

    /// Records the begin of a run, or refuses the run.
    pub(in crate::driver) fn begin(&mut self, intent: &Intent) {
        self.runs.split.begins(intent.vertex);
        let is_contended = self.engine.is_contended(intent.vertex);
        let class = self.class_by_culprit(intent.vertex, intent.class);
        if let Some(live) = self.runs.active.get_mut(&intent.run) {
            live.begun = true;
            (live.class, live.is_contended) = (class, is_contended);
        }
        let without_lease = self.permission.lease.refuse_begin();
        let without_lease =
            without_lease.or_else(|| self.refuse_begin_without_permit(intent.vertex));
        let (created, is_lost) = match &without_lease {
            None if self.journal.exists() && self.mode.read_only().is_none() => {
                let live = self.runs.active.get(&intent.run);
                let creates = |id| live.is_some_and(|live| live.creates(id));
                self.ownership.mark_created(&self.graph, intent.vertex, creates)
            }
            _ => (Vec::new(), false),
        };
        let urgent = is_lost
            || !intent.owes.is_empty()
            || self.graph.is_deed(intent.vertex)
            // A restart must finish an interrupted removal: a directory may be half gone.
            || self.graph.get(intent.vertex).is_some_and(|entry| entry.removes)
            || self.graph.is_given_something(intent.vertex);
        let owes = self.graph.identities(&intent.owes);
        let entry = |id: &VertexId| Entry::Begin {
            identity: self.graph.identity(*id),
            definition: self.graph.definition(intent.vertex, *id, intent.definition),
            stamp: intent.stamp.0,
            verb: self.verb(intent, *id),
            owes: owes.clone(),
            pays: (intent.pays > Stamp::NEVER).then_some(intent.pays.0),
        };
        let begins = self.graph.groups().members(&intent.vertex).iter().map(entry);
        let reached =
            self.values.reaching(&self.graph, self.graph.groups().members(&intent.vertex));
        let entries = created.into_iter().chain(reached).chain(begins).collect();
        let failure = match without_lease {
            _ if self.mode.read_only().is_some() => {
                Some(Failure::new("no changes are made: the daemon is read-only"))
            }
            _ if !self.journal.exists() => {
                Some(Failure::new("no changes are made without a state directory"))
            }
            Some(failure) => Some(failure),
            None => self.held_by_plan(intent),
        };
        if let Some(failure) = failure {
            for id in self.graph.groups().members(&intent.vertex) {
                self.runs.failures.insert(*id, failure.clone());
            }
            self.next_events.push_back(Event::Refused(intent.run));
            return;
        }
        self.next_events.extend(self.journal.begin(intent.run, entries, urgent));
    }
}
