//! The simulated host: that it is one, and what the kind `file` does on it while calls fail, the process dies and power is lost.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../file/support.rs"]
#[expect(dead_code, reason = "what these tests do not need of it")]
mod support;

mod alike;
mod between;
mod cases;
mod events;
mod faults;
mod lasting;
mod shown;
