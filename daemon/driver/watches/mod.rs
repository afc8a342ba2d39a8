//! The watches of the loaded resources: requested, established or lost, and the two sources that the host provides.
//!
//! Paths are watched by `daemon/watch`, never here. Reading order: `state`, `debounce`, `sweep`, `command_source`,
//! `systemd_source`.

pub(super) mod command_source;
pub(super) mod debounce;
pub(super) mod state;
pub(super) mod sweep;
pub(super) mod systemd_source;
