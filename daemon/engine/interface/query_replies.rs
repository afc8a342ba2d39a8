//! The types of the engine's replies to queries.

use crate::interface::action::{Culprit, HeldReason};
use crate::interface::ids::{RunId, SemaphoreId, Tick, VertexId};

/// The status of one vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VertexStatus {
    /// As declared, as far as is known.
    Settled,
    /// The vertex must be processed, and its watch is not established yet.
    WaitingForWatch,
    /// The vertex must be processed and waits for these ancestors, the nearest that block.
    WaitingFor(Vec<VertexId>),
    /// The vertex must be processed, and its limiter allows a start at this time.
    WaitingForLimit(Tick),
    /// The vertex must be processed and waits for semaphores.
    WaitingForSemaphore,
    /// The vertex must be processed and waits for a slot.
    WaitingForSlot,
    /// The vertex must be processed, and will be when the engine runs again (pause, stop, or a swap that waits).
    Suspended,
    /// The vertex must be processed, and is paused on its own.
    Paused,
    /// The vertex must be processed, and the repair limit allows a start at this time (E-20).
    WaitingForRepairLimit(Tick),
    /// The vertex is undone again and again (E-20): converged at the moment, or its repair is delayed.
    Contended {
        /// The culprit, if it is known by now.
        party: Option<Culprit>,
        /// The number of repairs.
        repairs: u32,
        /// The time at which the contention began.
        since: Tick,
        /// The time of the next repair, if one is due.
        next: Option<Tick>,
    },
    /// A run is in progress since this time.
    Running(RunId, Tick),
    /// A run failed, and these ancestors are looked at before the failure counts.
    Asking(Vec<VertexId>),
    /// The vertex has failed and is tried again at this time.
    Delayed(Tick),
    /// The vertex has failed and has no retries left.
    Failed,
    /// The vertex rests although it is not as declared.
    Held(HeldReason),
    /// The run of the vertex has not returned since this time.
    Stuck(RunId, Tick),
}

/// A semaphore that admits no more vertices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenSemaphore {
    /// The semaphore.
    pub semaphore: SemaphoreId,
    /// The largest number of holders.
    pub count: u32,
    /// The vertices that hold the semaphore.
    pub holders: Vec<VertexId>,
}

/// The reason for which a run was started: the most informative one of several causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The operator asked.
    Operator,
    /// The source of the vertex reported a change.
    Event,
    /// The vertex receives another value.
    Value,
    /// A refresh is owed, or would be in noop.
    Refresh,
    /// An earlier run failed or was cut off.
    Again,
    /// The vertex is new, or has a new definition.
    Load,
    /// A look, or the finding of a look.
    Look,
    /// A poll tick.
    Poll,
}

/// The counts over all vertices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// All vertices.
    pub total: u32,
    /// As declared.
    pub settled: u32,
    /// To be processed, and waiting for something.
    pub waiting: u32,
    /// In progress, without looks.
    pub running: u32,
    /// Waiting for a retry.
    pub delayed: u32,
    /// Failed for good.
    pub failed: u32,
    /// Held.
    pub held: u32,
    /// Stuck.
    pub stuck: u32,
    /// Undone again and again (E-20).
    pub contended: u32,
}

/// The mode of the engine as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Starts vertices as they become ready.
    Running,
    /// Finishes the vertices that were dirty at the request to pause.
    Draining,
    /// Finishes the runs in progress, and starts nothing.
    Pausing,
    /// Paused: nothing runs.
    Paused,
    /// Finishes the runs in progress before the stop.
    Stopping,
    /// Stopped for good.
    Stopped,
}
