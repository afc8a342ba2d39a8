//! Tests of the kinds that run commands or print messages: exec, timer, msg, print. The tests must run as
//! root.
//!
//! The tests must not start a daemon: they call a kind directly. Reading order: `support.rs` (the harness),
//! `fields.rs`, `exec.rs`, `trust.rs`, `timer.rs`, `messages.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod exec;
mod fields;
mod messages;
mod support;
mod timer;
mod trust;
