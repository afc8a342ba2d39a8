//! The hub of event sources on real file systems. Needs root (chown, mounts); the limits are lowered in a user namespace only.

#[path = "../hung.rs"]
mod hung;

mod cost;
mod ears;
mod files;
mod limits;
mod links;
mod others;
mod parents;
mod random;
mod silence;
mod trees;
mod units;
