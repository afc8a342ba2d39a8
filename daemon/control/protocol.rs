//! The requests and replies of the control socket: closed lists.

use crate::store::{Maintenance, StateCommand};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of this protocol. A request of another version is rejected.
pub const PROTOCOL: u32 = 1;

/// A request with the version of its protocol, as sent over the socket.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Envelope {
    pub(super) protocol: u32,
    pub(super) ask: Value,
    /// The time of sending, in milliseconds since the boot of the host with all suspends; none from other clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sent_at: Option<u64>,
}

/// Returns the milliseconds since the boot of the host, with all suspends.
pub(super) fn milliseconds_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1000 + u64::try_from(now.tv_nsec).unwrap_or_default() / 1_000_000
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Returns the status of the host with some of the resources that are not converged.
    Status {
        /// The maximum number of listed resources.
        most: usize,
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
        most: usize,
    },
    /// Returns a page of the list of all resources.
    List {
        /// A text that the names must contain.
        filter: String,
        /// The sort order: `state`, `name`, `changed` or `repairs`.
        order: String,
        /// The number of skipped entries.
        from: usize,
        /// The maximum number of entries.
        most: usize,
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
    /// Returns the chain from a resource to the cause that blocks the resource.
    Why {
        /// `kind[name]`.
        resource: String,
    },
    /// Returns recorded events, and new ones if `follow` is set.
    Events {
        /// True if the reply continues with new events.
        follow: bool,
        /// Only events of this resource.
        resource: Option<String>,
        /// Only events with this number or a higher one.
        from: Option<u64>,
        /// Only events at or after this time, in milliseconds since 1970.
        #[serde(default)]
        since: Option<u64>,
        /// The maximum number of recorded events; the last ones are returned.
        #[serde(default)]
        most: Option<usize>,
        /// True if debug events are included among the new ones.
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
    /// Injects a fault into a worker of the daemon, to test its recovery.
    #[cfg(feature = "fault-injection")]
    Fault {
        /// The name of the worker.
        worker: String,
        /// `panic`, `error` or `hang`.
        how: String,
    },
}

impl Request {
    /// Creates a request for the last recorded events, at most `most`, of one resource or of all.
    #[must_use]
    pub fn lately(resource: Option<String>, most: usize) -> Self {
        let (from, since, most) = (None, None, Some(most));
        Self::Events { follow: false, resource, from, since, most, debug: false }
    }

    /// The request for this change of what is recorded of resources.
    #[must_use]
    pub fn state_command(command: StateCommand, resources: Vec<String>) -> Self {
        match command {
            StateCommand::Protect => Self::Protect { resources },
            StateCommand::Unprotect => Self::Unprotect { resources },
            StateCommand::Forget => Self::Forget { resources },
            StateCommand::Redo => Self::Retry { resources, persist: true },
        }
    }

    /// The request for this change of the state as a whole.
    #[must_use]
    pub const fn maintenance(what: Maintenance) -> Self {
        match what {
            Maintenance::Import => Self::StateImport,
            Maintenance::Repair => Self::StateRepair,
        }
    }

    /// Returns the command that makes this request, for the log.
    #[must_use]
    pub fn command(&self) -> String {
        let (verb, rest): (&str, Vec<&str>) = match self {
            Self::Status { .. } => ("status", Vec::new()),
            Self::Show { resource } => ("show", vec![resource]),
            Self::Names { .. } => ("names", Vec::new()),
            Self::List { .. } => ("list", Vec::new()),
            Self::Diff { resources, .. } => ("diff", words(resources)),
            Self::Why { resource } => ("why", vec![resource]),
            Self::Events { .. } => ("events", Vec::new()),
            Self::Workers => ("workers", Vec::new()),
            Self::Pause { resources, drain: true, .. } => {
                ("pause", [vec!["--drain"], words(resources)].concat())
            }
            Self::Pause { resources, .. } => ("pause", words(resources)),
            Self::Resume { resources } => ("resume", words(resources)),
            Self::Reload { allow_empty: true } => ("reload", vec!["--allow-empty"]),
            Self::Reload { .. } => ("reload", Vec::new()),
            Self::Retry { resources, persist: true } => {
                ("retry", [vec!["--persist"], words(resources)].concat())
            }
            Self::Retry { resources, .. } => ("retry", words(resources)),
            Self::Protect { resources } => ("protect", words(resources)),
            Self::Unprotect { resources } => ("unprotect", words(resources)),
            Self::Forget { resources } => ("forget", words(resources)),
            Self::StateRepair => ("state repair", Vec::new()),
            Self::StateImport => ("state import", Vec::new()),
            Self::Undo { resource, .. } => ("undo", vec![resource]),
            Self::Check { resources } => ("check", words(resources)),
            Self::Stop { now: true } => ("stop", vec!["--now"]),
            Self::Stop { .. } => ("stop", Vec::new()),
            Self::LogLevel { filter } => ("log-level", vec![filter]),
            #[cfg(feature = "fault-injection")]
            Self::Fault { worker, how } => ("fault", vec![worker, how]),
        };
        let shown = rest.iter().take(SHOWN).copied();
        let mut all: Vec<&str> = std::iter::once(verb).chain(shown).collect();
        if rest.len() > SHOWN {
            all.push("…");
        }
        all.join(" ")
    }

    /// Returns true if the request changes anything; only trusted peers may make such a request.
    #[must_use]
    pub fn changes(&self) -> bool {
        match self {
            Self::Status { .. }
            | Self::Show { .. }
            | Self::Names { .. }
            | Self::List { .. }
            | Self::Why { .. }
            | Self::Events { .. }
            | Self::Workers => false,
            #[cfg(feature = "fault-injection")]
            Self::Fault { .. } => true,
            Self::Pause { .. }
            | Self::Resume { .. }
            | Self::Reload { .. }
            | Self::Retry { .. }
            | Self::Protect { .. }
            | Self::Unprotect { .. }
            | Self::Forget { .. }
            | Self::StateImport
            | Self::StateRepair
            | Self::Undo { .. }
            | Self::Check { .. }
            | Self::Diff { .. }
            | Self::Stop { .. }
            | Self::LogLevel { .. } => true,
        }
    }
}

/// The maximum number of resource names in one log line.
const SHOWN: usize = 10;

fn words(resources: &[String]) -> Vec<&str> {
    resources.iter().map(String::as_str).collect()
}

/// One line of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The requested data.
    Data(Value),
    /// The end of the reply.
    Done,
    /// No resources have these names.
    Unknown(Vec<String>),
    /// The request cannot be carried out now; the text says what to do.
    Unavailable(String),
    /// The request is refused for good.
    Refused(String),
    /// The graph or the settings are invalid.
    Rejected(String),
    /// The caller may not make this request.
    Denied(String),
}
