//! The workers inside the daemon: who needs whom, who is started when, what happens when one fails, and in which order all stop.
//!
//! A dependency engine after juju's, in our own words (docs/decisions/0018-supervisor.md says what differs). A worker is declared by a
//! [`Manifold`]: its name, the names of its inputs, and a function that runs it. It is started when the inputs that it requires
//! are there, told anew of them by a restart when one of them comes or goes, tried again with a growing delay when it fails, and
//! stopped before what it needs. What is decided is decided by a value without a clock (`brain`); a task of its own
//! (`runner`) does it, and never calls anything of a worker. In reading order: `manifold`, `inputs`, `failure`, `backoff`, `order`, `pulse`,
//! `brain`, `stop`, `silence`, `runner`, `report`.

mod backoff;
mod dependencies;
mod failure;
mod hang_detection;
mod heartbeat;
mod manifold;
mod outputs;
mod report;
mod runner;
mod shutdown;
mod state_machine;

pub use backoff::Delays;
pub use dependencies::Refused;
pub use failure::{Failure, Kind};
pub use manifold::{Manifold, Need, WorkerContext};
pub use outputs::{Handle, Inputs, Missing, Outputs};
pub use report::{Report, State, WorkerReport};
pub use runner::{Ended, Supervisor};

/// The name of a worker.
pub type Name = std::sync::Arc<str>;
