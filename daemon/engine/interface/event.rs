//! The closed list of everything that can happen to the engine.

use crate::interface::graph::{Graph, RestoredState};
use crate::interface::ids::{RunId, Tick, VertexId, WindowId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One event. The driver reports it with the time; [`crate::Engine::handle`] returns actions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A new graph replaces the running one (E-17). The first graph replaces the empty one.
    Swap(Swap),
    /// The watch of a vertex is established.
    Watching(VertexId),
    /// A vertex has no source of events, or its watch was given up: only looks detect its drift.
    Unwatched(VertexId),
    /// The source of a vertex reports a change made by somebody else.
    Changed(VertexId),
    /// A vertex receives another value: it is tried again with a new budget. The event is valid during a run,
    /// too.
    Received(VertexId),
    /// The source of a vertex lost events or was re-armed: the vertex may differ. Ignored if the vertex has no state to
    /// check.
    Suspect(VertexId),
    /// Look at a vertex (sweep, or an event that may be the echo of our own write): check only, lowest priority.
    Look(VertexId),
    /// The operator requests a run, including one of a vertex that runs only once.
    RetryNow(VertexId),
    /// In a plan: the finding of a vertex is uncertain until another vertex is changed.
    Doubt {
        /// The vertex with the uncertain finding.
        vertex: VertexId,
        /// The vertex to be changed first.
        until: VertexId,
    },
    /// The inputs of this run differ from those of its vertex's last good run: a difference that the check finds is no
    /// reversal. Comes before `Checked`.
    Remade(RunId),
    /// Others have changed the source that this run copies, and no run of ours can have: its change does not count for
    /// contention. Comes after `Remade`.
    Supplied(RunId),
    /// A check ended.
    Checked(RunId, RunVerdict),
    /// A check has not answered for long. A look or a poll then counts as stuck until it answers.
    Late(RunId),
    /// The intent is recorded: the apply may begin.
    Begun(RunId),
    /// The intent could not be recorded: nothing may be changed.
    Refused(RunId),
    /// An apply ended, or any station of a run that was cancelled.
    Ended(RunId, Outcome),
    /// The record of a run's end is durable.
    Durable(RunId),
    /// Pause the engine (E-15).
    Pause(Pause),
    /// The record of the last [`crate::Action::SavePause`] is durable.
    PauseSaved,
    /// End the pause.
    Resume,
    /// Stop the engine (E-16): runs are cancelled when the grace is over. A second stop with no grace cancels them at
    /// once.
    Stop {
        /// The time for which runs may continue.
        grace: Duration,
    },
    /// A maintenance window opens or closes (`when_allowed`).
    Window {
        /// The window.
        window: WindowId,
        /// True if the window is open from now on.
        open: bool,
    },
    /// The pause of one vertex begins or ends (E-15). The pause also ends when the vertex leaves the graph.
    PauseVertex {
        /// The vertex.
        vertex: VertexId,
        /// True if the vertex is not started from now on.
        paused: bool,
    },
    /// Time has passed. Sent when [`crate::Engine::next_wakeup`] is reached.
    Wake,
}

/// A new graph with its context.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Swap {
    /// The graph.
    pub graph: Arc<Graph>,
    /// The stored state of the vertices that the graph adds. Vertices without an entry are new.
    pub recall: BTreeMap<VertexId, RestoredState>,
    /// The operator requested the reload: budgets of retries are refilled (E-10).
    pub operator: bool,
}

/// A request to pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pause {
    /// First finish the vertices that are dirty now, and the runs that follow from them.
    pub drain: bool,
    /// The time at which the pause ends by itself.
    pub until: Tick,
    /// The pause is recorded already (a daemon that starts paused); nothing is saved.
    pub recorded: bool,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunVerdict {
    /// As declared.
    Same,
    /// Not as declared. The driver holds the change until the apply.
    Differs,
    /// The check could not decide.
    Unknown,
}

/// The outcome of a run that was asked to apply, or that was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The run is proven to have changed nothing, and the vertex is as declared.
    Unchanged,
    /// The run changed the host, and the vertex is now as declared.
    Changed,
    /// The vertex is not as declared.
    Failed {
        /// False only if it is proven that nothing was changed.
        touched: bool,
    },
    /// The run was cancelled before its end; something may have been changed.
    Interrupted,
}
