//! The books that the oracle keeps from events and actions alone, never from inside the engine.
//!
//! Where the rules leave an order of two things open, the books keep both readings: what *may* be and what *must* be. Safety is
//! judged by the first, liveness by the second.

mod vertex;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{
    Class, Graph, Intent, Notice, Outcome, RunId, SemaphoreId, SlotClass, Slots, Stamp, Swap, Tick,
    VertexId, VertexSpec, WindowId,
};

/// A number of the books' own counter: later is larger.
pub(crate) type When = u64;

/// Whether a vertex must be processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Need {
    No,
    /// The rules can be read either way; it was marked then at the earliest.
    Maybe(When),
    /// It became dirty between these two.
    Must {
        low: When,
        high: When,
    },
}

/// Where a vertex rests when it does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Rest,
    /// In noop: would change, would be refreshed, unknown.
    Held,
    /// Would change, and its window is closed.
    Shut,
    /// Waits for the operator's word.
    Operator,
    Delayed(Tick),
    Failed,
    /// The engine has not said yet in this turn what follows its failure.
    JustFailed {
        run: RunId,
        since: When,
        was_failed: bool,
        maybe_good: bool,
    },
    /// The failure of its run does not count yet: its ancestors are asked.
    Asking {
        run: RunId,
        since: When,
        was_failed: bool,
    },
    /// The rules can be read either way.
    Unsure,
}

/// Who caused the mark, where that is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Cause {
    Look,
    Load,
    Drift,
}

/// Whether a watch is established.
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
    /// The definition at its start: its vertex may get another one while the run is stuck.
    pub(crate) definition: u64,
    pub(crate) slot: SlotClass,
    pub(crate) start: When,
    pub(crate) at: Tick,
    /// By what was declared when it started.
    pub(crate) deadline: Option<Tick>,
    /// The same: its vertex may become one of another kind while it is stuck.
    pub(crate) cancellable: bool,
    pub(crate) look: bool,
    pub(crate) noop: bool,
    pub(crate) refresh: bool,
    /// What was owed to it when it started, and the engine's stamp of that.
    pub(crate) saw: Option<When>,
    pub(crate) saw_stamp: Stamp,
    pub(crate) semaphores: Vec<SemaphoreId>,
    pub(crate) intent: Option<Intent>,
    pub(crate) begun: bool,
    pub(crate) applying: bool,
    pub(crate) cancelled: Option<Tick>,
    pub(crate) was_failed: bool,
    /// Somebody asked for it, perhaps and certainly: it repairs no drift.
    pub(crate) asked: bool,
    pub(crate) asked_surely: bool,
    /// It is made of something else than the last good one.
    pub(crate) remade: bool,
    /// Others have changed what it copies.
    pub(crate) supplied: bool,
    pub(crate) class: Option<Class>,
    pub(crate) stuck: bool,
    /// A swap has changed or removed its vertex since it was stuck: what it answers counts for nothing.
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
    /// A look is wanted since then; whether it must come.
    pub(crate) look: Option<(When, bool)>,
    pub(crate) phase: Phase,
    pub(crate) running: Option<Running>,
    /// The start of its last run that certainly, and that possibly, counts as good.
    pub(crate) good: (When, When),
    /// The start of the last check that found it as declared, looks included.
    pub(crate) seen: When,
    /// The last times at which a check certainly, and possibly, found a difference or could not tell.
    pub(crate) moved: (When, When),
    /// The failures in a row that its ancestors have excused: at least, at most.
    pub(crate) excused: (u8, u8),
    /// Retries left: at least, at most; the largest number is for ever.
    pub(crate) budget: (u32, u32),
    pub(crate) failures: u32,
    /// It has failed, and it was not told since that it recovered or is held.
    pub(crate) ill: bool,
    /// Whether the failures in a row are certain to be counted from the first wait.
    pub(crate) backoff_sure: bool,
    pub(crate) owed: Option<When>,
    pub(crate) owed_stamp: Stamp,
    pub(crate) owed_unsure: bool,
    pub(crate) watched: Watched,
    /// Since when one graph after the other waits for its run, or for it to be right once before it is removed.
    pub(crate) awaited: Option<Tick>,
    /// In noop: it is unknown until that one is changed, and may be asked again when that one is right or gone.
    pub(crate) unknown_until: Option<VertexId>,
    /// When the bucket is full again (GCRA), in nanoseconds.
    pub(crate) full_at: u64,
    pub(crate) bucket_unsure: bool,
    pub(crate) polls: u64,
    /// It waits, and perhaps for no other reason than a tick.
    pub(crate) polled: bool,
    pub(crate) loaded: Tick,
    pub(crate) active: Tick,
    /// In the queues of its semaphores certainly, possibly since then.
    pub(crate) ticket: (Option<When>, Option<When>),
    /// Not drift alone makes it run next: a load, the operator, a refresh.
    pub(crate) asked: bool,
    pub(crate) asked_surely: bool,
    /// It has certainly been right under its present definition.
    pub(crate) done: bool,
    /// A value came then, and no run that started later has been well.
    pub(crate) received: Option<When>,
    pub(crate) fight: Fight,
    /// A fight or the brake holds it back, as shown after the turn before and after this one.
    pub(crate) put_off: (Option<Tick>, Option<Tick>),
    /// It was found to have moved, and the brake was on: it waits for its end.
    pub(crate) braked: bool,
    /// After the turn before it was shown as waiting for its limiter, semaphores or a slot.
    pub(crate) queued: bool,
}

