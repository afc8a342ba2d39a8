//! A deterministic environment of the real engine: it performs the engine's actions against a simulated host and store,
//! and a schedule decides the next step. Every turn is shown to the oracle.
//!
//! A crash may fall between any two actions: the only durable effect of an action is its entry in the log, and
//! [`Step::Crash`] preserves any number of the written entries.

use crate::oracle::Oracle;
use crate::remade_equivalence::Twin;
use crate::shape::Shape;
use crate::step::Step;
use crate::store::{Entry, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{
    Action, Engine, Event, Graph, Notice, Outcome, Pause, RunId, Slots, Start, Swap, Tick,
    VertexId, VertexStatus, WindowId,
};

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Station {
    Check,
    Begin,
    Apply,
}

/// A run that occupies a thread or a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) start: Start,
    pub(crate) station: Station,
    pub(crate) cancelled: bool,
}

/// The state of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Watch {
    Opening,
    Open,
    Absent,
}

/// The simulated environment of one engine.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) now: Tick,
    pub(crate) slots: Slots,
    pub(crate) one_shot: bool,
    /// The graphs, each with the counts of its semaphores.
    pub(crate) graphs: Arc<[(Arc<Graph>, Vec<u32>)]>,
    /// The last accepted graph: a restart loads it.
    pub(crate) accepted: Option<(Arc<Graph>, Vec<u32>)>,
    pub(crate) running: Option<Arc<Graph>>,
    pub(crate) runs: BTreeMap<RunId, Run>,
    pub(crate) watches: BTreeMap<VertexId, Watch>,
    pub(crate) store: Store,
    pub(crate) stopped: bool,
    /// The limit of the repair limit; none for the engine's default.
    pub(crate) repair_limit: Option<u32>,
    pub(crate) open: BTreeSet<WindowId>,
    /// The vertices whose events are not delivered.
    pub(crate) muted: BTreeSet<VertexId>,
    pub(crate) oracle: Oracle,
    pub(crate) twin: Twin,
    /// The notices of this session and the earlier ones.
    pub(crate) told: Vec<Notice>,
    /// Every start, looks included.
    pub(crate) starts: Vec<Start>,
    /// The steps in words, for people.
    pub(crate) log: Vec<String>,
    /// Every turn as the oracle saw it, with the engine after it.
    pub(crate) turns: Vec<(Tick, Event, Vec<Action>, Engine)>,
    /// True if the lists above are filled (the model checker does not need them).
    pub(crate) recording: bool,
}

impl World {
    /// Returns true if only time lets this vertex continue.
    pub(crate) fn waits_for_time(&self, id: VertexId) -> bool {
        matches!(
            self.engine.vertex_status(id),
            Some(
                VertexStatus::Delayed(_)
                    | VertexStatus::WaitingForLimit(_)
                    | VertexStatus::WaitingForRepairLimit(_)
                    // A contention ends after a quiet time.
                    | VertexStatus::Contended { .. }
            )
        )
    }

    pub(crate) fn new(shapes: &[Shape], slots: Slots, one_shot: bool) -> Self {
        Self {
            engine: Engine::new(slots, one_shot),
            now: Tick(1_000_000_000),
            slots,
            one_shot,
            graphs: shapes.iter().map(|s| (s.build(), s.semaphores.clone())).collect(),
            accepted: None,
            running: None,
            runs: BTreeMap::new(),
            watches: BTreeMap::new(),
            store: Store::default(),
            stopped: false,
            repair_limit: None,
            open: BTreeSet::new(),
            muted: BTreeSet::new(),
            oracle: Oracle::new(slots, one_shot),
            twin: Twin::default(),
            told: Vec::new(),
            starts: Vec::new(),
            log: Vec::new(),
            turns: Vec::new(),
            recording: true,
        }
    }

    /// Returns the world with another limit on repeated repairs.
    pub(crate) fn with_repair_limit(mut self, limit: Option<u32>) -> Self {
        self.repair_limit = limit;
        self.oracle.books.repair_limit = limit.or(self.oracle.books.repair_limit);
        self.engine = self.fresh();
        self
    }

    fn fresh(&self) -> Engine {
        let engine = Engine::new(self.slots, self.one_shot);
        if self.repair_limit.is_some() {
            engine.with_repair_limit(self.repair_limit)
        } else {
            engine
        }
    }

