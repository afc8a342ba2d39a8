//! The engine: a value with one entry point, [`Engine::handle`].
//!
//! An event changes a few vertices and marks them *stale*. Consequences (blocked vertices, vertices that may start,
//! counts) are derived for stale vertices only, until none is left. Then free slots are assigned. Then the engine
//! completes a pause, a swap, a stop or convergence if one is due. Therefore each rule is implemented once, and does
//! not depend on the order of past events.

use crate::contention::attribution::Wrote;
use crate::contention::global_limit::RepairLimiter;
use crate::contention::record::Contention;
use crate::interface::action::{Action, Actions, Notice};
use crate::interface::event::Event;
use crate::interface::ids::{RunId, Stamp, Tick, VertexId, WindowId};
use crate::interface::query_replies::{Counts, Mode};
use crate::pauses::pause::PauseState;
use crate::pauses::stop::StopState;
use crate::scheduling::queues::{Lane, Lanes, Semaphores};
use crate::state::deadlines::Timers;
use crate::state::topology::Topology;
use crate::state::vertex::Vertex;
use crate::swaps::waiting_graph::Pending;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The number of runs that may be in progress at once, by the resource that they occupy (E-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slots {
    /// The number of runs that occupy a thread.
    pub threads: u32,
    /// The number of runs that occupy a child process.
    pub commands: u32,
    /// The number of hung threads that may be written off and replaced.
    pub replaceable: u32,
}

impl Default for Slots {
    fn default() -> Self {
        Self { threads: 64, commands: 256, replaceable: 64 }
    }
}

/// The engine: graph, phases and queues, without access to the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Engine {
    pub(crate) one_shot: bool,
    /// In a plan: the vertices whose apply is certain to fail according to their check.
    pub(crate) certain: BTreeSet<VertexId>,
    pub(crate) replaceable: u32,
    pub(crate) now: Tick,
    pub(crate) stamp: Stamp,
    pub(crate) next_run: u64,
    pub(crate) next_ticket: u64,
    pub(crate) next_entry: u64,
    pub(crate) mode: Mode,
    pub(crate) vertices: Vec<Option<Vertex>>,
    pub(crate) topology: Arc<Topology>,
    pub(crate) semaphores: Semaphores,
    pub(crate) lanes: Lanes,
    pub(crate) timers: Timers,
    /// Runs in progress.
    pub(crate) in_flight: BTreeMap<RunId, VertexId>,
    /// Runs on threads, oldest first, with the time at which their slot is written off.
    pub(crate) patience: VecDeque<(Tick, RunId, VertexId)>,
    /// Runs that are over but not durable yet: their vertex, and the notices to send when they are.
    pub(crate) closing: BTreeMap<RunId, (VertexId, Vec<Notice>)>,
    /// Vertices to be settled again before this turn ends.
    pub(crate) stale: Vec<VertexId>,
    /// Vertices that could start when the engine runs again.
    pub(crate) shelf: Vec<VertexId>,
    /// The number of vertices in the queues of semaphores and slots.
    pub(crate) queued: u32,
    pub(crate) counts: Counts,
    pub(crate) disturbing: u32,
    pub(crate) said_converged: bool,
    pub(crate) pending: Option<Pending>,
    /// A swap is in progress: its edges are not in place yet.
    pub(crate) rewires: bool,
    pub(crate) pause: PauseState,
    pub(crate) stop: Option<StopState>,
    /// Vertices that were repaired recently, or are contended (E-20).
    pub(crate) contentions: BTreeMap<VertexId, Contention>,
    /// The recent applies, oldest first.
    pub(crate) wrote: VecDeque<Wrote>,
    pub(crate) repair_limiter: RepairLimiter,
    /// The open maintenance windows.
    pub(crate) open: BTreeSet<WindowId>,
    /// The vertices whose failure does not count yet.
    pub(crate) asking: BTreeSet<VertexId>,
    /// The vertices in `asking` to be judged before this turn ends.
    pub(crate) unjudged: Vec<VertexId>,
    /// The vertices that are paused on their own.
    pub(crate) paused_vertices: BTreeSet<VertexId>,
    pub(crate) out: Actions,
}

impl Engine {
    /// Returns the engine with its counter at `stamp` or later, so that all stamps of an earlier engine are older than
    /// its own.
    #[must_use]
    pub fn counting_from(mut self, stamp: Stamp) -> Self {
        self.stamp = self.stamp.max(stamp);
        self
    }

