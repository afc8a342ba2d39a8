//! The supervisor, through its public face, on a clock that the tests move. Numbers A-n and P-n are those of the promises.

mod backoff;
mod bounce;
mod end;
mod fatal;
mod inputs;
mod install;
mod random;
mod report;
mod silence;
mod stage;
mod strange;
