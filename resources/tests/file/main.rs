//! The kind `file`, seen from outside: declared, held, safe, raced, unprivileged, in random sequences. Runs as root.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod contents;
mod copied;
mod declared;
mod held;
mod races;
mod safety;
mod sequences;
mod support;
mod trees;
mod trust;
mod unprivileged;
mod windows;
