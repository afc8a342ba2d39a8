//! The simulated host around the daemon: kernel events, commands, a second actor, the store.
//!
//! Nothing here decides about resources. Reading order: `world`, `harness`, `commands`, `adversary`, `storage`.

pub(crate) mod adversary;
pub(crate) mod commands;
pub(crate) mod harness;
pub(crate) mod storage;
pub(crate) mod world;
