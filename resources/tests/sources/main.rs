//! Tests of the kinds that bring things from elsewhere (`fetch`, `archive`, `git`) and of `probe`, with a local server,
//! and of the fields of `unit`, `repo` and `firewall`.
//!
//! Nothing here needs a network or root. Reading order: `support.rs`, `fetch.rs`, `archive.rs`, `archive_content.rs`,
//! `git.rs`, `probe.rs`,
//! `fields.rs`. tests/hosts has the kinds that need a booted host.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod archive;
mod archive_content;
mod fetch;
mod fields;
mod git;
mod probe;
mod support;
