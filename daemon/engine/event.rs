//! Everything that can happen to the engine: one closed list.

use crate::graph::{Graph, RestoredState};
use crate::ids::{RunId, Tick, VertexId, WindowId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One thing that happened. The driver reports it with the time; [`crate::Engine::handle`] answers with actions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A new graph is to replace the running one (E-17); the first replaces the empty one.
    Swap(Swap),
    /// The watch of a vertex is established.
    Watching(VertexId),
    /// There is no source of events for a vertex, or it was given up: looks are all it gets.
    Unwatched(VertexId),
    /// The source of a vertex reports a change made by somebody else.
    Changed(VertexId),
    /// A value that a vertex receives is another one now: a reason to try again with a new budget, also while it runs.
    Received(VertexId),
    /// The source lost events or was re-armed: what the vertex covers may differ. Ignored where nothing can be checked.
    Suspect(VertexId),
    /// Look at a vertex (sweep, or an event that may be the echo of our own write): check only, lowest priority.
    Look(VertexId),
    /// The operator asks for a run, also of what runs once.
    Redo(VertexId),
    /// In a plan: what was found of a vertex may be otherwise when it is applied, for another is changed by then.
    Doubt {
        /// Which.
        vertex: VertexId,
        /// The other.
        until: VertexId,
    },
    /// What this run is made of is not what its vertex was right with: nobody has undone what its check finds. Comes before `Checked`.
    Remade(RunId),
    /// Others have changed what this run copies, and no run of ours can have: its change counts for no fight. Comes after `Remade`.
    Supplied(RunId),
    /// A check ended.
    Checked(RunId, RunVerdict),
    /// The intent is recorded: the apply may begin.
    Begun(RunId),
    /// The intent could not be recorded: nothing may be changed.
    Refused(RunId),
    /// An apply ended, or any station of a run that was cancelled.
    Ended(RunId, Outcome),
    /// The record of a run's end is durable.
    Durable(RunId),
    /// Come to rest (E-15).
    Pause(Pause),
    /// What the last [`crate::Action::SavePause`] asked for is durable.
    PauseSaved,
    /// Go on.
    Resume,
    /// Stop (E-16): runs are cancelled when the grace is over. A second one with no grace cancels at once.
    Stop {
        /// How long runs may still take.
        grace: Duration,
    },
    /// A window opens or closes (`when_allowed`).
    Window {
        /// Which.
        window: WindowId,
        /// Whether it is open from now on.
        open: bool,
    },
    /// A pause of one vertex begins or ends (E-15). It ends when this says so, or when its vertex leaves the graph.
    Park {
        /// Which.
        vertex: VertexId,
        /// Whether it is not started from now on.
        parked: bool,
    },
    /// Time has passed; sent when [`crate::Engine::next_wakeup`] is reached.
    Wake,
}

/// A new graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Swap {
    /// It.
    pub graph: Arc<Graph>,
    /// What the store remembers of vertices that it adds; those without an entry are new.
    pub recall: BTreeMap<VertexId, RestoredState>,
    /// Who asked: an operator's reload refills the budgets of retries (E-10).
    pub operator: bool,
}

/// A request to pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pause {
    /// First let end what is dirty now and what that pokes.
    pub drain: bool,
    /// When it ends by itself; every pause does.
    pub until: Tick,
    /// It was already recorded (a daemon that starts paused); then nothing is saved.
    pub recorded: bool,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunVerdict {
    /// As declared.
    Same,
    /// Not as declared; the driver keeps the change until the apply.
    Differs,
    /// It could not be told.
    Unknown,
}

/// How a run ended that was told to apply, or that was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It is proven that nothing was changed, and all is as declared.
    Unchanged,
    /// Changed, and as declared now.
    Changed,
    /// Not as declared.
    Failed {
        /// False only where it is proven that nothing was changed.
        touched: bool,
    },
    /// Cut off by a cancel before it was done; something may have been changed.
    Interrupted,
}
