//! The exploration: states, steps, their identity, the rules, and random walks.
//!
//! Nothing here chooses configurations. Reading order: `explorer`, `hashing`, `waiting`, `rules`, `sights`,
//! `graph_of_states`, `walking`.

pub(super) mod explorer;
pub(super) mod graph_of_states;
pub(super) mod hashing;
pub(super) mod rules;
pub(super) mod sights;
pub(super) mod waiting;
pub(super) mod walking;
