//! Reasons of the operator not to start or not to change: the pause of the daemon, the pause of one vertex,
//! maintenance windows, and the stop.
//!
//! The folder never drops a cause: what was held back is done when the reason ends. The end of a pause or stop is
//! decided in `convergence.rs`.
//!
//! Reading order: `pause`, `vertex_pause`, `windows`, `stop`.

pub(crate) mod pause;
pub(crate) mod stop;
pub(crate) mod vertex_pause;
pub(crate) mod windows;
