//! Wire types of the status: is this host as declared, which resources are not, and which runs come next?
//!
//! Ages and waits are in whole seconds.

use serde::{Deserialize, Serialize};
use steadfast_engine::Class;
use steadfast_resources::Difference;

/// The status of a host, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Stuck: the run does not return.
    pub stuck: u32,
    /// Contended: repairs are undone again and again.
    pub contended: u32,
}

/// A pause of the daemon or of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseStatus {
    /// The reason, as given by the operator or by the program.
    pub reason: String,
    /// Seconds until the pause ends without a resume.
    pub ends_in: Option<u64>,
    /// True if no run is in progress any more.
    pub at_rest: bool,
}

/// The pause of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinglePause {
    /// `kind[name]`.
    pub resource: String,
    /// The reason of the pause, and its remaining time.
    pub pause: PauseStatus,
}

/// Ages of the last check, repair and event, in seconds; `None` if there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ages {
    /// The last check.
    pub check: Option<u64>,
    /// The last change.
    pub repair: Option<u64>,
    /// The last event of a watch.
    pub event: Option<u64>,
}

/// The cause of a change, named as in the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeClass {
    /// The graph changed, or the operator requested the change.
    #[serde(rename = "intentional")]
    Intentional,
    /// Something else had changed the host.
    #[serde(rename = "corrective")]
    Corrective,
    /// The daemon had changed the resource before, and it differed again through the daemon's own work.
    #[serde(rename = "not idempotent")]
    NotIdempotent,
    /// Someone else undoes the change again and again.
    #[serde(rename = "contended")]
    Contended,
}

/// Numbers of changes by [`ChangeClass`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        }
    }
}

/// A rejection of the last reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphRejection {
    /// Seconds since the first rejection after the last accepted graph.
    pub rejected_for: u64,
    /// The reason in one line, with its place in the file.
    pub reason: String,
    /// The reason in full.
    pub details: String,
}

/// An accepted graph that waits for runs to end before it replaces the running graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapStatus {
    /// The name of the new graph.
    pub graph: String,
    /// Seconds since the new graph was accepted.
    pub waiting_for: u64,
    /// Identities of the resources whose runs have not ended.
    pub waits_for: Vec<String>,
}

/// A fault of a part of the daemon, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartStatus {
    /// The name of a worker or of a store.
    pub part: String,
    /// The fault.
    pub condition: PartCondition,
    /// The fault and its reason in a few words.
    pub message: String,
}

/// A reboot that packages have requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reboot {
    /// Packages that request the reboot, as far as they are known.
    pub packages: Vec<String>,
}

/// A git checkout. Uncommitted edits are not detected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// The commit that is checked out.
    pub commit: String,
    /// The branch, if one is checked out.
    pub branch: Option<String>,
}

/// The result of an undo.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// The restored paths, one line for each.
    pub lines: Vec<String>,
    /// True if the resource was paused, because its graph would revert the undo.
    pub paused: bool,
}

/// The status of one resource, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The run does not return.
    Stuck,
    /// The resource has failed, and no retries are left.
    Failed,
    /// The resource has failed, and a retry is due.
    Delayed,
    /// Repairs are undone again and again; the time between repairs grows.
    Contended,
    /// The resource is not as declared, and waits for a permission.
    Held,
    /// The resource waits for other resources, its watch, its rate limit, a semaphore or a slot.
    Waiting,
    /// A check or an apply is in progress.
    Running,
    /// The resource is as declared, as far as is known.
    Settled,
}

