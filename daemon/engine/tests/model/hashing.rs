//! When two states are the same: ranks in place of numbers that only grow.

use super::explorer::State;
use crate::books::{Books, Need, Phase, Vertex};
use crate::store::{Entry, Store};
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher};
use steadfast_engine::{RunId, Stamp, VertexId};

pub(super) fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

pub(super) fn hash<H: Hasher>(world: &World, state: &mut H) {
    world.engine.ranked().hash(state);
    for (rank, run) in world.runs.values().enumerate() {
        (rank, run.start.vertex, run.start.look, run.start.refresh, run.station, run.cancelled)
            .hash(state);
    }
    world.stopped.hash(state);
    hash_store(&world.store, state);
    hash_books(&world.oracle.books, state);
    world.accepted.as_ref().map(|(graph, _)| graph.order().to_vec()).hash(state);
    let definitions = |graph: &steadfast_engine::Graph| -> Vec<u64> {
        graph.vertices().map(|vertex| vertex.definition).collect()
    };
    world.accepted.as_ref().map(|(graph, _)| definitions(graph)).hash(state);
    world.running.as_ref().map(|graph| definitions(graph)).hash(state);
}

/// Order is all that matters of what is kept.
fn hash_store<H: Hasher>(store: &Store, state: &mut H) {
    let mut stamps = BTreeSet::new();
    for entry in &store.written {
        match entry {
            Entry::Begin(intent) => stamps.insert(intent.stamp),
            Entry::End(record) => stamps.insert(record.stamp) | stamps.extend_paid(record.paid),
            Entry::Forget(_) | Entry::Pause(_) => false,
        };
    }
    for kept in store.durable.vertices.values() {
        stamps.extend(kept.owed.map(|(stamp, _)| stamp));
        stamps.extend(kept.open.as_ref().map(|intent| intent.stamp));
    }
    let rank: BTreeMap<Stamp, usize> = stamps.into_iter().zip(0..).collect();
    for entry in &store.written {
        match entry {
            Entry::Begin(intent) => {
                (0, intent.vertex, rank.get(&intent.stamp), &intent.owes).hash(state);
            }
            Entry::End(record) => {
                let paid = record.paid.and_then(|paid| rank.get(&paid));
                (1, record.vertex, record.outcome, rank.get(&record.stamp), paid, &record.owes)
                    .hash(state);
            }
            Entry::Forget(id) => (2, id).hash(state),
            Entry::Pause(until) => (3, until.is_some()).hash(state),
        }
    }
    for (id, kept) in &store.durable.vertices {
        let owed = kept.owed.map(|(stamp, by)| (rank.get(&stamp), by));
        let open = kept.open.as_ref().map(|intent| (rank.get(&intent.stamp), &intent.owes));
        (id, kept.done, owed, kept.interrupted, open).hash(state);
    }
    store.durable.pause.is_some().hash(state);
}

trait ExtendPaid {
    fn extend_paid(&mut self, paid: Option<Stamp>) -> bool;
}

impl ExtendPaid for BTreeSet<Stamp> {
    fn extend_paid(&mut self, paid: Option<Stamp>) -> bool {
        paid.is_some_and(|stamp| self.insert(stamp))
    }
}

/// The oracle's view of the past: an engine that has forgotten something is in another state for that.
fn hash_books<H: Hasher>(books: &Books, state: &mut H) {
    let mut clocks = BTreeSet::from([0]);
    for vertex in books.vertices.values() {
        clocks.extend(moments(vertex));
    }
    clocks.extend(books.debts.values().copied());
    let rank: BTreeMap<u64, usize> = clocks.into_iter().zip(0..).collect();
    for (id, vertex) in &books.vertices {
        let times: Vec<_> = moments(vertex).iter().map(|at| rank.get(at).copied()).collect();
        let phase = match vertex.phase {
            Phase::Delayed(until) => (Phase::Rest, until.0.saturating_sub(books.now.0)),
            Phase::JustFailed { .. } => (Phase::Unsure, 0),
            phase => (phase, 0),
        };
        let need = matches!(vertex.need, Need::Must { .. });
        let run = vertex.running.as_ref().map(|r| (r.look, r.refresh, r.applying, r.begun));
        (id, need, times, phase, run, vertex.budget, vertex.failures.min(3)).hash(state);
        (vertex.owed.is_some(), vertex.owed_unsure, vertex.watched).hash(state);
        let fight = &vertex.fight;
        (vertex.asked, vertex.done, fight.repairs.len(), fight.changes.len()).hash(state);
    }
    let debts: Vec<_> = books.debts.iter().map(|(id, at)| (id, rank.get(at))).collect();
    debts.hash(state);
    books.edges.hash(state);
    books.announced.hash(state);
    books.may_repeat.hash(state);
    (books.paused, books.unsaved, books.drained).hash(state);
    (&books.drained_first, &books.drainable, books.pending.is_some()).hash(state);
    let undurable: Vec<(usize, VertexId)> =
        books.undurable.iter().enumerate().map(|(n, (_, (id, ..)))| (n, *id)).collect();
    undurable.hash(state);
    let runs: Vec<RunId> = books.undurable.keys().copied().collect();
    for (run, notice, must) in &books.expected {
        let place = run.and_then(|run| runs.iter().position(|other| *other == run));
        (place, std::mem::discriminant(notice), must).hash(state);
    }
}

fn moments(vertex: &Vertex) -> Vec<u64> {
    let mut all = vec![vertex.good.0, vertex.good.1];
    match vertex.need {
        Need::No => {}
        Need::Maybe(low) => all.push(low),
        Need::Must { low, high } => all.extend([low, high]),
    }
    all.extend(vertex.look.map(|(at, _)| at));
    all.extend(vertex.owed);
    if let Some(run) = &vertex.running {
        all.push(run.start);
        all.extend(run.saw);
    }
    all.extend(vertex.ticket.0);
    all.extend(vertex.ticket.1);
    all
}
