//! Contention (E-20): repairs that somebody undoes again and again become rarer, and are reported.
//!
//! The state is outside of `Vertex`, so an undisturbed vertex pays nothing. Contention never blocks another vertex and
//! never delays a run that somebody asked for.
//!
//! Reading order: `record` (the data), `recognition` (repairs become a contention), `attribution` (its culprit),
//! `repair_delay` (one vertex waits), `global_limit` (all repairs wait).

pub(crate) mod attribution;
pub(crate) mod global_limit;
pub(crate) mod recognition;
pub(crate) mod record;
pub(crate) mod repair_delay;
