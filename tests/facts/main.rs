//! The tests of facts: hosts of several distributions as folders of files, local facts, wrong values, and the command.
//!
//! No test depends on the host that runs it, except for the command. Reading order: `hosts` (the folders), `collected`,
//! `refused`, `command`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod collected;
mod command;
mod hosts;
mod refused;