/// E-20: what is undone again and again, as the books count it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Fight {
    /// When its repairs of drift ended, since it was defined or asked for.
    pub(crate) repairs: Vec<Tick>,
    /// When anything of it ended that changed something: those that may count.
    pub(crate) changes: Vec<Tick>,
    /// How many changes there were when it was last shown as settled: a fight has none of these behind it.
    pub(crate) from: usize,
    /// How many repairs there were when it was certainly a fight.
    pub(crate) since: Option<usize>,
    /// Where it gives way: until when it waits since its last event was turned away, or its events are wanted again.
    pub(crate) turned: Option<Tick>,
    /// Where it gives way: until when it has to listen before it may be called calm.
    pub(crate) listens: Option<Tick>,
    /// In this turn it was asked for, so that it is over without listening.
    pub(crate) excused: bool,
    /// Its events are not delivered.
    pub(crate) deaf: bool,
    /// It is shown as running.
    pub(crate) runs: Option<RunId>,
    /// It is shown as fought over.
    pub(crate) shown: bool,
    /// It was told of.
    pub(crate) told: bool,
}

impl Running {
    /// The time to return from a cancel before the run is stuck, and before a stop leaves it behind.
    pub(crate) fn time_to_return(&self) -> Duration {
        match self.slot {
            SlotClass::Thread => Duration::from_secs(1),
            // Its family is asked to end first, and killed two seconds later.
            SlotClass::Command => Duration::from_secs(3),
        }
    }

    /// Its cancel is so long ago that it is stuck.
    pub(crate) fn is_late(&self, now: Tick) -> bool {
        self.cancelled.is_some_and(|at| at.after(self.time_to_return()) <= now)
    }
}

/// What the record of the run that ends in this turn must say.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) running: Running,
    pub(crate) vertex: VertexId,
    pub(crate) outcome: Outcome,
    /// It pays what it saw; `None` where the rules can be read either way.
    pub(crate) pays: Option<bool>,
    pub(crate) touched: bool,
    pub(crate) recorded: bool,
}

/// What the engine as a whole does, as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    Running,
    Pausing { until: Tick, drain: bool },
    Stopping,
}

