//! The supervisor, through its public face, on a clock that the tests move. Numbers A-n and P-n are those of the
//! promises.

mod backoff;
mod bounce;
mod fatal;
mod harness;
mod inputs;
mod install;
mod misbehaving_workers;
mod random;
mod report;
mod shutdown;
mod silence;
