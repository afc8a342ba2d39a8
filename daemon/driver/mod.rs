//! The loop that drives the engine, and what feeds it.

pub mod watch;
