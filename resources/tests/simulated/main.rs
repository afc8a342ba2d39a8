//! The simulated host: that it is one, and what the kind `file` does on it while calls fail, the process dies and power is lost.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod interleavings;
mod matches_kernel;
mod persistent_faults;
#[path = "../file/support.rs"]
#[expect(dead_code, reason = "what these tests do not need of it")]
mod support;

mod cases;
mod events;
mod faults;
mod shown;
