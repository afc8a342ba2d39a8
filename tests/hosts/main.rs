//! Tests on real hosts: each boots a Debian of its own under systemd-nspawn, with the built binary and its unit in it.
//!
//! Needs root, systemd-nspawn and debootstrap: `./tests/run` sees to them. A machine without them fails these tests
//! with what is missing; none is ever skipped. How a host is made is told in docs/development/testing.md.

mod control_groups;
mod doctor;
mod host;
mod lifecycle;
mod machine;
mod packages;
mod reload;
mod repair;
mod service;
mod settings;
mod unit;
mod units;
