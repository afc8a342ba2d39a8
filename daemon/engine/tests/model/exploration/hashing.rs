//! The identity of states: all values that can matter from here on, and no others.
//!
//! Omitted or normalised: the origin of time; the numbers of runs, tickets and stamps, which are replaced by ranks;
//! earlier findings of checks; the durable state if no restart can read it; and the constant parts of a graph.

use crate::environment::World;
use crate::model::exploration::explorer::State;
use crate::oracle_log::{Asked, Books, Need, Phase, Running, Vertex};
use crate::store::{Entry, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher};
use steadfast_engine::{ExecutorKind, Meta, Notice, Poll, RunId, Stamp, Tick, VertexId};

/// The time after which a slot may be written off: longer times make no difference.
const PATIENCE: u64 = 10_000_000_000;

/// A number of repairs that no history reaches, as the default of the repair limit.
const MANY: u32 = 600;
/// The longest wait in a contention.
const LONGEST: u64 = 300_000_000_001;

/// Returns the hash by which a state is recognised.
pub(in crate::model) fn number(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    let world = &state.world;
    let left = &state.left;
    world.engine.ranked().hash(&mut hasher);
    for (rank, run) in world.runs.values().enumerate() {
        (rank, run.start.vertex, run.start.look, run.start.refresh).hash(&mut hasher);
        (run.station, run.cancelled).hash(&mut hasher);
    }
    world.watches.hash(&mut hasher);
    (world.stopped, &world.open, &world.muted).hash(&mut hasher);
    hash_store(&world.store, left.crashes > 0 || left.swaps > 0, &mut hasher);
    hash_books(&world.oracle.books, &mut hasher);
    world.twin.hash(&mut hasher);
    if left.lapses && left.crashes > 0 {
        hash_pause(world, &mut hasher);
    }
    // The graphs, at most two, are distinguished by their content.
    for graph in [world.accepted.as_ref().map(|(graph, _)| graph), world.running.as_ref()] {
        let second = world.graphs.get(1).map(|(graph, _)| graph);
        (graph.is_some(), graph == second).hash(&mut hasher);
    }
    (left, &state.events).hash(&mut hasher);
    // A state after a violation must not be equal to a valid one.
    world.oracle.books.violations.is_empty().hash(&mut hasher);
    hasher.finish()
}

/// Hashes the end of the pause that a restart would read; other ends of pauses are hours away.
fn hash_pause<H: Hasher>(world: &World, state: &mut H) {
    let later = |until: &Tick| until.0.saturating_sub(world.now.0);
    world.store.durable.pause.as_ref().map(later).hash(state);
    for entry in &world.store.written {
        if let Entry::Pause(until) = entry {
            until.as_ref().map(later).hash(state);
        }
    }
}

