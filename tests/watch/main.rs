//! The tests of the watch hub on real file systems. Needs root (chown, mounts).
//!
//! Limits are lowered in a user namespace only, never for the whole host.
//!
//! Reading order: `listener` (the harness), then `files`, `parents`, `links`, `trees`, `limits`, `silence`,
//! `timers_and_commands`, `units`, `random` and `cost` (measurements).

#[path = "../hung_fs.rs"]
mod hung_fs;
mod listener;
mod timers_and_commands;

mod cost;
mod files;
mod limits;
mod links;
mod parents;
mod random;
mod silence;
mod trees;
mod units;
