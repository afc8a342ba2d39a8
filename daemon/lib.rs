//! steadfast: keeps a Linux host in the state that a YAML graph of resources declares.
//!
//! The library must never print or exit on its own outside of `cli`. Reading order: `cli` (the command line), `config`
//! (the graph file), `driver` and `watch` (the loop), `plan`, `store`, `history` and `lease` (the state that survives a
//! crash), `events`, `control` (the socket), `supervisor` and `workers` (the threads and tasks of the daemon),
//! `signals`.

pub mod cli;
pub mod config;
pub mod control;
pub mod driver;
pub mod events;
#[cfg(feature = "fault-injection")]
mod fault_injection;
pub mod history;
pub mod lease;
pub mod plan;
pub mod signals;
pub mod store;
pub mod supervisor;
pub mod watch;
pub mod workers;
