//! Resources that leave the graph: the records that are dropped, the objects that are removed, and the records that stay.
//!
//! The folder plans and records; it never changes the host itself: a removal runs as a vertex of the engine.
//! Reading order: `plan` (decides for each identity), `ownership` (created or adopted), `candidates`, `undeclared`, `renames`,
//! `handover`, `notifications`.

pub(super) mod candidates;
pub(super) mod handover;
pub(super) mod notifications;
pub(super) mod ownership;
pub(super) mod plan;
pub(super) mod renames;
pub(super) mod undeclared;
