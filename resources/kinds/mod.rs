//! The kinds of resources, each in a file or folder of its own.
//!
//! A kind must change the host only through [`crate::host`], with a permit, and must never know the graph.
//!
//! Reading order: `noop.rs` and `print.rs` (the smallest ones), `msg.rs`, `value.rs`, `password.rs`,
//! `timer.rs`, `test.rs`, then `exec/`, `file/`, `svc/` and `pkg/`.

pub mod archive;
pub mod exec;
pub mod fetch;
pub mod file;
pub mod firewall;
pub mod git;
pub mod msg;
pub mod noop;
pub mod password;
pub mod pkg;
pub mod print;
pub mod probe;
pub mod repo;
pub mod svc;
pub mod test;
pub mod timer;
pub mod unit;
pub mod value;
