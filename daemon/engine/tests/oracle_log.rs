//! The records of the oracle, made from events and actions alone, never from inside the engine.
//!
//! If the rules leave the order of two events open, the records contain both readings: the *possible* and the
//! *certain*. Safety is judged by the first, liveness by the second.

mod vertex;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{
    Class, ExecutorKind, Graph, Intent, Notice, Outcome, RunId, SemaphoreId, Slots, Stamp, Swap,
    Tick, VertexId, VertexSpec, WindowId,
};

/// A value of the oracle's own counter: later is larger.
pub(crate) type When = u64;

/// The need to process a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Need {
    No,
    /// The rules allow both readings; the vertex was marked at this time at the earliest.
    Maybe(When),
    /// The vertex became dirty between these times.
    Must {
        low: When,
        high: When,
    },
}

/// The phase of a vertex that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Rest,
    /// In noop: would change, would be refreshed, or unknown.
    Held,
    /// Would change, and its window is closed.
    Shut,
    /// Waits for the operator's permission.
    Operator,
    Delayed(Tick),
    Failed,
    /// The run has failed in this turn, and the engine has not shown the consequence yet.
    JustFailed {
        run: RunId,
        since: When,
        was_failed: bool,
        maybe_good: bool,
    },
    /// The failure does not count yet: the ancestors are checked.
    Asking {
        run: RunId,
        since: When,
        was_failed: bool,
    },
    /// The rules allow both readings.
    Unsure,
}

/// The cause of a mark, if it is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cause {
    Look,
    Load,
    Drift,
}

/// The state of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Watched {
    No,
    Asked,
    Answered,
}

/// A run in progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Running {
    pub(crate) run: RunId,
    /// The definition at the start: the vertex may get another one while the run is stuck.
    pub(crate) definition: u64,
    pub(crate) executor: ExecutorKind,
    pub(crate) start: When,
    pub(crate) at: Tick,
    /// The deadline declared at the start.
    pub(crate) deadline: Option<Tick>,
    /// True if the kind at the start allows a cancel: the vertex may change its kind while the run is stuck.
    pub(crate) cancellable: bool,
    pub(crate) look: bool,
    pub(crate) noop: bool,
    pub(crate) refresh: bool,
    /// The time of the refresh owed at the start, and the engine's stamp of it.
    pub(crate) saw: Option<When>,
    pub(crate) saw_stamp: Stamp,
    pub(crate) semaphores: Vec<SemaphoreId>,
    pub(crate) intent: Option<Intent>,
    pub(crate) begun: bool,
    pub(crate) applying: bool,
    pub(crate) cancelled: Option<Tick>,
    pub(crate) is_silent: bool,
    pub(crate) was_failed: bool,
    /// Somebody requested the run, possibly and certainly: it repairs no drift.
    pub(crate) asked: bool,
    pub(crate) asked_surely: bool,
    /// The inputs differ from those of the last good run.
    pub(crate) remade: bool,
    /// Others have changed the source that the run copies.
    pub(crate) supplied: bool,
    pub(crate) class: Option<Class>,
    pub(crate) stuck: bool,
    /// A swap has changed or removed the vertex since the run was stuck: the result does not count.
    pub(crate) obsolete: bool,
}

