//! Tests on real hosts: each boots a Debian under systemd-nspawn with the built program and its unit.
//!
//! Needs root, systemd-nspawn and debootstrap, which `./tests/run` installs. A machine without them fails these tests
//! with a message; no test is skipped. docs/development/testing.md describes the hosts.
//!
//! Nothing here changes the real host. Reading order: `control_groups`, `machine`, `host` and `service` (the
//! harness), then `lifecycle`, `unit`, `reload`, `repair`, `settings`, `doctor`, `kernel`, `laws`, `packages`, `units`,
//! `accounts`, `identity`, `init`, `guide`, `secrets_in_git`, `sources` and `servers`.

mod accounts;
mod control_groups;
mod doctor;
mod guide;
mod host;
mod identity;
mod init;
mod kernel;
mod laws;
mod lifecycle;
mod machine;
mod packages;
mod reload;
mod repair;
mod secrets_in_git;
mod servers;
mod service;
mod settings;
mod sources;
mod unit;
mod units;
