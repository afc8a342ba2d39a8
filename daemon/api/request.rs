//! The requests: a closed list.

use super::resource::Order;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of this protocol. A request of another version is rejected.
pub const PROTOCOL: u32 = 1;

/// The line of a request, with the version of the protocol.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RequestLine {
    /// The version of the protocol: [`PROTOCOL`].
    pub protocol: u32,
    /// The request.
    pub request: Request,
    /// The time of sending, in milliseconds since the boot of the host with all suspends; none from other clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<u64>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Returns the status of the host with some of the resources that are not converged.
    Status {
        /// The maximum number of listed resources.
        limit: usize,
    },
    /// Returns all data about one resource.
    Show {
        /// `kind[name]`.
        resource: String,
    },
    /// Returns the names of resources with a prefix, in order.
    Names {
        /// The prefix, such as `file[`; empty for all.
        prefix: String,
        /// The maximum number of names.
        limit: usize,
    },
    /// Returns a page of the list of all resources.
    List {
        /// A text that the names must contain.
        filter: String,
        /// The sort order.
        order: Order,
        /// The number of skipped entries.
        from: usize,
        /// The maximum number of entries.
        limit: usize,
    },
    /// Checks resources now and returns their differences, contents included. Without names: all resources that must
    /// run.
    Diff {
        /// The resources, each as `kind[name]`.
        resources: Vec<String>,
        /// True if each resource is checked after the changes of its parents, as a resume of these resources would do.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        resume: bool,
    },
    /// Returns the status of the selected resources, as a whole and one by one.
    Select {
        /// The selectors: `kind[name]`, a name, `kind[*]`, `instance/*` or `label:key=value`.
        resources: Vec<String>,
        /// The maximum number of listed resources, worst first.
        limit: usize,
    },
    /// Returns the chain from a resource to the cause that blocks the resource.
    Why {
        /// `kind[name]`.
        resource: String,
    },
    /// Returns recorded events, and new ones if `follow` is set.
    Events {
        /// True if the reply continues with new events.
        follow: bool,
        /// Only events of these resources; all events if empty. Selectors select among declared and recorded resources.
        #[serde(default)]
        resources: Vec<String>,
        /// Only events with this number or a higher one.
        from: Option<u64>,
        /// Only events at or after this time, in milliseconds since 1970.
        #[serde(default)]
        since: Option<u64>,
        /// The maximum number of recorded events; the last ones are returned.
        #[serde(default)]
        limit: Option<usize>,
        /// True if details are included: debug events, as far as they are recorded or new, and the usual starts and
        /// ends of workers.
        #[serde(default)]
        debug: bool,
    },
    /// Returns the state of the daemon's workers.
    Workers,
    /// Pauses the daemon or some resources. Every pause ends by itself.
    Pause {
        /// The length of the pause in seconds.
        seconds: Option<u64>,
        /// The reason; status shows it.
        reason: String,
        /// The paused resources, each as `kind[name]`; the whole daemon if empty.
        #[serde(default)]
        resources: Vec<String>,
        /// For the whole daemon: finish pending work and its consequences first.
        #[serde(default)]
        drain: bool,
    },
    /// Ends a pause.
    Resume {
        /// The resumed resources, each as `kind[name]`; the whole daemon if empty.
        #[serde(default)]
        resources: Vec<String>,
    },
    /// Reads the graph again.
    Reload {
        /// True if a graph without any resource is accepted.
        #[serde(default)]
        allow_empty: bool,
        /// True if collections of exported resources may shrink at once.
        #[serde(default)]
        yes: bool,
    },
    /// Runs resources again, including those that run once or have failed.
    Retry {
        /// The resources, each as `kind[name]`.
        resources: Vec<String>,
        /// The request is stored: it survives a restart of the daemon.
        #[serde(default)]
        persist: bool,
    },
    /// Protect these resources: a graph without them is rejected.
    Protect {
        /// The resources, each as `kind[name]`.
        resources: Vec<String>,
    },
    /// End the protection of these resources.
    Unprotect {
        /// The resources, each as `kind[name]`.
        resources: Vec<String>,
    },
    /// Discard the ownership and run-once records of these resources.
    Forget {
        /// The resources, each as `kind[name]`.
        resources: Vec<String>,
    },
    /// Replace the state by an exported document. The daemon must be paused.
    StateImport,
    /// Repair a damaged state. The daemon must be paused.
    StateRepair,
    /// Restores the state of a resource from before its last change, and pauses the resource.
    Undo {
        /// `kind[name]`.
        resource: String,
        /// The number of a change in the history: this change and all later ones are undone.
        to: Option<u64>,
        /// The length of the pause in seconds.
        seconds: u64,
        /// True if the undo continues although some of the state cannot be restored.
        #[serde(default)]
        partial: bool,
    },
    /// Checks resources now; all resources if none is named.
    Check {
        /// The resources, each as `kind[name]`.
        resources: Vec<String>,
    },
    /// Stops the daemon.
    Stop {
        /// True if active runs are interrupted.
        now: bool,
    },
    /// Changes the level of the log.
    LogLevel {
        /// A filter such as `debug` or `steadfast::driver=trace`.
        filter: String,
    },
    /// Injects a fault into a worker of the daemon, to test its recovery. The schema is that of a program without it.
    #[cfg(feature = "fault-injection")]
    #[schemars(skip)]
    Fault {
        /// The name of the worker.
        worker: String,
        /// `panic`, `error` or `hang`.
        how: String,
    },
}