/// One vertex.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Vertex {
    pub(crate) declared: VertexSpec,
    pub(crate) ancestors: Vec<VertexId>,
    pub(crate) need: Need,
    pub(crate) cause: Option<Cause>,
    /// The time since which a look is due, and true if it must come.
    pub(crate) look: Option<(When, bool)>,
    pub(crate) phase: Phase,
    pub(crate) running: Option<Running>,
    /// The starts of the last run that certainly, and of the last that possibly, counts as good.
    pub(crate) good: (When, When),
    /// The start of the last check that found the vertex as declared, looks included.
    pub(crate) seen: When,
    /// The times of the last check that certainly, or possibly, found a difference or could not decide.
    pub(crate) moved: (When, When),
    /// The number of failures in a row that ancestors have excused: minimum, maximum.
    pub(crate) excused: (u8, u8),
    /// The retries left: minimum, maximum; the largest number is unlimited.
    pub(crate) budget: (u32, u32),
    pub(crate) failures: u32,
    /// The vertex has failed, and no notice since says that it recovered or is held.
    pub(crate) ill: bool,
    /// True if the failures in a row certainly count from the first wait.
    pub(crate) backoff_sure: bool,
    pub(crate) owed: Option<When>,
    pub(crate) owed_stamp: Stamp,
    pub(crate) owed_unsure: bool,
    pub(crate) watched: Watched,
    /// The time since which graphs wait for the run, or for the vertex to converge once before its removal.
    pub(crate) awaited: Option<Tick>,
    /// In noop: the result is unknown until this vertex is changed, has converged or is gone.
    pub(crate) unknown_until: Option<VertexId>,
    /// The time at which the bucket is full again (GCRA), in nanoseconds.
    pub(crate) full_at: u64,
    pub(crate) bucket_unsure: bool,
    pub(crate) polls: u64,
    /// The vertex waits, possibly for a tick only.
    pub(crate) polled: bool,
    pub(crate) loaded: Tick,
    pub(crate) active: Tick,
    /// The time since which the vertex is certainly, and possibly, in the queues of its semaphores.
    pub(crate) ticket: (Option<When>, Option<When>),
    /// The next run is not only for drift: a load, the operator, a refresh.
    pub(crate) asked: bool,
    pub(crate) asked_surely: bool,
    /// The vertex has certainly converged under its present definition.
    pub(crate) done: bool,
    /// The time of a received value, until a run that started later was good.
    pub(crate) received: Option<When>,
    pub(crate) contention: Contention,
    /// The end of the delay by contention or the repair limit, as shown after the previous turn and after this one.
    pub(crate) put_off: (Option<Tick>, Option<Tick>),
    /// The vertex was found to differ under the repair limit: it waits for the end of the repair limit.
    pub(crate) repairs_suspended: bool,
    /// The vertex was shown after the previous turn as waiting for its limiter, semaphores or a slot.
    pub(crate) queued: bool,
}

/// The contention of a vertex as the oracle counts it (E-20).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Contention {
    /// The ends of its repairs of drift, since its definition or the last request.
    pub(crate) repairs: Vec<Tick>,
    /// The ends of all its runs with a change: possible repairs.
    pub(crate) changes: Vec<Tick>,
    /// The number of changes when the vertex was last shown as settled: a contention contains none of these.
    pub(crate) from: usize,
    /// The number of repairs when the contention became certain.
    pub(crate) since: Option<usize>,
    /// With `yield`: the end of the wait since its last event was discarded, or since events are delivered again.
    pub(crate) turned: Option<Tick>,
    /// With `yield`: the earliest end of the quiet time.
    pub(crate) unmuted_until: Option<Tick>,
    /// A request in this turn ends the contention without a quiet time.
    pub(crate) excused: bool,
    /// Events of the vertex are not delivered.
    pub(crate) muted: bool,
    /// The run that the engine shows.
    pub(crate) runs: Option<RunId>,
    /// The engine shows the contention.
    pub(crate) shown: bool,
    /// The contention was reported.
    pub(crate) told: bool,
}

impl Running {
    /// Returns the time to return from a cancel before the run is stuck, and before a stop leaves it behind.
    pub(crate) fn time_to_return(&self) -> Duration {
        match self.executor {
            ExecutorKind::Thread => Duration::from_secs(1),
            // The processes of the command are asked to end first, and killed two seconds later.
            ExecutorKind::Command => Duration::from_secs(3),
        }
    }

    /// Returns true if the cancel is so long ago that the run is stuck.
    pub(crate) fn is_late(&self, now: Tick) -> bool {
        self.cancelled.is_some_and(|at| at.after(self.time_to_return()) <= now)
    }
}

/// The expected record of the run that ends in this turn.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) running: Running,
    pub(crate) vertex: VertexId,
    pub(crate) outcome: Outcome,
    /// True if the refreshes owed at the start are done; `None` if the rules allow both readings.
    pub(crate) pays: Option<bool>,
    pub(crate) touched: bool,
    pub(crate) recorded: bool,
}

