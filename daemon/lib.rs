//! steadfast: keeps a Linux host in the state that a YAML graph of resources declares.
//!
//! The library must never print or exit on its own outside of `cli`. Reading order: `api` (requests, replies and events
//! as data), `cli` (the command line), `config` (the graph file), `expressions` (its language), `facts` (of the host),
//! `driver` and `watch` (the loop), `selection` (the resources that a command names), `plan`, `store`, `history` and
//! `lease` (the state that survives a crash), `events`, `control` (the socket), `metrics`, `world` (keys that hosts
//! share), `supervisor` and `workers` (the threads and tasks of the daemon), `signals`, and the helpers `allocator`,
//! `compression`, `file_identity`, `nearest_name`, `fault_injection`.

pub mod api;
pub mod cli;
mod compression;
pub mod config;
pub mod control;
pub mod driver;
pub mod events;
pub mod expressions;
pub mod facts;
#[cfg(feature = "fault-injection")]
mod fault_injection;
mod file_identity;
pub mod history;
pub mod lease;
pub mod metrics;
mod nearest_name;
pub mod plan;
pub mod selection;
pub mod signals;
pub mod store;
pub mod supervisor;
pub mod watch;
pub mod workers;
pub mod world;
