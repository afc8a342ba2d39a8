//! The state directory of a running daemon: its lock, its store, its maintenance; and the lease, the right to act.
//!
//! Nobody else writes the state directory while it is locked, and no run begins without a lease.
//!
//! Reading order: `lock`, `store`, `lease`, `maintenance`, `record_readers`.

pub(in crate::workers) mod lease;
pub(in crate::workers) mod lock;
pub(in crate::workers) mod maintenance;
pub(in crate::workers) mod record_readers;
pub(in crate::workers) mod store;
