//! steadfast: holds a Linux host to a YAML graph of resources. In reading order: the command line, the graph file, the loop, what
//! survives a crash, and the signals.

pub mod cli;
pub mod config;
pub mod control;
pub mod driver;
pub mod events;
#[cfg(debug_assertions)]
mod fault_injection;
pub mod history;
pub mod lease;
pub mod plan;
pub mod signals;
pub mod store;
pub mod supervisor;
pub mod watch;
pub mod workers;
