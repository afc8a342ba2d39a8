//! What can be asked of the engine at any time.

use crate::action::{Culprit, HeldReason};
use crate::ids::{RunId, SemaphoreId, Tick, VertexId};

/// How it stands with one vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VertexStatus {
    /// As declared, as far as is known.
    Settled,
    /// It must be processed and its watch is not established yet.
    WaitingForWatch,
    /// It must be processed and waits for these ancestors: the nearest that block.
    WaitingFor(Vec<VertexId>),
    /// It must be processed and its limiter lets it start then.
    WaitingForLimit(Tick),
    /// It must be processed and waits for semaphores.
    WaitingForSemaphore,
    /// It must be processed and waits for a slot.
    WaitingForSlot,
    /// It must be processed, and will be when the engine runs again (pause, stop, or a swap that waits).
    Suspended,
    /// It must be processed, and is paused by itself.
    Parked,
    /// It must be processed, and the brake lets it start then (E-20).
    WaitingForBrake(Tick),
    /// It is undone again and again (E-20). Right at the moment, or put off.
    Contended {
        /// By whom, where that is known by now.
        party: Option<Culprit>,
        /// How many repairs there were.
        repairs: u32,
        /// When that began.
        since: Tick,
        /// When it is repaired next, where it must be.
        next: Option<Tick>,
    },
    /// A run is in progress since then.
    Running(RunId, Tick),
    /// A run of it failed, and these ancestors are looked at before the failure counts.
    Asking(Vec<VertexId>),
    /// It has failed and is tried again then.
    Delayed(Tick),
    /// It has failed and has no retries left.
    Failed,
    /// It rests although it is not as declared.
    Held(HeldReason),
    /// Its run does not return since then.
    Stuck(RunId, Tick),
}

/// A semaphore that lets nobody more in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenSemaphore {
    /// Which.
    pub semaphore: SemaphoreId,
    /// How many may hold it.
    pub count: u32,
    /// Who does.
    pub holders: Vec<VertexId>,
}

/// Why a run was started: of several causes the one that says most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The operator asked.
    Operator,
    /// Its source reported a change.
    Event,
    /// It receives another value.
    Value,
    /// A refresh is owed, or would be.
    Refresh,
    /// An earlier run failed or was cut off.
    Again,
    /// It is new, or has a new definition.
    Load,
    /// A look, or what a look has found.
    Look,
    /// A poll tick.
    Poll,
}

/// Counts over all vertices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// All.
    pub total: u32,
    /// As declared.
    pub settled: u32,
    /// To be processed, and waiting for something.
    pub waiting: u32,
    /// In progress (looks not counted).
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

/// What the engine as a whole is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Starting what may be started.
    Running,
    /// Letting end what was dirty at the request to pause.
    Draining,
    /// Letting end what runs.
    Pausing,
    /// At rest.
    Paused,
    /// Letting end what runs, for good.
    Stopping,
    /// Over.
    Stopped,
}