/// All books.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Books {
    pub(crate) slots: Slots,
    pub(crate) one_shot: bool,
    pub(crate) clock: When,
    /// The clock at the event of this turn: what follows from it was marked then, before the starts of the turn.
    pub(crate) since: When,
    pub(crate) now: Tick,
    pub(crate) vertices: BTreeMap<VertexId, Vertex>,
    /// Left the graph while stuck, and still counted until they return.
    pub(crate) leaving: BTreeMap<VertexId, Vertex>,
    pub(crate) order: Vec<VertexId>,
    /// From, to, notify.
    pub(crate) edges: Vec<(VertexId, VertexId, bool)>,
    pub(crate) counts: Vec<u32>,
    /// The counts of the graph that was given last.
    pub(crate) given: Vec<u32>,
    /// A swap that waits, and since when.
    pub(crate) pending: Option<(Swap, Tick)>,
    /// Since when one swap after the other has been waiting.
    pub(crate) waits_since: Option<Tick>,
    pub(crate) asked: Asked,
    pub(crate) paused: bool,
    pub(crate) unsaved: u32,
    /// The drain is over: what comes now waits.
    pub(crate) drained: bool,
    /// What was dirty when the drain was asked for.
    pub(crate) drained_first: BTreeSet<VertexId>,
    /// Who may start while it drains.
    pub(crate) drainable: BTreeSet<VertexId>,
    /// Must be asked again in this turn, also where it had failed for good.
    pub(crate) asked_again: BTreeSet<VertexId>,
    /// The vertices in noop that could not be checked in this turn.
    pub(crate) unchecked: Option<VertexId>,
    /// Time has passed since the turn before.
    pub(crate) passed: bool,
    /// The vertices that became dirty in a pause: an ancestor that had failed for good gets its attempt when the pause ends.
    pub(crate) late_pokes: BTreeSet<VertexId>,
    /// Ends that are not durable, and whether a permit was given.
    pub(crate) undurable: BTreeMap<RunId, (VertexId, Outcome, bool)>,
    /// Added, changed, removed, kept by the swap that was taken last.
    pub(crate) taken: (u32, u32, u32, u32),
    pub(crate) ending: Option<Ending>,
    /// Whose run this turn is about.
    pub(crate) turn_of: Option<VertexId>,
    /// Had failed for good, and must get an attempt in this turn.
    pub(crate) back_poked: BTreeSet<VertexId>,
    /// The event of this turn may excuse their failures, whatever a swap in the same turn does to their ancestors.
    pub(crate) excusable: BTreeSet<VertexId>,
    /// Asked when a graph was loaded: the failure may have counted just before. Told at once, or when that run is durable.
    pub(crate) judged_before_load: Vec<(Option<RunId>, VertexId)>,
    /// The end that became durable in this turn.
    pub(crate) durable_now: Option<(RunId, VertexId, Outcome, bool)>,
    /// What may be told, and whether it must: at once, or when that run is durable.
    pub(crate) expected: Vec<(Option<RunId>, Notice, bool)>,
    /// Failed runs of definitions that a swap took away before they were durable: what is told of them is history.
    pub(crate) history: BTreeSet<RunId>,
    /// What was told in this turn of retries and failures.
    pub(crate) told: Vec<Notice>,
    /// Why the vertices started in this turn were started, where that is certain.
    pub(crate) started_as: BTreeMap<VertexId, Cause>,
    /// What was announced last: converged or diverged.
    pub(crate) announced: Option<bool>,
    /// Converged may be told once more (after a resume or a load).
    pub(crate) may_repeat: bool,
    /// A refresh that must still come, whatever crashes: since then.
    pub(crate) debts: BTreeMap<VertexId, When>,
    pub(crate) last_run: Option<RunId>,
    pub(crate) stop_due: Option<Tick>,
    pub(crate) stopped: bool,
    pub(crate) loaded: bool,
    /// A graph was loaded in this turn.
    pub(crate) loaded_now: bool,
    pub(crate) open: BTreeSet<WindowId>,
    pub(crate) parked: BTreeSet<VertexId>,
    /// Nothing is repaired before.
    pub(crate) braked: Option<Tick>,
    /// The bound of the brake.
    pub(crate) brake: Option<u32>,
    /// When each certain repair was that was not the first in a minute.
    pub(crate) repeated: Vec<Tick>,
    /// How many applies of each were begun. Not part of what a state is told by: it only grows, and forbids.
    pub(crate) begun: BTreeMap<VertexId, usize>,
    /// Of which class the last change of each was; and of which ones anybody was heard, or a look was asked for. Not part of it, either.
    pub(crate) changed_as: BTreeMap<VertexId, Class>,
    pub(crate) stirred_up: BTreeSet<VertexId>,
    /// When something changed a vertex that may have been a repair.
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
            last_run: None,
            stop_due: None,
            stopped: false,
            loaded: false,
            loaded_now: false,
            open: BTreeSet::new(),
            parked: BTreeSet::new(),
            braked: None,
            brake: Some(600),
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

    /// The last run of a vertex that is over and not durably so: what is told of that vertex comes after it.
    pub(crate) fn last_undurable(&self, id: VertexId) -> Option<RunId> {
        self.undurable.iter().rev().find(|(_, (other, ..))| *other == id).map(|(run, _)| *run)
    }

    pub(crate) fn notified(&self, id: VertexId) -> BTreeSet<VertexId> {
        self.children(id).filter(|(_, notify)| *notify).map(|(child, _)| child).collect()
    }

    /// Changed and removed by the swap that waits: they start nothing.
    pub(crate) fn is_suspended(&self, id: VertexId) -> bool {
        let Some((swap, _)) = &self.pending else { return false };
        let new = swap.graph.vertices().find(|vertex| vertex.id == id);
        self.vertices
            .get(&id)
            .is_some_and(|old| new.is_none_or(|new| new.definition != old.declared.definition))
    }

    /// The graph that waits removes it.
    pub(crate) fn is_about_to_go(&self, id: VertexId) -> bool {
        let gone = |swap: &Swap| swap.graph.vertices().all(|vertex| vertex.id != id);
        self.pending.as_ref().is_some_and(|(swap, _)| gone(swap))
    }

    /// E-17: a newer graph gives those no more time for whom the older one has waited.
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

    /// `realize`: it is about to be removed, and must perhaps be right once before.
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

    /// It is about to be removed, was certainly never right, and certainly still can be: a swap has to wait for it.
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

    /// It must go on under the old graph.
    pub(crate) fn is_surely_needed(&self, id: VertexId) -> bool {
        self.vertices.iter().any(|(other, vertex)| {
            (*other == id || vertex.ancestors.contains(&id))
                && self.is_surely_realized_first(*other)
        })
    }

    /// It goes on under the old graph because what must be right once waits for it.
    pub(crate) fn may_be_needed(&self, id: VertexId) -> bool {
        self.vertices.iter().any(|(other, vertex)| {
            (*other == id || vertex.ancestors.contains(&id)) && self.may_realize(*other)
        })
    }

    /// The new graph, for the vertices there are: their ancestors.
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
