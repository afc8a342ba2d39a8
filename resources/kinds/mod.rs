//! The kinds of resources, each in a file or folder of its own.
//!
//! A kind must change the host only through [`crate::host`], with a permit, and must never know the graph.
//!
//! Reading order: `noop.rs` and `print.rs` (the smallest ones), `msg.rs`, `value.rs`, `password.rs`, `timer.rs`,
//! `test.rs`, `hostname.rs`, `timezone.rs`, `locale.rs`, `group.rs`, then `user/`, `exec/`, `file/`, `svc/` and `pkg/`.

pub mod exec;
pub mod file;
pub mod group;
pub mod hostname;
pub mod locale;
pub mod msg;
pub mod noop;
pub mod password;
pub mod pkg;
pub mod print;
pub mod svc;
pub mod test;
pub mod timer;
pub mod timezone;
pub mod user;
pub mod value;
