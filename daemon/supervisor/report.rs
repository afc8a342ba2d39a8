//! How the workers stand, for whoever asks. Never gathered by calling them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a worker, or the whole, stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It does not run: it has ended, or lacks an input.
    Stopped,
    /// It will be started after a delay.
    Waiting,
    /// It is being started.
    Starting,
    /// It runs.
    Running,
    /// It was asked to end.
    Stopping,
}

/// How one worker stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// How it stands.
    pub state: State,
    /// Its inputs, and which of them are there.
    pub inputs: BTreeMap<String, bool>,
    /// How often it has come to run.
    pub starts: u64,
    /// Since when it runs, in milliseconds since 1970.
    pub started: Option<u64>,
    /// Why it does not run, or why it ended last; forgotten when it is started.
    pub last_error: Option<String>,
    /// In how many milliseconds it is started, at the time of the report.
    pub next_attempt_in: Option<u64>,
    /// What it says of itself.
    pub says: Option<String>,
}

/// How all stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How the whole stands.
    pub state: State,
    /// By name.
    pub workers: BTreeMap<String, WorkerReport>,
    /// Inputs that no worker offers: a misspelt name, most likely.
    pub nobody: Vec<String>,
}
