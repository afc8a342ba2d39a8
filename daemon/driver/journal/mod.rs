//! The driver's side of the journal: begins and ends of runs, and the reaction to a store that cannot write.
//!
//! Invariant: this folder accesses no file; the worker of the store writes. Reading order: `client.rs` (requests),
//! `replies.rs` (replies and failures).

pub(super) mod client;
pub(super) mod replies;
