//! A real cluster of etcd: three members, killed, frozen, partitioned and compacted.
//!
//! Reading order: `cluster` (members on loopback ports), `network` (members in network namespaces), `members`, `hosts`,
//! `security`, `history` (what was recorded, and the checker), `histories` (recorded courses), `figures`
//! (speed).

pub(crate) mod cluster;
mod figures;
mod histories;
mod history;
mod hosts;
mod members;
mod network;
mod security;
