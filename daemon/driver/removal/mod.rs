//! Resources that leave the graph: dropped records, removed objects, and records that stay.
//!
//! Invariant: this folder plans and records, and does not change the host; a removal runs as a vertex of the engine.
//!
//! Reading order: `plan.rs` (decides for each identity), `ownership.rs` (the component: created or adopted),
//! `expected.rs` (the record of a declared resource), `settle.rs` (a new graph), `may_leave.rs` (identities that may
//! leave), `undeclared.rs` (records that stay), `renames.rs` (aliases), `handover.rs` (paths that change their
//! resource), `former_objects.rs` (resources that change their object), `notifications.rs` (refreshes after a removal).

mod expected;
mod former_objects;
pub(super) mod handover;
pub(super) mod may_leave;
pub(super) mod notifications;
pub(super) mod ownership;
pub(super) mod plan;
pub(super) mod renames;
pub(super) mod settle;
pub(super) mod undeclared;
