//! Tests of the kind `file` through its public interface. The tests run as root.
//!
//! A test must never change anything outside of its own temporary directory, except in a namespace of its
//! own. Reading order: `support.rs` (the harness), `declared.rs`, `held.rs`, `extended.rs`, `contents.rs`, `copied.rs`,
//! `backup.rs`, `trees.rs`, `tree_faults.rs`, `temporary.rs`; then the protection against other users
//! in `other_users/`; then random sequences in `sequences.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod backup;
mod contents;
mod copied;
mod declared;
mod extended;
mod held;
mod other_users;
mod sequences;
mod support;
mod temporary;
mod tree_faults;
mod trees;
