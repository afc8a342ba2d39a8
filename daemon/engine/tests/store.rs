//! The durable state of the simulated host: a log of written entries of which only the oldest are durable.

use std::collections::{BTreeMap, VecDeque};
use steadfast_engine::{
    Graph, Intent, Outcome, Record, RestoredState, RunId, RunPolicy, Stamp, Tick, VertexId,
};

/// One written entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Begin(Intent),
    End(Record),
    Forget(VertexId),
    Pause(Option<Tick>),
}

/// The record of one vertex.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Records {
    pub(crate) done: Option<u64>,
    pub(crate) owed: Option<(Stamp, VertexId)>,
    /// The definition of the run that was cut off.
    pub(crate) interrupted: Option<u64>,
    /// The refreshes that this run did.
    pub(crate) pays: Stamp,
    pub(crate) open: Option<Intent>,
}

/// The durable state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Durable {
    pub(crate) vertices: BTreeMap<VertexId, Records>,
    pub(crate) pause: Option<Tick>,
}

/// The simulated store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    pub(crate) durable: Durable,
    /// Entries that are written and not durable, the oldest first.
    pub(crate) written: VecDeque<Entry>,
}

impl Durable {
    pub(crate) fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Begin(intent) => {
                // An open begin is from an earlier session and never ends: its refreshes are owed.
                let kept = self.vertices.entry(intent.vertex).or_default();
                if let Some(lost) = kept.open.replace(intent.clone()) {
                    for child in &lost.owes {
                        self.owe(*child, lost.stamp, lost.vertex);
                    }
                }
            }
            Entry::End(record) => self.end(record),
            Entry::Forget(vertex) => {
                self.vertices.remove(vertex);
            }
            Entry::Pause(until) => self.pause = *until,
        }
    }

    fn end(&mut self, record: &Record) {
        let kept = self.vertices.entry(record.vertex).or_default();
        kept.open = None;
        kept.interrupted = (record.outcome == Outcome::Interrupted).then_some(record.definition);
        if matches!(record.outcome, Outcome::Unchanged | Outcome::Changed) {
            kept.done = Some(record.definition);
        }
        if let (Some(paid), Some((stamp, _))) = (record.paid, kept.owed)
            && stamp <= paid
        {
            kept.owed = None;
        }
        for child in &record.owes {
            self.owe(*child, record.stamp, record.vertex);
        }
    }

    fn owe(&mut self, child: VertexId, stamp: Stamp, cause: VertexId) {
        let owed = &mut self.vertices.entry(child).or_default().owed;
        *owed = (*owed).max(Some((stamp, cause)));
    }

    /// Returns the restored states of the vertices of a graph that are not running yet.
    pub(crate) fn recall(
        &self,
        graph: &Graph,
        running: Option<&Graph>,
    ) -> BTreeMap<VertexId, RestoredState> {
        let has = |graph: &Graph, id: VertexId| graph.order().contains(&id);
        let mut owing = self.clone();
        for kept in self.vertices.values() {
            let Some(intent) = &kept.open else { continue };
            for child in &intent.owes {
                owing.owe(*child, intent.stamp, intent.vertex);
            }
        }
        owing
            .vertices
            .iter()
            .filter(|(id, _)| has(graph, **id) && !running.is_some_and(|old| has(old, **id)))
            .map(|(id, kept)| {
                let owed = kept.owed.map(|(stamp, by)| (stamp, has(graph, by).then_some(by)));
                // A run that was cut off under another definition does not interrupt the new one.
                let cut_off = kept.open.as_ref().map(|intent| intent.definition);
                let pays = kept.open.as_ref().map_or(kept.pays, |intent| intent.pays);
                let declared = graph.vertices().find(|declared| declared.id == *id);
                let interrupted = cut_off.or(kept.interrupted).is_some_and(|definition| {
                    declared.is_some_and(|it| {
                        it.traits.repeat == RunPolicy::State || it.definition == definition
                    })
                });
                (*id, RestoredState { owed, interrupted, pays, done: kept.done })
            })
            .collect()
    }
}

impl Store {
    /// Makes the oldest written entry durable.
    pub(crate) fn commit(&mut self) -> Option<Entry> {
        let entry = self.written.pop_front()?;
        self.durable.apply(&entry);
        Some(entry)
    }

    /// Drops the oldest written entry, if it is the begin of a run.
    pub(crate) fn refuse(&mut self) -> Option<RunId> {
        let Some(Entry::Begin(intent)) = self.written.front() else { return None };
        let run = intent.run;
        self.written.pop_front();
        Some(run)
    }

    /// Returns the state as if every written entry were durable.
    pub(crate) fn seen(&self) -> Durable {
        let mut all = self.durable.clone();
        for entry in &self.written {
            all.apply(entry);
        }
        all
    }

    /// Simulates a crash that preserves `kept` of the written entries, and only the records of that graph.
    pub(crate) fn crash(&mut self, kept: usize, graph: Option<&Graph>) {
        for _ in 0..kept {
            self.commit();
        }
        self.written.clear();
        // A begin without an end: its vertex is interrupted, and its refreshes are owed from now on.
        let lost: Vec<Intent> =
            self.durable.vertices.values_mut().filter_map(|kept| kept.open.take()).collect();
        for intent in lost {
            let kept = self.durable.vertices.entry(intent.vertex).or_default();
            (kept.interrupted, kept.pays) = (Some(intent.definition), intent.pays);
            for child in &intent.owes {
                self.durable.owe(*child, intent.stamp, intent.vertex);
            }
        }
        if let Some(graph) = graph {
            self.durable.vertices.retain(|id, _| graph.order().contains(id));
        }
    }
}
