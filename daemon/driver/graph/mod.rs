//! The loaded graph: vertex numbers of identities, the difference from the previous graph, and the restored state.
//!
//! Invariant: this folder decides nothing about runs. Reading order: `load.rs` (the steps of a load), `load_error.rs`,
//! `registry.rs`, `vertices.rs`, `properties.rs`, `assign_ids.rs`, `load_report.rs`, `to_engine.rs`, `restore.rs`.

pub(super) mod assign_ids;
pub(super) mod load;
pub(super) mod load_error;
pub(super) mod load_report;
pub(super) mod properties;
pub(super) mod registry;
#[cfg(test)]
pub(super) mod registry_tests;
pub(super) mod restore;
pub(super) mod to_engine;
pub(super) mod vertices;
