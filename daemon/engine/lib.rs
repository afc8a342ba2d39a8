//! The engine of steadfast: a value that receives the time and one event, and returns an ordered list of actions.
//!
//! The engine must never wait, read a clock, or touch the host: the [`Engine::handle`] that runs on hosts is also
//! driven by property tests and by the model checker. The rules are named E-1 to E-20 in the design.
//!
//! Reading order: the data types (`ids`, `meta`, `graph`), the input (`event`), the output (`action`), the engine
//! (`engine`), then its parts: `triggers`, `readiness`, `admission`, `queues`, `runs`, `asking`, `swap`, `waits`,
//! `pause`, `contention`, `attribution`, `dry_run`; last `queries` and `status`. `group` joins vertices before the
//! engine sees the graph.
#![deny(clippy::wildcard_enum_match_arm)]
#![forbid(unsafe_code)]

mod action;
mod admission;
mod attribution;
mod canonical_state;
mod contention;
mod dry_run;
mod event;
mod graph;
mod group;
mod ids;
mod meta;
mod queries;
mod rate_limit;
mod readiness;
mod repair_limiter;
mod status;
mod triggers;
mod vertex_pause;

mod asking;
mod engine;
mod pause;
mod queues;
mod recall;
mod runs;
mod swap;
mod timers;
mod topology;
mod vertex;
mod waits;
mod windows;

pub use action::{Action, Actions, Class, Culprit, HeldReason, Intent, Notice, Record, Start};
pub use engine::{Engine, Slots};
pub use event::{Event, Outcome, Pause, RunVerdict, Swap};
pub use graph::{Edge, Graph, GraphError, RestoredState, VertexSpec};
pub use group::{Candidate, Contracted, Group, contract};
pub use ids::{RunId, SemaphoreId, Stamp, Tick, VertexId, WindowId};
pub use meta::{Check, Conflict, Interrupted, Meta, Nature, Pace, Poll, SlotClass};
pub use status::{Counts, Mode, TakenSemaphore, VertexStatus, Why};
