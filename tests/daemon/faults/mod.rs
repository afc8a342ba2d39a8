//! The real program, cut off or refused at its own system calls, each of them in turn.

#![cfg(target_arch = "x86_64")]

mod announced;
mod failing;
mod full;
mod idle;
mod killed;
mod observing;
mod power;
mod stateless;
#[expect(dead_code, reason = "the target `killing` uses the rest")]
#[path = "../../syscall_tracer.rs"]
mod syscall_tracer;
