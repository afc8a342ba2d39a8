//! The end of a run: its outcome, the refreshes that it owes, and the ownership of its object are recorded.

use crate::driver::Driver;
use crate::store::{Ended, Entry};
use steadfast_engine::{Outcome, Record, VertexId};

impl Driver {
    /// Records the end of a run.
    pub(in crate::driver) fn end(&mut self, record: &Record) {
        if let Some(live) = self.runs.active.get_mut(&record.run) {
            live.closing = true;
        }
        let urgent =
            record.paid.is_some() || !record.owes.is_empty() || self.graph.is_deed(record.vertex);
        if record.begun.is_some() {
            for id in self.graph.groups().members(&record.vertex).to_vec() {
                let member = self.runs.active.get(&record.run).and_then(|live| live.outcome(id));
                let outcome = member.unwrap_or(record.outcome);
                self.journal.record_all(self.ownership.note_end(&self.graph, id, outcome));
            }
        }
        let is_group = self.graph.groups().get(record.vertex).is_some();
        let owes = self.graph.identities(&record.owes);
        let entry = |id: &VertexId| Entry::End {
            identity: self.graph.identity(*id),
            definition: self.graph.definition(record.vertex, *id, record.definition),
            outcome: match record.outcome {
                Outcome::Unchanged | Outcome::Changed => Ended::Well,
                // Members that did not fail have ended well.
                Outcome::Failed { .. } if is_group && self.runs.is_fine(*id) => Ended::Well,
                Outcome::Failed { .. } => Ended::Failed,
                Outcome::Interrupted => Ended::Interrupted,
            },
            begun: record.begun.map(|stamp| stamp.0),
            stamp: record.stamp.0,
            owes: owes.clone(),
            paid: record.paid.map(|stamp| stamp.0),
        };
        let members = self.graph.groups().members(&record.vertex).to_vec();
        let mut entries: Vec<Entry> = members.iter().map(entry).collect();
        for (id, at) in members.into_iter().zip(0..) {
            let well = matches!(entries.get(at), Some(Entry::End { outcome: Ended::Well, .. }));
            if well && self.graph.get(id).is_some_and(|entry| entry.removes) {
                // Last: a repeated removal does no harm, while an object that is forgotten too early is never removed.
                entries.push(Entry::Forget(self.graph.identity(id)));
                self.mark_removed(id);
            }
        }
        self.next_events.extend(self.journal.end(record.run, entries, urgent));
    }
}