    /// Performs one step. Returns false if the step makes no sense here.
    pub(crate) fn step(&mut self, step: &Step) -> bool {
        if self.recording {
            self.log.push(format!("{:>6} ms  {step:?}", self.now.0 / 1_000_000));
        }
        if self.stopped && !matches!(step, Step::Crash { .. } | Step::Commit) {
            return false;
        }
        match *step {
            Step::Swap { graph, operator } => self.swap(graph, operator),
            Step::Watching(id) => self.answer_watch(id, Watch::Open),
            Step::Unwatched(id) => self.answer_watch(id, Watch::Absent),
            Step::Changed(id) => self.changed(id),
            Step::Received(id) => self.deliver(Event::Received(id)),
            Step::Remade(id) => match self.run_of(id, Station::Check) {
                Some(run) => self.deliver(Event::Remade(run)),
                None => false,
            },
            Step::Doubt { vertex, until } => {
                self.known(vertex) && self.deliver(Event::Doubt { vertex, until })
            }
            Step::Suspect(id) => self.known(id) && self.deliver(Event::Suspect(id)),
            Step::Look(id) => self.known(id) && self.deliver(Event::Look(id)),
            Step::RetryNow(id) => self.known(id) && self.deliver(Event::RetryNow(id)),
            Step::Checked(id, verdict) => match self.run_of(id, Station::Check) {
                Some(run) => self.deliver(Event::Checked(run, verdict)),
                None => false,
            },
            Step::Commit => self.commit(),
            Step::Refuse => match self.store.refuse() {
                Some(run) => self.deliver(Event::Refused(run)),
                None => false,
            },
            Step::Ended(id, outcome) => self.ended(id, outcome),
            Step::Wait(length) => self.wait(length),
            Step::Lag(length) => {
                self.now = self.now.after(length);
                true
            }
            Step::Wake => match self.engine.next_wakeup() {
                Some(tick) => {
                    self.now = self.now.max(tick);
                    self.deliver(Event::Wake)
                }
                None => false,
            },
            Step::Pause { drain, length } => {
                let until = self.now.after(length);
                self.deliver(Event::Pause(Pause { drain, until, recorded: false }))
            }
            Step::Resume => self.deliver(Event::Resume),
            Step::Window { window, open } => self.window(WindowId(window), open),
            Step::PauseVertex { vertex, paused } => {
                self.known(vertex) && self.deliver(Event::PauseVertex { vertex, paused })
            }
            Step::Stop { grace } => self.deliver(Event::Stop { grace }),
            Step::Crash { kept } => self.crash(kept),
        }
    }

