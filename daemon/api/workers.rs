//! The report on all workers. The supervisor composes it from stored data, never by calling workers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The state of a worker, or of the whole supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The worker does not run: it has ended, or lacks an input.
    Stopped,
    /// The worker will be started after a delay.
    Waiting,
    /// The worker is being started.
    Starting,
    /// The worker runs.
    #[default]
    Running,
    /// The worker was asked to end.
    Stopping,
}

/// The report on one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerReport {
    /// The state of the worker.
    pub state: State,
    /// The inputs of the worker, with true for each one that runs.
    pub inputs: BTreeMap<String, bool>,
    /// The number of times that the worker became ready.
    pub starts: u64,
    /// The time since which the worker runs, in milliseconds since 1970.
    pub started: Option<u64>,
    /// The reason for which the worker does not run, or the last failure; cleared at a start.
    pub last_error: Option<String>,
    /// The time until the next start, in milliseconds from the report.
    pub next_attempt_in: Option<u64>,
    /// The status text of the worker.
    pub message: Option<String>,
    /// The number of failures within the last hour.
    #[serde(default)]
    pub failures: u64,
    /// The time since the last failure within the last hour, in milliseconds.
    #[serde(default)]
    pub failed_ago: Option<u64>,
    /// The last failure, also after a new start.
    #[serde(default)]
    pub last_failure: Option<String>,
    /// The time for which the worker or its thread has hung, in milliseconds; it could not be aborted.
    #[serde(default)]
    pub hangs_for: Option<u64>,
}

/// The report on all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The state of the supervisor.
    pub state: State,
    /// The reports by worker name.
    pub workers: BTreeMap<String, WorkerReport>,
    /// The names of inputs that no worker has: most likely misspelt.
    pub missing_inputs: Vec<String>,
}
