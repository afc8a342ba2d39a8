//! The closed list of everything that the engine can ask of the driver.

use crate::interface::event::Outcome;
use crate::interface::graph::RestoredState;
use crate::interface::ids::{RunId, Stamp, Tick, VertexId, WindowId};

/// The actions that [`crate::Engine::handle`] returns. The driver performs them in this order.
pub type Actions = Vec<Action>;

/// One action of the driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Open the watch of a vertex. The driver replies with `Watching` or `Unwatched`.
    Watch(VertexId),
    /// Close the watch of a vertex.
    Unwatch(VertexId),
    /// Stop delivering the events of a vertex until [`Action::Unmute`]: the vertex will be checked after that in any
    /// case (E-20).
    Mute(VertexId),
    /// Deliver the events of a vertex again, after [`Action::Mute`].
    Unmute(VertexId),
    /// Check a vertex. The driver replies with `Checked`.
    Start(Start),
    /// Record the start of a change. The driver replies with `Begun` or `Refused`.
    Begin(Intent),
    /// Apply the change that the check of this run found. The driver replies with `Ended`.
    Apply(RunId, VertexId),
    /// Record the end of a run. The driver replies with `Durable`.
    End(Record),
    /// Cancel a run. The driver replies with `Ended` as soon as the thread or process has returned.
    Cancel(RunId, VertexId),
    /// Delete the record of a vertex that has left the graph; its number may be given to another identity. The state is
    /// what the driver stores if it keeps the record of the vertex.
    Forget(VertexId, RestoredState),
    /// Record that the daemon is paused until a moment, or no longer. The driver replies with `PauseSaved`.
    SavePause(Option<Tick>),
    /// Pass a notice on to the log, the status and all observers.
    Notify(Notice),
}

/// The start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Start {
    /// The number of the run, unique for the life of the engine.
    pub run: RunId,
    /// The vertex that the run checks.
    pub vertex: VertexId,
    /// The run only checks for drift. No other vertex waits for the run.
    pub look: bool,
    /// The vertex is owed a refresh, or would be in noop. The kind decides the meaning.
    pub refresh: bool,
    /// No apply follows the check (E-11).
    pub noop: bool,
}

/// The record of an apply that is about to start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Intent {
    /// The run.
    pub run: RunId,
    /// The vertex that the run changes.
    pub vertex: VertexId,
    /// The definition that the run applies.
    pub definition: u64,
    /// The engine's counter at the begin: everything that a crash leaves owed has this stamp.
    pub stamp: Stamp,
    /// The class of the change.
    pub class: Class,
    /// The children that are owed a refresh unless it is proven that nothing was changed.
    pub owes: Vec<VertexId>,
    /// The run does the refreshes that are owed to the vertex up to this stamp; [`Stamp::NEVER`] if none is owed.
    pub pays: Stamp,
}

/// The class of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The graph changed, or the operator asked: the vertex has not converged under this definition yet.
    #[default]
    Intentional,
    /// Somebody else has changed the host.
    Corrective,
    /// Our own runs cause the difference: a defect of the kind or of the graph (E-20), or an operation that is declared
    /// to run at each start.
    NotIdempotent,
    /// Another party undoes the change again and again (E-20).
    Contended,
}

/// The party that undoes the repairs of a vertex (E-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Culprit {
    /// Somebody outside of the graph.
    Foreign,
    /// The vertex itself: its apply changes its own dependencies, or its check never finds it as declared.
    Itself,
    /// Another vertex of the graph.
    Ours(VertexId),
    /// Not known: the vertex has no watch, or it is too early to decide. In the second case the contention is reported
    /// again.
    Unknown,
}

