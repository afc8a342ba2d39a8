//! The way of a vertex from an event to the start of its run: dirty, ready, admitted.
//!
//! The folder never judges the outcome of a run.
//!
//! Reading order: `triggers` (a vertex becomes dirty), `readiness` (its parents let it start), `pokes` (changes of
//! clearances travel along the edges), `admission` (limit, semaphores, slot), `queues`, `rate_limit`.

pub(crate) mod admission;
pub(crate) mod pokes;
pub(crate) mod queues;
pub(crate) mod rate_limit;
pub(crate) mod readiness;
pub(crate) mod triggers;
