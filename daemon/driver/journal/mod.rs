//! The driver's side of the journal: begins and ends of runs, and the reaction to a store that cannot write.
//!
//! Invariant: this folder accesses no file; the worker of the store writes. Reading order: `session.rs` (the component
//! of the driver), `client.rs` (requests), `replies.rs` (the driver's reaction to replies and failures).

pub(super) mod client;
pub(super) mod replies;
pub(super) mod session;