/// The requested mode of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    Running,
    Pausing { until: Tick, drain: bool },
    Stopping,
}

/// All records of the oracle.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Books {
    pub(crate) slots: Slots,
    pub(crate) one_shot: bool,
    pub(crate) clock: When,
    /// The counter at the event of this turn: marks of its consequences have this value, before the starts of the turn.
    pub(crate) since: When,
    pub(crate) now: Tick,
    pub(crate) vertices: BTreeMap<VertexId, Vertex>,
    /// Vertices that left the graph while stuck, counted until their runs return.
    pub(crate) leaving: BTreeMap<VertexId, Vertex>,
    pub(crate) order: Vec<VertexId>,
    /// The edges: from, to, notify.
    pub(crate) edges: Vec<(VertexId, VertexId, bool)>,
    pub(crate) counts: Vec<u32>,
    /// The counts of the last graph delivered.
    pub(crate) given: Vec<u32>,
    /// The waiting swap, and the time since which it waits.
    pub(crate) pending: Option<(Swap, Tick)>,
    /// The time since which a series of swaps has been waiting.
    pub(crate) waits_since: Option<Tick>,
    pub(crate) asked: Asked,
    pub(crate) paused: bool,
    pub(crate) unsaved: u32,
    /// The drain is over: new events wait.
    pub(crate) drained: bool,
    /// The vertices that were dirty at the request to drain.
    pub(crate) drained_first: BTreeSet<VertexId>,
    /// The vertices that may start during the drain.
    pub(crate) drainable: BTreeSet<VertexId>,
    /// Vertices that must be checked again in this turn, even after a failure for good.
    pub(crate) asked_again: BTreeSet<VertexId>,
    /// The vertex in noop whose check failed in this turn.
    pub(crate) unchecked: Option<VertexId>,
    /// Time has passed since the previous turn.
    pub(crate) passed: bool,
    /// Vertices that became dirty in a pause: a failed ancestor gets its attempt when the pause ends.
    pub(crate) late_pokes: BTreeSet<VertexId>,
    /// Ends that are not durable, and true for those with a permit.
    pub(crate) undurable: BTreeMap<RunId, (VertexId, Outcome, bool)>,
    /// The counts of the last committed swap: added, changed, removed, unchanged.
    pub(crate) taken: (u32, u32, u32, u32),
    pub(crate) ending: Option<Ending>,
    /// The vertex whose run this turn is about.
    pub(crate) turn_of: Option<VertexId>,
    /// Vertices that had failed for good, and must get an attempt in this turn.
    pub(crate) back_poked: BTreeSet<VertexId>,
    /// Vertices whose failures the event of this turn may excuse, whatever a swap does to their ancestors.
    pub(crate) excusable: BTreeSet<VertexId>,
    /// Vertices that asked at a load: the failure may have counted just before, after the end of that run.
    pub(crate) judged_before_load: Vec<(Option<RunId>, VertexId)>,
    /// The end that became durable in this turn.
    pub(crate) durable_now: Option<(RunId, VertexId, Outcome, bool)>,
    /// Notices that may come, with true for those that must: at once, or when that run is durable.
    pub(crate) expected: Vec<(Option<RunId>, Notice, bool)>,
    /// Failed runs of definitions that a swap removed before they were durable: their notices are no longer relevant.
    pub(crate) history: BTreeSet<RunId>,
    /// The notices about retries and failures in this turn.
    pub(crate) told: Vec<Notice>,
    /// The causes of the starts in this turn, if they are certain.
    pub(crate) started_as: BTreeMap<VertexId, Cause>,
    /// The last announcement: true for converged, false for diverged.
    pub(crate) announced: Option<bool>,
    /// Convergence may be reported once more (after a resume or a load).
    pub(crate) may_repeat: bool,
    /// Refreshes that must still come after any crash, with the time since which they are owed.
    pub(crate) debts: BTreeMap<VertexId, When>,
    /// The refreshes that a run was doing when a crash cut it off, with the time since when they are owed.
    pub(crate) cut_debts: BTreeMap<VertexId, When>,
    pub(crate) last_run: Option<RunId>,
    pub(crate) stop_due: Option<Tick>,
    pub(crate) stopped: bool,
    pub(crate) loaded: bool,
    /// A graph was loaded in this turn.
    pub(crate) loaded_now: bool,
    pub(crate) open: BTreeSet<WindowId>,
    pub(crate) paused_vertices: BTreeSet<VertexId>,
    /// The time before which nothing is repaired.
    pub(crate) repairs_suspended: Option<Tick>,
    /// The limit of the repair limit.
    pub(crate) repair_limit: Option<u32>,
    /// The times of the certain repairs that were not the first within a minute.
    pub(crate) repeated: Vec<Tick>,
    /// The number of begun applies of each vertex; not compared between states, since it only grows.
    pub(crate) begun: BTreeMap<VertexId, usize>,
    /// The class of each vertex's last change, and the vertices with an event or a look; not compared either.
    pub(crate) changed_as: BTreeMap<VertexId, Class>,
    pub(crate) stirred_up: BTreeSet<VertexId>,
    /// The changes that may have been repairs, by time and vertex.
    pub(crate) stirred: Vec<(Tick, VertexId)>,
    pub(crate) violations: Vec<String>,
}

