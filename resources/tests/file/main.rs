//! The kind `file`, seen from outside: declared, held, safe, raced, unprivileged, in random sequences. Runs as root.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod backup;
mod contents;
mod copied;
mod declared;
mod held;
mod later_runs;
mod private_objects;
mod races;
mod relatives;
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
