//! Tests of the kinds `cron`, `sysctl`, `kmod`, `mount` and `swap` on the simulated host: wrong fields, convergence,
//! drift, removal, undo, and failing calls.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod cron;
mod faults;
mod inspected;
mod kmod;
mod mount;
mod support;
mod swap;
mod sysctl;