impl Books {
    pub(crate) fn new(slots: Slots, one_shot: bool) -> Self {
        Self {
            slots,
            one_shot,
            clock: 0,
            since: 0,
            now: Tick(0),
            vertices: BTreeMap::new(),
            leaving: BTreeMap::new(),
            order: Vec::new(),
            edges: Vec::new(),
            counts: Vec::new(),
            given: Vec::new(),
            pending: None,
            waits_since: None,
            asked: Asked::Running,
            paused: false,
            unsaved: 0,
            drained: false,
            drained_first: BTreeSet::new(),
            drainable: BTreeSet::new(),
            asked_again: BTreeSet::new(),
            unchecked: None,
            passed: false,
            late_pokes: BTreeSet::new(),
            undurable: BTreeMap::new(),
            taken: (0, 0, 0, 0),
            ending: None,
            turn_of: None,
            back_poked: BTreeSet::new(),
            excusable: BTreeSet::new(),
            judged_before_load: Vec::new(),
            durable_now: None,
            expected: Vec::new(),
            history: BTreeSet::new(),
            told: Vec::new(),
            started_as: BTreeMap::new(),
            announced: None,
            may_repeat: true,
            debts: BTreeMap::new(),
            cut_debts: BTreeMap::new(),
            last_run: None,
            stop_due: None,
            stopped: false,
            loaded: false,
            loaded_now: false,
            open: BTreeSet::new(),
            paused_vertices: BTreeSet::new(),
            repairs_suspended: None,
            repair_limit: Some(600),
            repeated: Vec::new(),
            begun: BTreeMap::new(),
            changed_as: BTreeMap::new(),
            stirred_up: BTreeSet::new(),
            stirred: Vec::new(),
            violations: Vec::new(),
        }
    }

