//! The kinds that run or say something: exec, timer, msg, print. Run as root.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod exec;
mod fields;
mod messages;
mod support;
mod timer;
mod trust;
