//! The hub of event sources on real file systems. Needs root (chown, mounts); the limits are lowered in a user
//! namespace only.

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