    /// Performs steps that must make sense.
    pub(crate) fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            assert!(self.step(step), "{step:?} makes no sense here:\n{}", self.log.join("\n"));
        }
    }

    /// Returns the run in progress of a vertex.
    pub(crate) fn in_progress(&self, id: VertexId) -> Option<(RunId, Run)> {
        self.runs.iter().find(|(_, run)| run.start.vertex == id).map(|(id, run)| (*id, *run))
    }

    /// Returns true if nothing is in flight that ends without a decision.
    pub(crate) fn is_quiet(&self) -> bool {
        self.runs.is_empty()
            && self.store.written.is_empty()
            && !self.watches.values().any(|watch| *watch == Watch::Opening)
    }

    fn known(&self, id: VertexId) -> bool {
        self.running.as_ref().is_some_and(|graph| graph.order().contains(&id))
    }

    fn run_of(&self, id: VertexId, station: Station) -> Option<RunId> {
        let (run, at) = self.in_progress(id)?;
        (at.station == station).then_some(run)
    }

    fn swap(&mut self, graph: usize, operator: bool) -> bool {
        let Some((graph, counts)) = self.graphs.get(graph).cloned() else { return false };
        self.load(graph, counts, operator)
    }

    fn load(&mut self, graph: Arc<Graph>, counts: Vec<u32>, operator: bool) -> bool {
        let recall = self.store.seen().recall(&graph, self.running.as_deref());
        self.oracle.books.given.clone_from(&counts);
        self.accepted = Some((Arc::clone(&graph), counts));
        self.deliver(Event::Swap(Swap { graph, recall, operator }))
    }

    fn answer_watch(&mut self, id: VertexId, answer: Watch) -> bool {
        let Some(watch) = self.watches.get_mut(&id) else { return false };
        if *watch != Watch::Opening && *watch == answer {
            return false;
        }
        let again = std::mem::replace(watch, answer) == Watch::Absent;
        self.deliver(if answer == Watch::Open {
            Event::Watching(id)
        } else {
            Event::Unwatched(id)
        });
        // Changes before the watch was established again were not observed: the driver reports that at once.
        !again || self.deliver(Event::Suspect(id))
    }

    /// Changes a vertex from outside: the event is delivered only if a watch is open.
    fn changed(&mut self, id: VertexId) -> bool {
        self.watches.get(&id) == Some(&Watch::Open)
            && !self.muted.contains(&id)
            && self.deliver(Event::Changed(id))
    }

    fn window(&mut self, window: WindowId, open: bool) -> bool {
        if open {
            self.open.insert(window);
        } else {
            self.open.remove(&window);
        }
        self.deliver(Event::Window { window, open })
    }

    fn ended(&mut self, id: VertexId, outcome: Outcome) -> bool {
        let Some((run, at)) = self.in_progress(id) else { return false };
        let fits = if at.station == Station::Apply {
            at.cancelled || outcome != Outcome::Interrupted
        } else {
            at.cancelled && outcome == Outcome::Interrupted
        };
        fits && self.deliver(Event::Ended(run, outcome))
    }

    fn commit(&mut self) -> bool {
        match self.store.commit() {
            Some(Entry::Begin(intent)) => self.deliver(Event::Begun(intent.run)),
            Some(Entry::End(record)) => self.deliver(Event::Durable(record.run)),
            Some(Entry::Forget(_)) => true,
            Some(Entry::Pause(_)) => self.deliver(Event::PauseSaved),
            None => false,
        }
    }

    fn wait(&mut self, length: Duration) -> bool {
        let end = self.now.after(length);
        for _ in 0..100_000 {
            if !self.oracle.books.violations.is_empty() {
                return true;
            }
            match self.engine.next_wakeup() {
                Some(tick) if tick <= end => {
                    self.now = self.now.max(tick);
                    self.deliver(Event::Wake);
                }
                Some(_) | None => {
                    self.now = end;
                    // A turn in which nothing is due: the oracle sees missing actions.
                    return self.deliver(Event::Wake);
                }
            }
        }
        self.oracle.violated("a bound on steps: it wants to be woken for ever");
        true
    }

    fn crash(&mut self, kept: usize) -> bool {
        if kept > self.store.written.len() {
            return false;
        }
        let graph = self.accepted.as_ref().map(|(graph, _)| graph.as_ref());
        self.store.crash(kept, graph);
        (self.engine, self.twin) = (self.fresh(), Twin::default());
        let paused = self.oracle.books.paused_vertices.clone();
        self.oracle.crashed();
        self.muted.clear();
        self.runs.clear();
        self.watches.clear();
        self.running = None;
        self.stopped = false;
        if let Some(until) = self.store.durable.pause
            && until > self.now
        {
            self.deliver(Event::Pause(Pause { drain: false, until, recorded: true }));
        }
        for window in self.open.clone() {
            self.deliver(Event::Window { window, open: true });
        }
        // Paused vertices stay paused, and are so before their graph is loaded.
        let order = self.accepted.as_ref().map(|(graph, _)| graph.order().to_vec());
        for vertex in paused.into_iter().filter(|id| order.iter().flatten().any(|o| o == id)) {
            self.deliver(Event::PauseVertex { vertex, paused: true });
        }
        match self.accepted.clone() {
            Some((graph, counts)) => self.load(graph, counts, false),
            None => true,
        }
    }

    /// Delivers one event to the engine, and performs its actions. Always returns true.
    pub(crate) fn deliver(&mut self, event: Event) -> bool {
        let checked = match &event {
            Event::Checked(run, _) => self.runs.remove(run),
            Event::Ended(run, _) => {
                self.runs.remove(run);
                None
            }
            Event::Refused(run) => {
                self.runs.remove(run);
                None
            }
            _ => None,
        };
        let others = self.twin.take(&self.engine, self.now, &event);
        let actions = self.engine.handle(self.now, event.clone());
        if let Event::Begun(run) = &event
            && !actions.iter().any(|a| matches!(a, Action::Apply(id, _) if id == run))
        {
            // The result crossed a cancel: nothing was begun, and no thread is occupied.
            self.runs.remove(run);
        }
        for action in &actions {
            if let (Action::Begin(intent), Some(run)) = (action, checked) {
                self.runs.insert(intent.run, Run { station: Station::Begin, ..run });
            }
            self.perform(action);
        }
        self.oracle.observe(self.now, &event, &actions, &self.engine);
        if let Some(others) = others {
            let books = &mut self.oracle.books;
            self.twin.compare((&self.engine, books), &actions, &others);
        }
        if self.recording && self.oracle.enabled {
            self.turns.push((self.now, event, actions, self.engine.clone()));
        }
        true
    }

    fn perform(&mut self, action: &Action) {
        if self.recording {
            self.log.push(format!("             -> {action:?}"));
        }
        match action {
            Action::Watch(id) => {
                self.watches.insert(*id, Watch::Opening);
            }
            Action::Unwatch(id) => {
                self.watches.remove(id);
                self.muted.remove(id);
            }
            Action::Mute(id) => {
                self.muted.insert(*id);
            }
            Action::Unmute(id) => {
                self.muted.remove(id);
            }
            Action::Start(start) => {
                let run = Run { start: *start, station: Station::Check, cancelled: false };
                self.runs.insert(start.run, run);
                if self.recording {
                    self.starts.push(*start);
                }
            }
            Action::Begin(intent) => self.store.written.push_back(Entry::Begin(intent.clone())),
            Action::Apply(run, _) => {
                if let Some(at) = self.runs.get_mut(run) {
                    at.station = Station::Apply;
                }
            }
            Action::End(record) => self.store.written.push_back(Entry::End(record.clone())),
            Action::Cancel(run, _) => {
                if let Some(at) = self.runs.get_mut(run) {
                    at.cancelled = true;
                }
            }
            Action::Forget(id, _) => self.store.written.push_back(Entry::Forget(*id)),
            Action::SavePause(until) => self.store.written.push_back(Entry::Pause(*until)),
            Action::Notify(notice) => self.hear(notice),
        }
    }

    fn hear(&mut self, notice: &Notice) {
        match notice {
            Notice::Loaded { .. } => {
                self.running = self.accepted.as_ref().map(|(graph, _)| Arc::clone(graph));
            }
            Notice::Stopped(_) => self.stopped = true,
            _ => {}
        }
        if self.recording {
            self.told.push(notice.clone());
        }
    }
}
