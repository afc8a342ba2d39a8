//! The loaded graph: identities with their numbers in the engine, the difference to the graph before, and the restored state.
//!
//! The folder decides nothing about runs. Reading order: `registry`, `vertices`, `assign_ids`, `diff`, `to_engine`, `restore`.

pub(super) mod assign_ids;
pub(super) mod diff;
pub(super) mod registry;
#[cfg(test)]
pub(super) mod registry_tests;
pub(super) mod restore;
pub(super) mod to_engine;
pub(super) mod vertices;