/// Hashes the store. Only the order of values matters.
fn hash_store<H: Hasher>(store: &Store, is_read: bool, state: &mut H) {
    if !is_read {
        for entry in &store.written {
            match entry {
                Entry::Begin(intent) => (0, intent.vertex).hash(state),
                Entry::End(record) => (1, record.vertex).hash(state),
                Entry::Forget(id) => (2, *id).hash(state),
                Entry::Pause(_) => 3.hash(state),
            }
        }
        return;
    }
    let mut stamps = BTreeSet::new();
    for entry in &store.written {
        match entry {
            Entry::Begin(intent) => {
                stamps.extend([intent.stamp, intent.pays]);
            }
            Entry::End(record) => {
                stamps.insert(record.stamp);
                stamps.extend(record.paid);
            }
            Entry::Forget(_) | Entry::Pause(_) => {}
        }
    }
    for kept in store.durable.vertices.values() {
        stamps.extend(kept.owed.map(|(stamp, _)| stamp));
        stamps.extend(kept.open.iter().flat_map(|intent| [intent.stamp, intent.pays]));
        stamps.insert(kept.pays);
    }
    let rank: BTreeMap<Stamp, usize> = stamps.into_iter().zip(0..).collect();
    for entry in &store.written {
        match entry {
            Entry::Begin(intent) => {
                let ranks = (rank.get(&intent.stamp), rank.get(&intent.pays));
                (0, intent.vertex, ranks, &intent.owes).hash(state);
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
        let open = kept
            .open
            .as_ref()
            .map(|intent| (rank.get(&intent.stamp), rank.get(&intent.pays), &intent.owes));
        (id, kept.done, owed, kept.interrupted, rank.get(&kept.pays), open).hash(state);
    }
    store.durable.pause.is_some().hash(state);
}

/// Hashes the oracle's view of the past, so that an engine that has forgotten an event is in another state.
fn hash_books<H: Hasher>(books: &Books, state: &mut H) {
    let terms = Terms::new(books);
    for (id, vertex) in books.vertices.iter().chain(&books.leaving) {
        id.hash(state);
        terms.vertex(vertex, state);
    }
    books.leaving.len().hash(state);
    for (id, at) in books.debts.iter().chain(&books.cut_debts) {
        (id, terms.when(*at)).hash(state);
    }
    books.edges.hash(state);
    (&books.counts, &books.given, books.announced, books.may_repeat).hash(state);
    (books.paused, books.unsaved, books.drained, books.stopped, books.loaded).hash(state);
    (&books.drained_first, &books.drainable, &books.late_pokes).hash(state);
    (books.pending.is_some()).hash(state);
    match books.asked {
        Asked::Running => 0.hash(state),
        Asked::Pausing { until, drain } => (1, terms.later(until), drain).hash(state),
        Asked::Stopping => 2.hash(state),
    }
    (&books.open, &books.paused_vertices, books.repairs_suspended.map(|at| terms.later(at)))
        .hash(state);
    if books.repair_limit != Some(MANY) {
        let ages = |at: &Tick| terms.ago(*at).min(LONGEST);
        books.repeated.iter().map(ages).collect::<Vec<_>>().hash(state);
        books.stirred.iter().map(|(at, id)| (ages(at), *id)).collect::<Vec<_>>().hash(state);
    }
    books.waits_since.map(|at| terms.ago(at)).hash(state);
    books.stop_due.map(|at| terms.later(at)).hash(state);
    books.last_run.is_some().hash(state);
    let runs: Vec<RunId> = books.undurable.keys().copied().collect();
    let place = |run: &RunId| runs.iter().position(|other| other == run);
    for (id, outcome, applied) in books.undurable.values() {
        (id, outcome, applied).hash(state);
    }
    for (run, notice, must) in &books.expected {
        (run.as_ref().and_then(place), must).hash(state);
        terms.notice(notice, state);
    }
    for run in &books.history {
        place(run).hash(state);
    }
}

/// The normal form of the oracle's numbers: ranks, and times relative to now.
struct Terms {
    now: Tick,
    whens: BTreeMap<u64, usize>,
    stamps: BTreeMap<Stamp, usize>,
    /// The starts of runs of the descendants of each vertex that are in progress, or whose failure does not count yet.
    below: BTreeMap<VertexId, BTreeSet<u64>>,
}

impl Terms {
    fn new(books: &Books) -> Self {
        let mut whens = BTreeSet::from([0, 1, u64::MAX]);
        let mut stamps = BTreeSet::from([Stamp::NEVER]);
        for vertex in books.vertices.values().chain(books.leaving.values()) {
            whens.extend([vertex.good.0, vertex.good.1]);
            match vertex.need {
                Need::No => {}
                Need::Maybe(low) => whens.extend([low]),
                Need::Must { low, high } => whens.extend([low, high]),
            }
            whens.extend(vertex.owed);
            whens.extend(vertex.received);
            whens.extend(vertex.ticket.0);
            whens.extend(vertex.ticket.1);
            stamps.insert(vertex.owed_stamp);
            if let Some(run) = &vertex.running {
                whens.insert(run.start);
                whens.extend(run.saw);
                stamps.insert(run.saw_stamp);
                stamps.extend(run.intent.as_ref().map(|intent| intent.stamp));
            }
        }
        let mut below: BTreeMap<VertexId, BTreeSet<u64>> = BTreeMap::new();
        for vertex in books.vertices.values() {
            let start = match vertex.phase {
                Phase::Asking { since, .. } | Phase::JustFailed { since, .. } => Some(since),
                _ => vertex.running.as_ref().filter(|run| !run.look).map(|run| run.start),
            };
            whens.extend(start);
            for above in &vertex.ancestors {
                below.entry(*above).or_default().extend(start);
            }
        }
        whens.extend(books.debts.values().chain(books.cut_debts.values()).copied());
        let whens = whens.into_iter().zip(0..).collect();
        let stamps = stamps.into_iter().zip(0..).collect();
        Self { now: books.now, whens, stamps, below }
    }

    /// Rounds the time of a check: it matters only as earlier or later than the start of a descendant's run.
    fn round(&self, id: VertexId, at: u64) -> u64 {
        let starts = self.below.get(&id);
        starts.and_then(|starts| starts.range(..at).next_back()).copied().unwrap_or(0)
    }

    fn when(&self, at: u64) -> usize {
        self.whens.get(&at).copied().unwrap_or(usize::MAX)
    }

    fn stamp(&self, stamp: Stamp) -> usize {
        self.stamps.get(&stamp).copied().unwrap_or(usize::MAX)
    }

    fn later(&self, at: Tick) -> u64 {
        at.0.saturating_sub(self.now.0)
    }

    fn ago(&self, at: Tick) -> u64 {
        self.now.0.saturating_sub(at.0)
    }

    fn vertex<H: Hasher>(&self, vertex: &Vertex, state: &mut H) {
        let declared = &vertex.declared;
        let need = match vertex.need {
            Need::No => (0, 0, 0),
            Need::Maybe(low) => (1, self.when(low), 0),
            Need::Must { low, high } => (2, self.when(low), self.when(high)),
        };
        let good = (self.when(vertex.good.0), self.when(vertex.good.1));
        (declared.definition, declared.meta.noop, need, good, vertex.cause).hash(state);
        vertex.look.map(|(_, required)| required).hash(state);
        match vertex.phase {
            Phase::Rest => 0.hash(state),
            Phase::Held => 1.hash(state),
            Phase::Operator => 2.hash(state),
            Phase::Delayed(until) => (3, self.later(until)).hash(state),
            Phase::Failed => 4.hash(state),
            Phase::JustFailed { was_failed, maybe_good, .. } => {
                (5, was_failed, maybe_good).hash(state);
            }
            Phase::Unsure => 6.hash(state),
            Phase::Shut => 7.hash(state),
            Phase::Asking { since, was_failed, .. } => {
                (8, self.when(since), was_failed).hash(state);
            }
        }
        if let Some(run) = &vertex.running {
            self.run(run, state);
        }
        let round = |at: u64| self.when(self.round(declared.id, at));
        (round(vertex.seen), round(vertex.moved.0), round(vertex.moved.1)).hash(state);
        vertex.excused.hash(state);
        (vertex.running.is_some(), vertex.budget, vertex.backoff_sure).hash(state);
        (vertex.failures, vertex.ill, vertex.watched, vertex.polled).hash(state);
        (vertex.asked, vertex.asked_surely, vertex.awaited.map(|at| self.ago(at))).hash(state);
        vertex.unknown_until.hash(state);
        (vertex.done, vertex.received.map(|at| self.when(at))).hash(state);
        self.contention(vertex, state);
        (vertex.owed.map(|at| self.when(at)), self.stamp(vertex.owed_stamp)).hash(state);
        (vertex.owed_unsure, vertex.bucket_unsure).hash(state);
        let ticket = |at: Option<u64>| at.map(|at| self.when(at));
        (ticket(vertex.ticket.0), ticket(vertex.ticket.1)).hash(state);
        if declared.meta.pace.is_some() {
            self.later(Tick(vertex.full_at)).hash(state);
        }
        if let Poll::Every(interval) = declared.meta.poll {
            // The number of due ticks that were not taken, the time to the next one, and the time since the last
            // activity.
            let length = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
            let since = self.ago(vertex.loaded);
            ((since / length).saturating_sub(vertex.polls), since % length).hash(state);
            self.ago(vertex.active).min(length).hash(state);
        }
    }

    fn run<H: Hasher>(&self, run: &Running, state: &mut H) {
        (self.when(run.start), run.look, run.noop, run.refresh).hash(state);
        (run.saw.map(|at| self.when(at)), self.stamp(run.saw_stamp)).hash(state);
        (&run.semaphores, run.begun, run.applying, run.was_failed).hash(state);
        run.definition.hash(state);
        (run.stuck, run.obsolete, run.cancelled.map(|at| self.ago(at))).hash(state);
        let intent = run.intent.as_ref();
        intent.map(|intent| (self.stamp(intent.stamp), &intent.owes)).hash(state);
        (run.asked, run.asked_surely, run.remade, run.class, run.cancellable).hash(state);
        run.deadline.map(|at| self.later(at)).hash(state);
        // The duration matters to the slot.
        if run.executor == ExecutorKind::Thread {
            self.ago(run.at).min(PATIENCE).hash(state);
        }
    }

    /// Hashes the age of each repair, up to the age beyond which it makes no difference.
    fn contention<H: Hasher>(&self, vertex: &Vertex, state: &mut H) {
        let contention = &vertex.contention;
        (contention.since, contention.repairs.len(), contention.changes.len()).hash(state);
        (contention.muted, contention.told, contention.shown).hash(state);
        [contention.turned, contention.unmuted_until]
            .map(|at| at.map(|at| self.later(at)))
            .hash(state);
        (contention.runs.is_some(), contention.runs == vertex.running.as_ref().map(|run| run.run))
            .hash(state);
        vertex.is_possibly_contended().hash(state);
        for all in [&contention.repairs, &contention.changes] {
            for at in all.iter().rev().take(Meta::REVERSALS + 1) {
                self.ago(*at).min(LONGEST).hash(state);
            }
        }
        let put_off = (vertex.put_off.0.is_some(), vertex.put_off.1.map(|at| self.later(at)));
        (put_off, vertex.repairs_suspended).hash(state);
        let repairs = vertex.contention_repairs();
        repairs.hash(state);
        if repairs > 0 {
            // The last wait may begin there.
            self.ago(vertex.active).min(LONGEST).hash(state);
        }
    }

    fn notice<H: Hasher>(&self, notice: &Notice, state: &mut H) {
        match notice {
            Notice::Retrying(id, at) => (0, id, self.later(*at)).hash(state),
            Notice::Failed(id) => (1, id).hash(state),
            other => (2, std::mem::discriminant(other)).hash(state),
        }
    }
}

/// A violation is found even if its step leads to a known state.
#[test]
fn a_broken_rule_makes_another_state() {
    use crate::model::configurations::budget::Budget;
    use crate::model::configurations::features::{configurations, graphs};
    use crate::model::exploration::explorer::Explorer;
    use stateright::Model as _;
    let all = configurations(&graphs(1)[0], &[], Budget::NONE);
    let explorer = Explorer::new(all.first().expect("one"));
    let mut state = explorer.init_states().pop().expect("one beginning");
    let before = number(&state);
    state.world.oracle.violated("a rule");
    assert_ne!(number(&state), before);
}
