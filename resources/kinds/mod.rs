//! The kinds of resources, each in a file or folder of its own.
//!
//! A kind must change the host only through [`crate::host`], with a permit, and must never know the graph.
//!
//! Reading order: `noop.rs` and `print.rs` (the smallest ones), `msg.rs`, `value.rs`, `password.rs`,
//! `timer.rs`, `test.rs`, `kmod.rs`, then `cron/`, `sysctl/`, `mount/`, `swap/`, `exec/`, `file/`, `svc/` and `pkg/`.

pub mod block;
pub mod cron;
pub mod exec;
pub mod file;
pub mod hosts;
pub mod ini;
pub mod json;
pub mod kmod;
pub mod line;
pub mod mount;
pub mod msg;
pub mod noop;
pub mod password;
pub mod pkg;
pub mod print;
pub mod ssh_authorized_key;
pub mod svc;
pub mod swap;
pub mod sysctl;
pub mod test;
pub mod timer;
pub mod toml;
pub mod value;
pub mod yaml;
//! `timer.rs`, `test.rs`, then `exec/`, `file/`, `svc/` and `pkg/`. Kinds that edit a
//! part of a text file: `line.rs`, `block.rs`, `ini.rs`, `hosts.rs`, `json.rs`, `yaml.rs`, `toml/`,
//! `ssh_authorized_key/`.
