//! How the workers stand, for whoever asks. Never gathered by calling them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a worker, or the whole, stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It does not run: it has ended, or lacks an input.
    Stopped,
    /// It will be started after a delay.
    Waiting,
    /// It is being started.
    Starting,
    /// It runs.
    #[default]
    Running,
    /// It was asked to end.
    Stopping,
}

/// How one worker stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    pub message: Option<String>,
    /// How often it has failed within the last hour.
    #[serde(default)]
    pub failures: u64,
    /// How long ago it failed last, if it was within the last hour, in milliseconds.
    #[serde(default)]
    pub failed_ago: Option<u64>,
    /// Why it failed last, also after it was started again.
    #[serde(default)]
    pub last_failure: Option<String>,
    /// For how many milliseconds it, or a thread of it, has done nothing; nobody can cut it off.
    #[serde(default)]
    pub hangs_for: Option<u64>,
}

/// How all stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How the whole stands.
    pub state: State,
    /// By name.
    pub workers: BTreeMap<String, WorkerReport>,
    /// Inputs that no worker offers: a misspelt name, most likely.
    pub missing_inputs: Vec<String>,
}
