//! The state of the engine as data: one vertex, the edges in packed form, and the table of deadlines.
//!
//! The folder decides nothing: it never starts, ends or delays a run. Its methods derive values of one vertex from its
//! fields.
//!
//! Reading order: `vertex`, `topology`, `deadlines`; `canonical_state` is for the model checker.

pub(crate) mod canonical_state;
pub(crate) mod deadlines;
pub(crate) mod topology;
pub(crate) mod vertex;
