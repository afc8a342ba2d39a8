//! Plans inside a running driver: the guard that binds an apply to a saved plan, and the overlay for planned steps.
//!
//! Invariant: nothing here changes the host. Reading order: `change_filter.rs`, `overlay.rs` (a step sees the results
//! of earlier steps), `overlaps.rs` (steps that affect each other), `path_overlap.rs` (the comparison of paths).

pub(super) mod change_filter;
pub(super) mod overlaps;
mod overlay;
mod path_overlap;
