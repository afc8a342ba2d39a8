//! One resource: its status, its details, and the pages of the list of resources.
//!
//! Ages and waits are in whole seconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of one resource, worst first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
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
    /// The resource is declared, and its condition is false or not known yet: it is not checked, and its records stay.
    Inactive,
}

/// The status of one resource, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// A pause of the daemon or of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PauseStatus {
    /// The reason, as given by the operator or by the program.
    pub reason: String,
    /// Seconds until the pause ends without a resume.
    pub ends_in: Option<u64>,
    /// True if no run is in progress any more.
    pub at_rest: bool,
}

/// Ages of the last check, repair and event, in seconds; `None` if there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ages {
    /// The last check.
    pub check: Option<u64>,
    /// The last change.
    pub repair: Option<u64>,
    /// The last event of a watch.
    pub event: Option<u64>,
}

/// The cause of a change, named as in the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// The ownership of the object that a resource manages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ownership {
    /// True if the daemon has created the object; false if it existed before; `None` if there is no object to remove.
    pub created: Option<bool>,
    /// True if a created object is deleted when the resource leaves the graph.
    pub on_remove_delete: bool,
    /// True if a graph without this resource is rejected.
    pub protected: bool,
}

/// The order of a list of resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// A page of the list of resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct List {
    /// The entries of the page.
    pub rows: Vec<ResourceStatus>,
    /// The number of all entries that match the filter.
    pub total: usize,
}

/// One resource in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The file and the line of the declaration.
    #[serde(default)]
    pub declared_at: Option<(String, u32)>,
    /// The ownership record, if there is one.
    #[serde(default)]
    pub owned: Option<Ownership>,
    /// The file and the line of the condition of an inactive resource.
    #[serde(default)]
    pub condition_at: Option<String>,
}

/// The status of selected resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SelectedResources {
    /// The number of selected resources.
    pub total: usize,
    /// The number of converged resources.
    pub converged: usize,
    /// The number of failed resources without retries left.
    pub failed: usize,
    /// The number of failed resources with a retry due.
    pub retrying: usize,
    /// The number of resources that differ and are held by `noop`.
    #[serde(default)]
    pub noop: usize,
    /// The number of individually paused resources without an active run.
    pub paused: usize,
    /// The number of changes of all selected resources since the start of the daemon.
    pub changes: u64,
    /// Seconds since the last of these changes.
    pub last_change: Option<u64>,
    /// The resources, worst first; the list has a maximum length.
    pub rows: Vec<ResourceStatus>,
}
