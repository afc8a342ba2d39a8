//! The tests of the world: one contract for all back ends, the permits, and signed bundles.
//!
//! The etcd part needs the feature `etcd` and Debian's etcd-server: `tests/run --slow world`. Reading order:
//! `backends` (one world of each kind), `contract`, `leases`, `watches`, `follower`, `bundles`, `simulated/`
//! (virtual time and faults), `hosts/` (real daemons).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod backends;
mod bundles;
mod contract;
#[cfg(feature = "etcd")]
mod etcd;
mod follower;
mod hosts;
mod leases;
mod simulated;
mod watches;
