//! `kill -9` of the real daemon at each system call that changes something, and at random ones: a restart finds all that it needs.

#![cfg(target_arch = "x86_64")]

#[expect(dead_code, reason = "the target `daemon` uses the rest")]
#[path = "../daemon/daemon.rs"]
mod daemon;
#[expect(dead_code, reason = "the target `daemon` uses the rest")]
#[path = "../daemon/host.rs"]
mod host;
#[expect(dead_code, reason = "the target `daemon` uses the rest")]
#[path = "../daemon/output.rs"]
mod output;
#[expect(dead_code, reason = "the target `daemon` uses the rest")]
#[path = "../daemon/process.rs"]
mod process;
#[expect(dead_code, reason = "the target `daemon` uses the rest")]
#[path = "../tracer.rs"]
mod tracer;

mod alone;
mod calls;
mod chance;
mod damage;
mod ground;
mod scenario;
mod strike;
