//! Tests of the kinds `cron`, `sysctl`, `kmod`, `mount` and `swap` on the simulated host: wrong fields, convergence,
//! drift, removal, undo, and failing calls.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod cron;
mod inspected;
mod kmod;
mod mount;
mod stand_in;
mod support;
mod swap;
mod sysctl;
