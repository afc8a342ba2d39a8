//! The watches of the loaded resources: requested, established or lost, and the two event sources that the host
//! provides.
//!
//! Invariant: paths are watched in `daemon/watch`, not here. Reading order: `manager.rs` (the component), `signals.rs`,
//! `state.rs`, `polled.rs`, `debounce.rs`, `sweep.rs`, `command_source.rs`, `systemd_source.rs`.

pub(super) mod command_source;
pub(super) mod debounce;
pub(super) mod manager;
pub(super) mod polled;
pub(super) mod signals;
pub(super) mod state;
pub(super) mod sweep;
pub(super) mod systemd_source;
