//! The supervisor of the workers inside the daemon: dependencies, starts, restarts after failures, and the order of the
//! stop.
//!
//! A dependency engine after juju's; docs/decisions/0018-supervisor.md describes the differences. A worker is declared
//! by a [`Manifold`]: its name, the names of its inputs, and a function that runs it. A worker is started when its
//! required inputs run, restarted when one of them starts or stops, started again with a growing delay after a failure,
//! and stopped before its inputs. All decisions are made by a value without a clock (`state_machine`); a task of its
//! own (`runner`) executes them, and must never call code of a worker.
//!
//! Reading order: `manifold`, `outputs`, `failure`, `backoff`, `dependencies`, `heartbeat`, `state_machine`,
//! `shutdown`, `hang_detection`, `runner`, `report`.

mod backoff;
mod dependencies;
mod failure;
mod hang_detection;
mod heartbeat;
mod manifold;
mod outputs;
mod runner;
mod shutdown;
mod state_machine;

pub use crate::api::{Report, State, WorkerReport};
pub use backoff::Delays;
pub use dependencies::Refused;
pub use failure::{Failure, Kind};
pub use manifold::{Manifold, Need, WorkerContext};
pub use outputs::{Handle, Inputs, Missing, Outputs};
pub use runner::{Ended, Supervisor};

/// The name of a worker.
pub type Name = std::sync::Arc<str>;
