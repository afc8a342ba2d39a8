//! The kinds of resources, each in a file or folder of its own.
//!
//! A kind must change the host only through [`crate::host`], with a permit, and must never know the graph.
//!
//! Reading order: `noop.rs` and `print.rs` (the smallest ones), `msg.rs`, `value.rs`, `password.rs`, `timer.rs`,
//! `test.rs`. Kinds of one part or value: `hostname.rs`, `timezone.rs`, `locale/`, `line/`, `block/`, `replace/`,
//! `ini/`, `hosts/`, `json/`, `yaml/`, `toml/`, `kmod.rs`, `group.rs`. Larger ones: `user/`, `cron/`, `sysctl/`,
//! `mount/`, `swap/`, `ssh_authorized_key/`, `unit/`, `repo/`, `divert/`, `fetch/`, `archive/`, `git/`, `firewall/`,
//! `probe.rs`, `kv.rs`, `export.rs`, then `exec/`, `svc/`, `pkg/` and `file/`.

pub mod archive;
pub mod block;
pub mod cron;
pub mod divert;
pub mod exec;
pub mod export;
pub mod fetch;
pub mod file;
pub mod firewall;
pub mod git;
pub mod group;
pub mod hostname;
pub mod hosts;
pub mod ini;
pub mod json;
pub mod kmod;
pub mod kv;
pub mod line;
pub mod locale;
pub mod mount;
pub mod msg;
pub mod noop;
pub mod password;
pub mod pkg;
pub mod print;
pub mod probe;
pub mod replace;
pub mod repo;
pub mod ssh_authorized_key;
pub mod svc;
pub mod swap;
pub mod sysctl;
pub mod test;
pub mod timer;
pub mod timezone;
pub mod toml;
pub mod unit;
pub mod user;
pub mod value;
pub mod yaml;
