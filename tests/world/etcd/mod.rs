//! A real cluster of etcd: three members on loopback ports, killed, frozen and compacted.

pub(crate) mod cluster;
mod hosts;
mod members;
mod security;
