//! Tests of the kind `svc` and of the access to systemd, with a fake systemd in this process.
//!
//! No test may talk to the real systemd. Reading order: `fake.rs` (the fake systemd), `fields.rs`, `plans.rs`
//! (differences and requests), `ends.rs` (results of jobs), `reach.rs` (connections).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ends;
#[expect(dead_code, reason = "the laws of all kinds use more of the fake systemd")]
mod fake;
mod fields;
mod plans;
mod reach;
