//! The real program with its own system calls interrupted or failing, each in turn.
//!
//! Faults are injected by a tracer or by a file system of the test, never on the host. Reading order: `killed`,
//! `failing`, `power`, `full`, `stateless`, `announced`, `read_only` and `idle`.

#![cfg(target_arch = "x86_64")]

mod announced;
mod failing;
pub(crate) mod full;
mod idle;
mod killed;
mod power;
mod read_only;
mod stateless;
#[expect(dead_code, reason = "the target `killing` uses the rest")]
#[path = "../../syscall_tracer.rs"]
mod syscall_tracer;
