//! `kill -9` of the real daemon at each changing system call and at random ones: a restart recovers completely.
//!
//! Every kill goes through the tracer or a process handle of the test, never by name. Reading order: `harness` (the
//! host), `scenario`, `kill_point`, `calls`, `chance`, `damage`, `alone`.

#![cfg(target_arch = "x86_64")]

#[expect(dead_code, reason = "the target `daemon` uses the rest")]
#[path = "../daemon/daemon.rs"]
mod daemon;
mod harness;
#[expect(dead_code, reason = "the target `daemon` uses the rest")]
#[path = "../daemon/host.rs"]
mod host;
mod kill_point;
#[expect(dead_code, reason = "the target `daemon` uses the rest")]
#[path = "../daemon/output.rs"]
mod output;
#[expect(dead_code, reason = "the target `daemon` uses the rest")]
#[path = "../daemon/process.rs"]
mod process;
#[expect(dead_code, reason = "the target `daemon` uses the rest")]
#[path = "../syscall_tracer.rs"]
mod syscall_tracer;

mod alone;
mod calls;
mod chance;
mod damage;
mod scenario;
