//! Swaps (E-17): a new graph replaces the running one.
//!
//! A vertex with an unchanged definition keeps its run and its state. No vertex is changed or removed while it runs.
//!
//! Reading order: `comparison` (the vertices that differ), `waiting_graph` (an accepted graph waits for them),
//! `replacement` (one step), `stored_state` (of vertices that a load adds).

pub(crate) mod comparison;
pub(crate) mod replacement;
pub(crate) mod stored_state;
pub(crate) mod waiting_graph;
