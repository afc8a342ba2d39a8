//! Tests of the kind `file` through its public interface. The tests run as root.
//!
//! A test must never change anything outside of its own temporary directory, except in a namespace of its
//! own. Reading order: `support.rs` (the harness), `declared.rs`, `held.rs`, `contents.rs`, `copied.rs`,
//! `backup.rs`, `trees.rs`, `tree_faults.rs`, `temporary.rs`; then the protection against other users:
//! `safety.rs`, `races.rs`, `windows.rs`, `trust.rs`, `strangers.rs`, `takeover.rs`, `later_runs.rs`,
//! `private_objects.rs`, `moved_trees.rs`, `restored.rs`, `relatives.rs`, `unprivileged.rs`; then random sequences in
//! `sequences.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod backup;
mod contents;
mod copied;
mod declared;
mod held;
mod later_runs;
mod moved_trees;
mod private_objects;
mod races;
mod relatives;
mod restored;
mod safety;
mod sequences;
mod strangers;
mod support;
mod takeover;
mod temporary;
mod tree_faults;
mod trees;
mod trust;
mod unprivileged;
mod windows;
