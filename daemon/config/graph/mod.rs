//! TODO

pub(super) mod acyclic;
pub(super) mod cycles;
