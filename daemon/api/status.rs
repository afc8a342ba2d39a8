//! The status of a host: its convergence, the resources that are not converged, and faults of the daemon.
//!
//! Ages and waits are in whole seconds.

use super::resource::{Ages, PauseStatus, ResourceStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of a host, worst first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum HostStatus {
    /// The state directory cannot be used: nothing is changed.
    ReadOnly,
    /// A run does not return.
    Stuck,
    /// A resource has failed, and no retries are left.
    Failed,
    /// A resource has failed, and a retry is due.
    Failing,
    /// Repairs are undone again and again.
    Contended,
    /// A resource is not as declared, and waits for a permission.
    Held,
    /// The daemon is stopping.
    Stopping,
    /// The daemon is paused: no run starts.
    Paused,
    /// No graph is loaded yet.
    Starting,
    /// Some resources are not as declared yet.
    Converging,
    /// All resources are as declared.
    Converged,
}

/// Numbers of resources by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// All resources.
    pub total: u32,
    /// As declared.
    pub settled: u32,
    /// Waiting for a run.
    pub waiting: u32,
    /// In progress.
    pub running: u32,
    /// Failed, with a retry due.
    pub delayed: u32,
    /// Failed, without retries left.
    pub failed: u32,
    /// Held: waiting for a permission.
    pub held: u32,
    /// Held by `noop`, which no permission ends; also counted as held.
    #[serde(default)]
    pub noop: u32,
    /// Stuck: the run does not return.
    pub stuck: u32,
    /// Contended: repairs are undone again and again.
    pub contended: u32,
}

/// The pause of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SinglePause {
    /// `kind[name]`.
    pub resource: String,
    /// The reason of the pause, and its remaining time.
    pub pause: PauseStatus,
}

/// Numbers of changes by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// Changes that the graph or the operator caused.
    pub intentional: u32,
    /// Repairs of drift.
    pub corrective: u32,
    /// Repairs of differences that the daemon itself had caused.
    pub not_idempotent: u32,
    /// Repairs of contended resources.
    pub contended: u32,
}

/// The status of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The overall status.
    pub verdict: HostStatus,
    /// The reason for the read-only mode, and the way out of it.
    #[serde(default)]
    pub read_only: Option<String>,
    /// The reason for which the last-good graph runs instead of the graph in the file.
    #[serde(default)]
    pub fallback_reason: Option<String>,
    /// The rejection of the graph in the file; the running graph stays.
    #[serde(default)]
    pub rejected: Option<GraphRejection>,
    /// An accepted graph that does not run yet.
    #[serde(default)]
    pub swap: Option<SwapStatus>,
    /// Seconds since convergence; `None` if some resource is not as declared.
    pub converged_for: Option<u64>,
    /// The name of the graph; empty before the first load.
    pub graph: String,
    /// Numbers of resources by status.
    pub counts: Counts,
    /// Resources that are undeclared and still stored; the next reload by an operator removes or forgets them.
    #[serde(default)]
    pub pending_removals: Vec<String>,
    /// The number of resources without a working watch; sweeps check them instead.
    pub unwatched: usize,
    /// The names of the first of these resources.
    #[serde(default)]
    pub unwatched_names: Vec<String>,
    /// The pause of the daemon.
    pub pause: Option<PauseStatus>,
    /// Resources that are paused on their own; the list has a maximum length.
    #[serde(default)]
    pub paused: Vec<SinglePause>,
    /// Ages of the last check, repair and event on this host.
    pub ages: Ages,
    /// Changes since the start of the daemon.
    #[serde(default)]
    pub changes: Changes,
    /// Resources that are not as declared, worst first; the list has a maximum length.
    pub unhealthy: Vec<ResourceStatus>,
    /// The number of further resources that the list leaves out.
    pub unhealthy_omitted: usize,
    /// Seconds since the start of the daemon.
    pub uptime: u64,
    /// The version of the daemon.
    #[serde(default)]
    pub version: String,
    /// Faults of the daemon itself, worst first. The overall status covers resources only.
    #[serde(default)]
    pub daemon: Vec<PartStatus>,
    /// A reboot that the host needs.
    #[serde(default)]
    pub reboot: Option<Reboot>,
    /// The git checkout that contains the graph.
    #[serde(default)]
    pub checkout: Option<Checkout>,
    /// Declared resources whose condition is false or not known yet; the list has a maximum length.
    #[serde(default)]
    pub inactive: Vec<InactiveStatus>,
    /// The number of further inactive resources that the list leaves out.
    #[serde(default)]
    pub inactive_omitted: usize,
    /// Facts that wait for a reload, and inputs of conditions that change too often, one line for each.
    #[serde(default)]
    pub input_reports: Vec<String>,
}

/// A declared resource that has no vertex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InactiveStatus {
    /// `kind[name]`.
    pub resource: String,
    /// The condition with its values, such as `inactive: facts.memory.total_mb (7984) < 4096`.
    pub message: String,
}

impl Status {
    /// Returns the status of a daemon whose first driver has not started yet.
    #[must_use]
    pub fn starting() -> Self {
        Self {
            verdict: HostStatus::Starting,
            read_only: None,
            fallback_reason: None,
            rejected: None,
            swap: None,
            converged_for: None,
            graph: String::new(),
            counts: Counts::default(),
            pending_removals: Vec::new(),
            unwatched: 0,
            unwatched_names: Vec::new(),
            pause: None,
            paused: Vec::new(),
            ages: Ages::default(),
            changes: Changes::default(),
            unhealthy: Vec::new(),
            unhealthy_omitted: 0,
            uptime: 0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            daemon: Vec::new(),
            reboot: None,
            checkout: None,
            inactive: Vec::new(),
            inactive_omitted: 0,
            input_reports: Vec::new(),
        }
    }
}

/// A rejection of the last reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphRejection {
    /// Seconds since the first rejection after the last accepted graph.
    pub rejected_for: u64,
    /// The reason in one line, with its place in the file.
    pub reason: String,
    /// The reason in full.
    pub details: String,
}

/// An accepted graph that waits for runs to end before it replaces the running graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SwapStatus {
    /// The name of the new graph.
    pub graph: String,
    /// Seconds since the new graph was accepted.
    pub waiting_for: u64,
    /// Identities of the resources whose runs have not ended.
    pub waits_for: Vec<String>,
}

/// A fault of a part of the daemon, worst first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PartCondition {
    /// The part hangs, and cannot be interrupted.
    Hangs,
    /// The part does not run.
    Down,
    /// The part cannot write its data.
    WriteFailed,
    /// The part runs, and has failed within the last hour.
    Unsteady,
}

/// A faulty part of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartStatus {
    /// The name of a worker or of a store.
    pub part: String,
    /// The fault.
    pub condition: PartCondition,
    /// The fault and its reason in a few words.
    pub message: String,
}

/// A reboot that packages have requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reboot {
    /// Packages that request the reboot, as far as they are known.
    pub packages: Vec<String>,
}

/// A git checkout. Uncommitted edits are not detected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkout {
    /// The commit that is checked out.
    pub commit: String,
    /// The branch, if one is checked out.
    pub branch: Option<String>,
}

/// The result of an undo.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// The restored paths, one line for each.
    pub lines: Vec<String>,
    /// True if the resource was paused, because its graph would revert the undo.
    pub paused: bool,
}
