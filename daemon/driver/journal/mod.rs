//! The driver's side of the journal: begins and ends of runs, and its reaction when the store cannot write.
//!
//! No file is touched here; the worker of the store writes. Reading order: `client`, `replies`.

pub(super) mod client;
pub(super) mod replies;
