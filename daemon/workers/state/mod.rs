//! The state directory of a running daemon: its lease, its store, and the maintenance of both.
//!
//! No run begins without a lease, and nobody else writes the state directory.
//!
//! Reading order: `lease`, `store`, `maintenance`, `record_readers`.

pub(in crate::workers) mod lease;
pub(in crate::workers) mod maintenance;
pub(in crate::workers) mod record_readers;
pub(in crate::workers) mod store;
