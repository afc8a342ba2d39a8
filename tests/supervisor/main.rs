//! The tests of the supervisor through its public interface, in virtual time. Numbers A-n and P-n are those of the
//! promises.
//!
//! Nothing here starts a daemon or touches the host.
//!
//! Reading order: `harness`, then `install`, `inputs`, `bounce`, `backoff`, `fatal`, `shutdown`, `report`, `silence`,
//! `misbehaving_workers` and `random`.

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