/// The status of one resource, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceStatus {
    /// `kind[name]`.
    pub resource: String,
    /// The status.
    pub phase: Phase,
    /// The status in a few words, with the reason of a wait or a hold.
    pub message: String,
    /// Identities of the resources that this one waits for.
    pub waits_for: Vec<String>,
    /// Seconds until the next retry.
    pub next_try_in: Option<u64>,
    /// Seconds since the start of the current run.
    pub running_for: Option<u64>,
    /// Seconds since the resource began to wait for the operator, as seen by this daemon.
    #[serde(default)]
    pub awaiting_operator_for: Option<u64>,
    /// The last failure, with a hint.
    pub error: Option<String>,
    /// Ages of the last check, repair and event.
    pub ages: Ages,
    /// The number of changes since the start of the daemon.
    #[serde(default)]
    pub repairs: u32,
    /// The cause of the last change since the start of the daemon.
    #[serde(default)]
    pub last_change: Option<ChangeClass>,
    /// The pause of this resource on its own.
    #[serde(default)]
    pub pause: Option<PauseStatus>,
    /// True for a removal: the resource has left the graph and is being removed.
    #[serde(default)]
    pub pending_removal: bool,
}

/// The ownership of the object that a resource manages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// True if the daemon has created the object; false if it existed before; `None` if there is no object to remove.
    pub created: Option<bool>,
    /// True if a created object is deleted when the resource leaves the graph.
    pub on_remove_delete: bool,
    /// True if a graph without this resource is rejected.
    pub protected: bool,
}

/// The order of a list of resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Worst first.
    #[default]
    State,
    /// By identity.
    Name,
    /// Last changed first.
    Changed,
    /// Most changes first.
    Repairs,
}

/// A request for a page of the list of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The text that an identity must contain; empty admits all.
    pub filter: String,
    /// The order of the list.
    pub order: Order,
    /// The number of entries to skip.
    pub from: usize,
    /// The maximum number of entries to return.
    pub most: usize,
}

/// A page of the list of resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// The entries of the page.
    pub rows: Vec<ResourceStatus>,
    /// The number of all entries that match the filter.
    pub total: usize,
}

/// One aspect in which a resource differs from its declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differing {
    /// The name of the aspect.
    pub aspect: String,
    /// The current value; empty if there is none.
    pub from: String,
    /// The declared value.
    pub to: String,
    /// A unified diff, if both values are texts that may be shown.
    pub diff: Option<String>,
}

impl From<Class> for ChangeClass {
    fn from(class: Class) -> Self {
        match class {
            Class::Intentional => Self::Intentional,
            Class::Corrective => Self::Corrective,
            Class::NotIdempotent => Self::NotIdempotent,
            Class::Contended => Self::Contended,
        }
    }
}

impl ChangeClass {
    /// Returns the name of this cause, as events and messages show it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Intentional => "intentional",
            Self::Corrective => "corrective",
            Self::NotIdempotent => "not idempotent",
            Self::Contended => "contended",
        }
    }
}

impl From<&Difference> for Differing {
    fn from(one: &Difference) -> Self {
        let (from, to, diff) = (one.from.clone(), one.to.clone(), one.diff.clone());
        Self { aspect: one.aspect.to_owned(), from, to, diff }
    }
}

/// The result of a check on request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// `kind[name]`.
    pub resource: String,
    /// The differences; empty if the resource is as declared.
    pub differences: Vec<Differing>,
    /// True if an apply would destroy something that exists.
    pub destructive: bool,
    /// The reason for which the check has no result.
    pub error: Option<String>,
}

/// The results of checks on request: resources that differ, and resources whose check has no result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspections {
    /// One result for each such resource.
    pub items: Vec<Inspection>,
    /// The number of resources that were not checked.
    pub skipped: usize,
    /// Resources that were skipped because they are paused on their own.
    #[serde(default)]
    pub paused: Vec<String>,
    /// Resources that were skipped because they depend on a paused one.
    #[serde(default)]
    pub waiting: Vec<String>,
}

/// One resource in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceDetails {
    /// The status of the resource.
    pub status: ResourceStatus,
    /// Identities of the resources that this one depends on.
    pub needs: Vec<String>,
    /// Identities of the resources that depend on this one.
    pub needed_by: Vec<String>,
    /// Identities of the resources that wait for this one now; the list has a maximum length.
    #[serde(default)]
    pub waited_for_by: Vec<String>,
    /// The source of the events of this resource.
    pub watch: String,
    /// The ownership record, if there is one.
    #[serde(default)]
    pub owned: Option<Ownership>,
}
