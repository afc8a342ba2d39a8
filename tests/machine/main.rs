//! Tests on a virtual machine: the kinds that change the kernel itself, and two whole servers of
//! `examples/servers` (`tests/run --slow kernel`).
//!
//! No test here may write outside its machine. Reading order: `make-machine` (what a machine boots from), `agent` (runs
//! the commands inside), `machine` (a running machine), `kernel` (the kinds), `servers` (the servers).

mod kernel;
mod machine;
mod servers;