    /// Returns an engine with the empty graph. A `one_shot` engine (for `apply` and `plan`) requests no watches and no
    /// polls (E-1).
    #[must_use]
    pub fn new(slots: Slots, one_shot: bool) -> Self {
        Self {
            one_shot,
            certain: BTreeSet::new(),
            replaceable: slots.replaceable,
            now: Tick(0),
            stamp: Stamp(1),
            next_run: 1,
            next_ticket: 1,
            next_entry: 1,
            mode: Mode::Running,
            vertices: Vec::new(),
            topology: Arc::default(),
            semaphores: Semaphores::default(),
            lanes: Lanes { threads: Lane::new(slots.threads), commands: Lane::new(slots.commands) },
            timers: Timers::default(),
            in_flight: BTreeMap::new(),
            patience: VecDeque::new(),
            closing: BTreeMap::new(),
            stale: Vec::new(),
            shelf: Vec::new(),
            queued: 0,
            counts: Counts::default(),
            disturbing: 0,
            said_converged: true,
            pending: None,
            rewires: false,
            pause: PauseState::default(),
            stop: None,
            contentions: BTreeMap::new(),
            wrote: VecDeque::new(),
            repair_limiter: RepairLimiter::default(),
            open: BTreeSet::new(),
            asking: BTreeSet::new(),
            unjudged: Vec::new(),
            paused_vertices: BTreeSet::new(),
            out: Vec::new(),
        }
    }

    /// Handles one event at time `now` and returns the actions that follow, in order.
    ///
    /// The time must not go backwards; a smaller value counts as the last one. Events about unknown vertices and runs
    /// have no effect.
    #[must_use]
    pub fn handle(&mut self, now: Tick, event: Event) -> Actions {
        self.now = self.now.max(now);
        self.fire();
        self.take(event);
        if self.pending.as_ref().is_some_and(|pending| pending.realizes) {
            self.freeze();
        }
        loop {
            self.settle();
            if !self.judge_failures() && !self.dispatch() && !self.conclude() {
                break;
            }
        }
        std::mem::take(&mut self.out)
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Swap(swap) => self.swap(swap),
            Event::Watching(id) => self.watch_answered(id, true),
            Event::Unwatched(id) => self.watch_answered(id, false),
            Event::Changed(id) => self.changed(id),
            Event::Received(id) => self.received(id),
            Event::Suspect(id) => self.suspect(id),
            Event::Look(id) => self.look(id),
            Event::RetryNow(id) => self.retry_now(id),
            Event::Late(run) => self.late(run),
            Event::Doubt { vertex, until } => self.invalidate_finding(vertex, until),
            Event::Remade(run) => self.remade(run),
            Event::Supplied(run) => self.supplied(run),
            Event::Checked(run, verdict) => self.checked(run, verdict),
            Event::Begun(run) => self.begun(run),
            Event::Refused(run) => self.refused(run),
            Event::Ended(run, outcome) => self.ended(run, outcome),
            Event::Durable(run) => self.durable(run),
            Event::Pause(pause) => self.pause(pause),
            Event::PauseSaved => self.pause_saved(),
            Event::Resume => self.resume(),
            Event::Stop { grace } => self.stop(grace),
            Event::Window { window, open } => self.window(window, open),
            Event::PauseVertex { vertex, paused } => self.pause_vertex(vertex, paused),
            Event::Wake => {}
        }
    }

    /// Returns the time at which [`Event::Wake`] is wanted next, if any.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Tick> {
        let swap = self.pending.as_ref().and_then(|p| p.cancel_at);
        let stop = self.stop.as_ref().and_then(|stop| stop.cancel_at);
        let limit = self.repair_limiter.until;
        [self.timers.next(), self.next_write_off(), self.pause.next(self.mode), swap, stop, limit]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the mode of the engine as a whole.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the counts over all vertices. The counts are maintained with each change, so the call is cheap.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns true if nothing runs, nothing may be started, no retry is due and every end is durable: a one-shot
    /// command is over. Stuck runs, and vertices that wait for them, do not prevent this.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let idle = self.in_flight.is_empty() && self.queued == 0;
        let stuck = self.one_shot
            && self.in_flight.len() == self.counts.stuck as usize
            && !self.in_flight.is_empty()
            && (self.queued == 0 || self.next_write_off().is_none());
        (idle || stuck)
            && self.closing.is_empty()
            && self.pending.is_none()
            && self.timers.next().is_none()
    }

    // ---- helpers of all parts ----

    pub(crate) fn vertex(&self, id: VertexId) -> Option<&Vertex> {
        self.vertices.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn vertex_mut(&mut self, id: VertexId) -> Option<&mut Vertex> {
        self.vertices.get_mut(id.0 as usize)?.as_mut()
    }

    /// Sends a notice about a vertex, after the pending notices of its earlier runs.
    pub(crate) fn notify_in_order(&mut self, id: VertexId, notice: Notice) {
        match self.closing.values_mut().rev().find(|(vertex, _)| *vertex == id) {
            Some((_, notices)) => notices.push(notice),
            None => self.notify(notice),
        }
    }

    pub(crate) fn notify(&mut self, notice: Notice) {
        self.out.push(Action::Notify(notice));
    }

    /// Advances the counter and returns its new value.
    pub(crate) fn tick_stamp(&mut self) -> Stamp {
        self.stamp.0 += 1;
        self.stamp
    }

    /// Returns the vertices with a run in progress, looks included, in the order of their start.
    pub(crate) fn running(&self) -> Vec<VertexId> {
        self.in_flight.values().copied().collect()
    }
}