/// The record of a run that is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The run.
    pub run: RunId,
    /// The vertex of the run.
    pub vertex: VertexId,
    /// The definition that the run applied.
    pub definition: u64,
    /// The outcome of the run.
    pub outcome: Outcome,
    /// The stamp of the run's intent; none if nothing was begun.
    pub begun: Option<Stamp>,
    /// The engine's counter at the end: the refreshes that the run owes have this stamp.
    pub stamp: Stamp,
    /// The children that are owed a refresh from now on; empty if nothing was changed.
    pub owes: Vec<VertexId>,
    /// The refreshes owed to the vertex up to this stamp are done.
    pub paid: Option<Stamp>,
}

/// A notice of the engine: one for each change of state. A notice is sent only after its records are durable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// A new graph runs.
    Loaded {
        /// The number of new vertices.
        added: u32,
        /// The number of vertices with another definition.
        changed: u32,
        /// The number of removed vertices.
        removed: u32,
        /// The number of unchanged vertices.
        kept: u32,
    },
    /// A new graph is accepted, and waits for these runs to end.
    SwapWaits(Vec<VertexId>),
    /// A new graph is rejected: the engine is stopping.
    SwapRefused,
    /// A run with a permit has ended.
    Ran(VertexId, RunId, Outcome),
    /// A check could not be made.
    CheckFailed(VertexId, RunId),
    /// A run failed. The failure does not count yet: its ancestors are checked first (E-3). This notice comes before
    /// that of the run.
    Asking(VertexId, RunId),
    /// The failure of a run does not count: an ancestor differs, and the vertex is processed again after that ancestor.
    Excused(VertexId, RunId),
    /// A failed vertex is tried again at this time.
    Retrying(VertexId, Tick),
    /// A vertex has no retries left: its descendants wait for it.
    Failed(VertexId),
    /// A failed vertex is converged again.
    Recovered(VertexId),
    /// A vertex is held: its run ended without the change that it found.
    Held(VertexId, HeldReason),
    /// A vertex is undone again and again: its repairs are delayed from now on (E-20). The notice is repeated once the
    /// culprit is known.
    Contended {
        /// The vertex.
        vertex: VertexId,
        /// The culprit.
        party: Culprit,
        /// The number of repairs.
        repairs: u32,
    },
    /// A vertex is still contended. This summary is sent from time to time.
    StillContended {
        /// The vertex.
        vertex: VertexId,
        /// The number of repairs since the contention began.
        repairs: u32,
        /// The time at which the contention began.
        since: Tick,
    },
    /// A vertex is no longer contended, or the operator asked for another attempt.
    ContentionEnded(VertexId),
    /// Too many repairs were undone within a minute: no vertex is repaired more than three times
    /// within a minute until the given time.
    RepairsSuspended {
        /// The number of repeated repairs.
        repairs: u32,
        /// The end of the suspension.
        until: Tick,
    },
    /// All repairs continue after [`Notice::RepairsSuspended`].
    RepairsResumed,
    /// A run has not returned although its deadline is over.
    Stuck(VertexId, RunId),
    /// The host is no longer as declared. The difference was first seen at this vertex.
    Diverged(VertexId),
    /// Every vertex is settled, no refresh is owed, and all records are durable.
    Converged,
    /// A pause is requested and waits for these runs.
    Pausing(Vec<VertexId>),
    /// The pause is complete: nothing runs and nothing will be started.
    Paused,
    /// The pause is over.
    Resumed,
    /// The pause ends by itself within the hour, at this time.
    PauseEnds(Tick),
    /// The engine is stopping, and these runs are still in progress.
    Stopping(Vec<VertexId>),
    /// The engine has stopped: nothing runs and all watches are closed. These runs were cut off, or never returned.
    Stopped(Vec<VertexId>),
}

/// The reason for which a vertex rests although it is not as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeldReason {
    /// In noop: an apply would change the vertex.
    WouldChange,
    /// In noop: the vertex would be refreshed.
    WouldRefresh,
    /// In noop: the check cannot know the result before this ancestor is changed.
    UnknownUntil(VertexId),
    /// The vertex would be changed, and its maintenance window is closed.
    Window(WindowId),
    /// A run was cut off, and the kind asks for the operator's permission (`retry`).
    Operator,
}
