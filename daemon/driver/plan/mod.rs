//! Plans inside a running driver: the guard that holds an apply to a saved plan, and the overlay in which planned steps run.
//!
//! Nothing here changes the host. Reading order: `guard`, `overlay` (a step sees the results of earlier steps), `overlaps` and
//! `path_overlap` (two steps that meet on one path).

pub(super) mod guard;
pub(super) mod overlaps;
mod overlay;
mod path_overlap;
