//! Tests on a virtual machine: the kinds that change the kernel itself (`tests/run --slow kernel`).
//!
//! No test here may write outside its machine. Reading order: `make-machine` (what a machine boots from), `agent` (runs
//! the commands inside), `machine` (a running machine), `kernel` (the tests).

mod kernel;
mod machine;
