//! The engine of steadfast: a value that receives the time and one event, and returns an ordered list of actions.
//!
//! The engine must never wait, read a clock, or touch the host: the [`Engine::handle`] that runs on hosts is also
//! driven by property tests and by the model checker. The rules are named E-1 to E-20 in the design.
//!
//! Reading order: `interface` (the data that enters and leaves), `engine` (the turn), `state` (the data of a vertex),
//! `scheduling` (a vertex becomes dirty and starts), `runs` (a run and its end), `convergence`, then `pauses`, `swaps`
//! and `contention`; last `queries`. `grouping` joins vertices before the engine sees the graph.
#![deny(clippy::wildcard_enum_match_arm)]
#![forbid(unsafe_code)]

mod contention;
mod convergence;
mod engine;
mod grouping;
mod interface;
mod pauses;
mod queries;
mod runs;
mod scheduling;
mod state;
mod swaps;

pub use engine::{Engine, Slots};
pub use grouping::{Candidate, Contracted, Group, contract};
pub use interface::action::{
    Action, Actions, Class, Culprit, HeldReason, Intent, Notice, Record, Start,
};
pub use interface::event::{Event, Outcome, Pause, RunVerdict, Swap};
pub use interface::graph::{Edge, Graph, GraphError, RestoredState, VertexSpec};
pub use interface::ids::{RunId, SemaphoreId, Stamp, Tick, VertexId, WindowId};
pub use interface::metaparams::{Conflict, Meta, Pace, Poll};
pub use interface::query_replies::{Counts, Mode, TakenSemaphore, VertexStatus, Why};
pub use steadfast_traits::{ExecutorKind, OnInterrupt, RunPolicy, Traits};