    pub(crate) fn children(&self, id: VertexId) -> impl Iterator<Item = (VertexId, bool)> + '_ {
        self.edges.iter().filter(move |e| e.0 == id).map(|e| (e.1, e.2))
    }

    /// Returns the last run of a vertex that is over but not durable: notices about the vertex come after it.
    pub(crate) fn last_undurable(&self, id: VertexId) -> Option<RunId> {
        self.undurable.iter().rev().find(|(_, (other, ..))| *other == id).map(|(run, _)| *run)
    }

    pub(crate) fn notified(&self, id: VertexId) -> BTreeSet<VertexId> {
        self.children(id).filter(|(_, notify)| *notify).map(|(child, _)| child).collect()
    }

    /// Returns true if the waiting swap changes or removes the vertex: no run is started.
    pub(crate) fn is_suspended(&self, id: VertexId) -> bool {
        let Some((swap, _)) = &self.pending else { return false };
        let new = swap.graph.vertices().find(|vertex| vertex.id == id);
        self.vertices
            .get(&id)
            .is_some_and(|old| new.is_none_or(|new| new.definition != old.declared.definition))
    }

    /// Returns true if the waiting graph removes the vertex.
    pub(crate) fn is_about_to_go(&self, id: VertexId) -> bool {
        let gone = |swap: &Swap| swap.graph.vertices().all(|vertex| vertex.id != id);
        self.pending.as_ref().is_some_and(|(swap, _)| gone(swap))
    }

    /// Records the waits of a swap: a newer graph gives no more time to vertices for which the older one has waited
    /// (E-17).
    pub(crate) fn await_runs(&mut self) {
        for id in self.order.clone() {
            let runs = |vertex: &Vertex| vertex.running.as_ref().is_some_and(|run| !run.stuck);
            let realizes = |vertex: &Vertex| vertex.declared.meta.realize && !vertex.done;
            let (suspended, goes) = (self.is_suspended(id), self.is_about_to_go(id));
            let now = self.now;
            if let Some(vertex) = self.vertices.get_mut(&id) {
                let waits = suspended && runs(vertex) || goes && realizes(vertex);
                vertex.awaited = waits.then(|| vertex.awaited.unwrap_or(now));
            }
        }
    }

    /// Returns true if a vertex with `realize` is about to be removed, and may have to converge once before.
    pub(crate) fn may_realize(&self, id: VertexId) -> bool {
        let in_time = |vertex: &Vertex| {
            vertex.awaited.is_some_and(|since| self.now < since.after(Duration::from_secs(30)))
        };
        self.is_about_to_go(id)
            && self.vertices.get(&id).is_some_and(in_time)
            && self.asked == Asked::Running
            && self.vertices.get(&id).is_some_and(|vertex| {
                vertex.declared.meta.realize && !vertex.declared.meta.noop && !vertex.done
            })
    }

    /// Returns true if a vertex is about to be removed, has certainly never converged, and certainly still can: the
    /// swap must wait.
    pub(crate) fn is_surely_realized_first(&self, id: VertexId) -> bool {
        let in_time = |since: Tick| self.now < since.after(Duration::from_secs(30));
        self.may_realize(id)
            && self.waits_since.is_some_and(in_time)
            && !self.paused
            && self.vertices.get(&id).is_some_and(|vertex| {
                let can = matches!(vertex.phase, Phase::Rest | Phase::Delayed(_));
                let stuck = vertex.running.as_ref().is_some_and(|run| run.stuck);
                let must = matches!(vertex.need, Need::Must { .. });
                can && must && !stuck && vertex.good.1 == 0
            })
    }

    /// Returns true if the vertex must continue under the old graph.
    pub(crate) fn is_surely_needed(&self, id: VertexId) -> bool {
        self.vertices.iter().any(|(other, vertex)| {
            (*other == id || vertex.ancestors.contains(&id))
                && self.is_surely_realized_first(*other)
        })
    }

    /// Returns true if the vertex may continue under the old graph, because a vertex with `realize` waits for it.
    pub(crate) fn may_be_needed(&self, id: VertexId) -> bool {
        self.vertices.iter().any(|(other, vertex)| {
            (*other == id || vertex.ancestors.contains(&id)) && self.may_realize(*other)
        })
    }

    /// Takes the new graph, with the ancestors of its vertices.
    pub(crate) fn take_graph(&mut self, graph: &Arc<Graph>) {
        self.order = graph.order().to_vec();
        self.edges = graph.edges().iter().map(|e| (e.from, e.to, e.notify)).collect();
        let mut above: BTreeMap<VertexId, BTreeSet<VertexId>> = BTreeMap::new();
        for id in &self.order {
            let mut all = BTreeSet::new();
            for (from, _, _) in self.edges.iter().filter(|e| e.1 == *id) {
                all.insert(*from);
                all.extend(above.get(from).into_iter().flatten().copied());
            }
            if let Some(vertex) = self.vertices.get_mut(id) {
                vertex.ancestors = all.iter().copied().collect();
            }
            above.insert(*id, all);
        }
    }
}
