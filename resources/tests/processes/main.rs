//! Tests of the host's commands: argument vectors, environment and ends. The tests run as root; rules that
//! must hold without root are tested again as the user nobody.
//!
//! The tests must use the public interface of the host only. Reading order: `support.rs` (the harness),
//! `surroundings.rs` (the environment), `output.rs`, `ends.rs`, `lines.rs`, `other_user.rs`,
//! `working_directories.rs`, `speed.rs` (a measurement).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ends;
mod lines;
mod other_user;
mod output;
mod speed;
mod support;
mod surroundings;
mod working_directories;
