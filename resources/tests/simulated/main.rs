//! Tests of the simulated host against the kernel, and of the kind `file` on the simulated host with failing
//! calls, process deaths and power losses.
//!
//! No test here may depend on the real clock or on real randomness. Reading order: `matches_kernel.rs` and
//! `events.rs` (the simulated host is exact), `cases.rs` (the test cases), `faults.rs`,
//! `persistent_faults.rs`, `interleavings.rs`, `shown.rs`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod accounts;
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
