//! The random input of a run: numbers from a seed, graphs, removals, paths with links, and the frequency of faults.
//!
//! Nothing here reads a clock or another source of random numbers. Reading order: `chance`, `shape`, `removal`,
//! `linked_paths`, `profile`.

pub(crate) mod chance;
pub(crate) mod linked_paths;
pub(crate) mod profile;
pub(crate) mod removal;
pub(crate) mod shape;
