//! Everything the engine can ask of the driver: one closed list, in the order in which it is to be done.

use crate::event::Outcome;
use crate::graph::RestoredState;
use crate::ids::{RunId, Stamp, Tick, VertexId, WindowId};

/// What [`crate::Engine::handle`] returns: to be performed in this order.
pub type Actions = Vec<Action>;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Open the watch of a vertex; answered by `Watching` or `Unwatched`.
    Watch(VertexId),
    /// Close it.
    Unwatch(VertexId),
    /// Its events say nothing new until [`Action::Listen`]: it will be checked after that whatever comes (E-20).
    Deafen(VertexId),
    /// Its events are wanted again: what is checked afterwards may move.
    Listen(VertexId),
    /// Check a vertex; answered by `Checked`.
    Start(Start),
    /// Record what is about to be done; answered by `Begun` or `Refused`.
    Begin(Intent),
    /// Apply the change that the check of this run found; answered by `Ended`.
    Apply(RunId, VertexId),
    /// Record how a run ended; answered by `Durable`.
    End(Record),
    /// Cancel a run; answered by `Ended` as soon as its thread or process has returned.
    Cancel(RunId, VertexId),
    /// The vertex has left the graph: its record goes, and its number may be given to another identity. With what is to be remembered
    /// of it where its record stays.
    Forget(VertexId, RestoredState),
    /// Record that the daemon is paused until then, or not any more; answered by `PauseSaved`.
    SavePause(Option<Tick>),
    /// Say it: to the log, the status, whoever listens.
    Tell(Notice),
}

/// The start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Start {
    /// Its number, unique for the life of the engine.
    pub run: RunId,
    /// Whose.
    pub vertex: VertexId,
    /// Check only, and only to see whether something moved: nothing waits for it.
    pub look: bool,
    /// A refresh is owed (or in noop: would be): the kind decides what that means.
    pub refresh: bool,
    /// It will not be followed by an apply (E-11).
    pub noop: bool,
}

/// What is recorded before an apply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Intent {
    /// The run.
    pub run: RunId,
    /// Whose.
    pub vertex: VertexId,
    /// The definition it applies.
    pub definition: u64,
    /// The engine's counter when it began: what a crash leaves owed is owed with this stamp.
    pub stamp: Stamp,
    /// What sort of change it is.
    pub class: Class,
    /// The children that will be owed a refresh unless it is proven that nothing was changed.
    pub owes: Vec<VertexId>,
}

/// What sort of change is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The graph changed, or the operator asked: it has not been right under this definition yet.
    #[default]
    Intentional,
    /// Something else has changed the host.
    Corrective,
    /// We changed it, and it differs again by our own hand: a fault of the kind or the graph (E-20); or a deed that is declared to be done
    /// at each start.
    NotIdempotent,
    /// Another party undoes it again and again (E-20).
    Contended,
}

/// Who undoes what a vertex does (E-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Culprit {
    /// Somebody outside of the graph.
    Foreign,
    /// The vertex itself: what it does changes what it depends on, or its check never finds it right.
    Itself,
    /// Another vertex of ours.
    Ours(VertexId),
    /// Nobody was seen: it has no watch, or it is too early to tell (then it is told again).
    Unknown,
}

/// What is recorded when a run is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The run.
    pub run: RunId,
    /// Whose.
    pub vertex: VertexId,
    /// The definition it applied.
    pub definition: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The stamp of its intent; none where nothing was begun.
    pub begun: Option<Stamp>,
    /// The engine's counter when it ended: what it owes is owed with this stamp.
    pub stamp: Stamp,
    /// The children that are owed a refresh from now on: empty where nothing was changed.
    pub owes: Vec<VertexId>,
    /// What was owed to the vertex up to this stamp is paid.
    pub paid: Option<Stamp>,
}

/// Something worth a line: one for each change of state. What must be durable first, is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// A new graph runs.
    Loaded {
        /// How many vertices are new.
        added: u32,
        /// How many have another definition.
        changed: u32,
        /// How many are gone.
        removed: u32,
        /// How many stayed.
        kept: u32,
    },
    /// A new graph is taken, and waits for these runs to end.
    SwapWaits(Vec<VertexId>),
    /// A new graph cannot be taken: the engine is stopping.
    SwapRefused,
    /// A run was given a permit and has ended.
    Ran(VertexId, RunId, Outcome),
    /// A check could not be made.
    CheckFailed(VertexId, RunId),
    /// A run failed, and its failure does not count yet: its ancestors are asked (E-3). Told before the failed run is.
    Asking(VertexId, RunId),
    /// The failure of that run does not count: an ancestor differs, and the vertex is processed after it.
    Excused(VertexId, RunId),
    /// A failed vertex will be tried again at that time.
    Retrying(VertexId, Tick),
    /// No retries are left: those below wait for it.
    Failed(VertexId),
    /// A failed vertex is right again.
    Recovered(VertexId),
    /// A vertex in noop would change or would be refreshed.
    Held(VertexId, HeldReason),
    /// It is undone again and again: repairs of it wait from now on (E-20). Told once more when it is known by whom.
    Contended {
        /// Whose.
        vertex: VertexId,
        /// By whom.
        party: Culprit,
        /// How many repairs there were.
        repairs: u32,
    },
    /// It still is: said from time to time.
    StillContended {
        /// Whose.
        vertex: VertexId,
        /// How many repairs there were in all.
        repairs: u32,
        /// When that began.
        since: Tick,
    },
    /// It is not undone any more, or the operator wants it tried again.
    Calm(VertexId),
    /// So many repairs were undone within a minute that nothing is repaired until then.
    Braked {
        /// How many.
        repairs: u32,
        /// When repairing goes on.
        until: Tick,
    },
    /// Repairing goes on.
    Released,
    /// A run has not returned although its deadline is over.
    Stuck(VertexId, RunId),
    /// Something is not as declared any more, first seen at this vertex.
    Diverged(VertexId),
    /// All is settled, nothing is owed, and all of it is durable.
    Converged,
    /// A pause is asked for and waits for these.
    Pausing(Vec<VertexId>),
    /// Nothing runs and nothing will be started.
    Paused,
    /// Going on.
    Resumed,
    /// The pause ends by itself within the hour.
    PauseEnds(Tick),
    /// Stopping; these still run.
    Stopping(Vec<VertexId>),
    /// Nothing runs and all watches are closed. These were cut off, or never returned.
    Stopped(Vec<VertexId>),
}

/// Why a vertex rests although it is not as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeldReason {
    /// In noop: it would be changed.
    WouldChange,
    /// In noop: it would be refreshed.
    WouldRefresh,
    /// In noop: it cannot be told before this ancestor is changed.
    UnknownUntil(VertexId),
    /// It would be changed, and its window is closed.
    Window(WindowId),
    /// A run was cut off, and its kind asks for the operator's word (`redo`).
    Operator,
}
