//! The data of events. Times are in milliseconds, unless the name says otherwise.

use super::load::{GraphDiff, NameSample};
use super::resource::ChangeClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One aspect in which a resource differed. Long values are cut; secret and sensitive values are not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AspectChange {
    /// The name of the aspect: `content`, `mode`, `owner`, `state`, …
    pub aspect: String,
    /// The state before the change; empty if there was none.
    pub from: String,
    /// The declared state; empty if nothing is left.
    pub to: String,
}

/// A run of this session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// The number of the run in this session.
    pub number: u64,
    /// The cause of the run, in one word.
    pub cause: String,
}

/// A failure of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunError {
    /// The reason.
    pub reason: String,
    /// The advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The data of `changed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// The cause of the change.
    pub class: ChangeClass,
    /// The differences that the check had found; at most 20.
    pub differences: Vec<AspectChange>,
    /// The number of further differences.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// The changes that the apply has made, in the words of the kind.
    pub notes: Vec<String>,
    /// The time from the start of the run to its end.
    pub took: u64,
    /// The run.
    pub run: RunInfo,
}

/// The data of `error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunFailed {
    /// The failure.
    pub error: RunError,
    /// The run.
    pub run: RunInfo,
}

/// The data of `asking`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asking {
    /// The checked resources: direct or indirect dependencies of the failed one.
    pub parents: NameSample,
}

/// The change that a failed apply was to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedChange {
    /// The cause of the change.
    pub class: ChangeClass,
    /// The differences that the check had found; at most 20.
    pub differences: Vec<AspectChange>,
    /// The number of further differences.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
}

/// The data of `retrying`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retrying {
    /// The last failure.
    pub error: Option<RunError>,
    /// The change that the failed apply was to make; absent for a failed check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<FailedChange>,
    /// The time until the retry.
    pub after: u64,
    /// The failed run.
    pub run: Option<RunInfo>,
}

/// The data of `failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// The last failure.
    pub error: Option<RunError>,
    /// The change that the failed apply was to make; absent for a failed check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<FailedChange>,
    /// Resources that wait for the failed one.
    pub waiting: NameSample,
    /// The last run.
    pub run: Option<RunInfo>,
}

/// The reason of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HoldReason {
    /// The resource would change, and nothing is changed in this session or graph.
    WouldChange,
    /// The resource would be refreshed only.
    WouldRefresh,
    /// The result is unknown until another resource is changed.
    Unknown,
    /// Changes are allowed in a maintenance window only.
    Window,
    /// A run was interrupted, and the operator decides.
    Operator,
}

/// The data of `held`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// The reason.
    pub reason: HoldReason,
    /// For `unknown`: the other resource. For `window`: its opening times.
    pub until: Option<String>,
    /// The differences that an apply would remove; at most 20.
    pub differences: Vec<AspectChange>,
    /// The number of further differences.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// True if an apply would destroy something that exists.
    pub destructive: bool,
    /// The run that was stopped before its apply.
    pub run: Option<RunInfo>,
}

/// The data of `interrupted`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interrupted {
    /// The run; none for a run of an earlier process, which the next start reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunInfo>,
}

/// An event with a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The reason.
    pub reason: String,
}

/// An event that is a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Text {
    /// The text.
    pub text: String,
}

/// The data of `paused`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paused {
    /// The reason, as given by the operator or by the program.
    pub reason: String,
    /// The time until the pause ends without a resume.
    pub ends_in: u64,
}

/// The culprit of a contention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Culprit {
    /// Somebody outside of the graph.
    Another,
    /// The resource itself.
    Itself,
    /// Another resource of the graph.
    Resource(String),
    /// No culprit was observed.
    Unknown,
}

/// The data of `contended`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contended {
    /// The number of repairs so far.
    pub repairs: u32,
    /// The culprit; absent in a later report of the same contention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Culprit>,
    /// For a later report: the time since the contention began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<u64>,
    /// For a later report: the time until the next repair, at the earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// The user of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionUser {
    /// The user id.
    pub uid: u32,
    /// The name of the user, if there is one.
    pub name: Option<String>,
}

/// The identity of a session, which its start and its end name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The command: `run`, `apply`, …
    pub command: String,
    /// The paths of the graph, if the command has one.
    pub graph: Vec<String>,
    /// The user of the process.
    pub user: SessionUser,
    /// The version of steadfast.
    pub version: String,
    /// The process id.
    pub process: u32,
}

/// The data of `run_end`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEnd {
    /// The result: `stopped`, `succeeded`, `failed`, `cut off`, `interrupted`, …
    pub result: String,
    /// The number of the `run_start` event.
    pub run: Option<u64>,
    /// The session; absent if its start is no longer stored.
    pub session: Option<Session>,
    /// The result in words.
    pub text: String,
}

/// The data of `loaded`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loaded {
    /// The name of the graph.
    pub graph: String,
    /// The difference from the old graph.
    pub change: GraphDiff,
}

/// The data of `loading`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loading {
    /// The resources whose runs must end.
    pub waits: NameSample,
    /// The difference from the running graph.
    pub change: GraphDiff,
}

/// The data of `last_good_graph_used`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastGoodGraph {
    /// The name of the graph that runs.
    pub graph: String,
    /// The time at which that graph was accepted, in RFC 3339.
    pub accepted_at: String,
    /// The reason for the rejection of the current graph.
    pub reason: String,
}

/// The data of `converged`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Converged {
    /// The number of all resources.
    pub total: u32,
}

/// The data of `pausing`, `stopping` and `stopped`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// The resources whose runs must end; for `stopped`: those whose runs were interrupted.
    pub resources: NameSample,
}

/// The data of `pause_ends`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PauseEnds {
    /// The time until the pause ends.
    pub ends_in: u64,
}

/// The data of `repairs_suspended`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepairsSuspended {
    /// The number of repairs that were undone within a minute.
    pub repairs: u32,
    /// The time for which repeated repairs are suspended.
    pub lasts: u64,
}

/// The data of `worker_started` and `worker_stopped`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    /// The name of the worker.
    pub worker: String,
    /// The reason of the end; absent for a start and for a requested end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The data of `gap`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// The number of missing events; absent if it is unknown.
    pub count: Option<u64>,
    /// The reason.
    pub reason: String,
}

/// The data of `repeated`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeated {
    /// The name of the counted event.
    pub of: String,
    /// The number of counted events.
    pub count: u64,
}

/// The data of `dead_lettered`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLettered {
    /// The name of the recorder.
    pub recorder: String,
    /// The number of the first rejected event.
    pub first: u64,
    /// The number of the last rejected event.
    pub last: u64,
    /// The number of rejected events.
    pub count: u64,
    /// The reply of the server.
    pub reason: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
