//! What is asked and answered: closed lists.

use crate::store::{Maintenance, StateCommand};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of this protocol. Another one is refused.
pub const PROTOCOL: u32 = 1;

/// A request, as it travels.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Envelope {
    pub(super) protocol: u32,
    pub(super) ask: Value,
}

/// Something that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// How the host stands, with at most so many of those that are not as declared.
    Status {
        /// How many.
        most: usize,
    },
    /// One resource in full.
    Show {
        /// `kind[name]`.
        resource: String,
    },
    /// The names of resources that begin so, in order.
    Names {
        /// `file[`, or nothing for all.
        prefix: String,
        /// At most so many.
        most: usize,
    },
    /// A part of the list of all resources.
    List {
        /// Only those whose name has this in it.
        filter: String,
        /// `state`, `name`, `changed` or `repairs`.
        order: String,
        /// Without so many.
        from: usize,
        /// At most so many.
        most: usize,
    },
    /// What differs now of these; of all that must be processed where none is named. It makes work, and shows contents.
    Diff {
        /// `kind[name]`, each.
        resources: Vec<String>,
    },
    /// From a resource to what stands in its way.
    Why {
        /// `kind[name]`.
        resource: String,
    },
    /// What happened; then, if wanted, what happens.
    Events {
        /// Go on with what happens.
        follow: bool,
        /// Only those of this resource.
        resource: Option<String>,
        /// Only those from this number on.
        from: Option<u64>,
        /// Only those from this time on, in milliseconds since 1970.
        #[serde(default)]
        since: Option<u64>,
        /// Of those that were, only the last ones, so many.
        #[serde(default)]
        most: Option<usize>,
        /// Of those that come, also what is for whoever looks for a fault.
        #[serde(default)]
        debug: bool,
    },
    /// The state of the daemon's workers.
    Workers,
    /// Come to rest; every pause ends by itself.
    Pause {
        /// After so many seconds.
        seconds: Option<u64>,
        /// Shown in status.
        reason: String,
        /// Only these: `kind[name]`, each; the whole where none is named.
        #[serde(default)]
        resources: Vec<String>,
        /// Of the whole: what is to be done at this moment, and what that leads to, is done first.
        #[serde(default)]
        drain: bool,
    },
    /// Go on.
    Resume {
        /// Only these; the whole where none is named.
        #[serde(default)]
        resources: Vec<String>,
    },
    /// Read the graph again.
    Reload {
        /// Also one without a single resource.
        #[serde(default)]
        allow_empty: bool,
    },
    /// Run these resources again, including failed and one-time resources.
    Retry {
        /// `kind[name]`, each.
        resources: Vec<String>,
        /// The request is stored: it survives a restart of the daemon.
        #[serde(default)]
        persist: bool,
    },
    /// Protect these resources: a graph without them is rejected.
    Protect {
        /// `kind[name]`, each.
        resources: Vec<String>,
    },
    /// End the protection of these resources.
    Unprotect {
        /// `kind[name]`, each.
        resources: Vec<String>,
    },
    /// Discard the ownership and run-once records of these resources.
    Forget {
        /// `kind[name]`, each.
        resources: Vec<String>,
    },
    /// Replace the state by an exported document. The daemon must be paused.
    StateImport,
    /// Repair a damaged state. The daemon must be paused.
    StateRepair,
    /// Put back what a resource was before its last change, and pause it by itself.
    Undo {
        /// `kind[name]`.
        resource: String,
        /// Before this change of its history, and all later ones.
        to: Option<u64>,
        /// It is paused for so many seconds.
        seconds: u64,
        /// Also where not all of it can be put back.
        #[serde(default)]
        partial: bool,
    },
    /// Look again now; at all where none is named.
    Check {
        /// `kind[name]`, each.
        resources: Vec<String>,
    },
    /// End.
    Stop {
        /// At once: cut off what runs.
        now: bool,
    },
    /// How much is logged from now on.
    LogLevel {
        /// A filter such as `debug` or `steadfast::driver=trace`.
        filter: String,
    },
    /// A fault in one of the daemon's workers, to see that it heals.
    #[cfg(debug_assertions)]
    Fault {
        /// Its name.
        worker: String,
        /// `panic`, `error` or `hang`.
        how: String,
    },
}

impl Request {
    /// What happened lately, to one resource or at all: at most so many.
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

    /// The command that makes this request, for the log.
    #[must_use]
    pub fn command(&self) -> String {
        let (verb, rest): (&str, Vec<&str>) = match self {
            Self::Status { .. } => ("status", Vec::new()),
            Self::Show { resource } => ("show", vec![resource]),
            Self::Names { .. } => ("names", Vec::new()),
            Self::List { .. } => ("list", Vec::new()),
            Self::Diff { resources } => ("diff", words(resources)),
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
            #[cfg(debug_assertions)]
            Self::Fault { worker, how } => ("fault", vec![worker, how]),
        };
        let shown = rest.iter().take(SHOWN).copied();
        let mut all: Vec<&str> = std::iter::once(verb).chain(shown).collect();
        if rest.len() > SHOWN {
            all.push("…");
        }
        all.join(" ")
    }

    /// Whether it changes anything: then not everybody may.
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
            #[cfg(debug_assertions)]
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

/// The number of names that a line of the log shows.
const SHOWN: usize = 10;

fn words(resources: &[String]) -> Vec<&str> {
    resources.iter().map(String::as_str).collect()
}

/// One line of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// What was asked for.
    Data(Value),
    /// The answer is complete.
    Done,
    /// There is no such resource.
    Unknown(Vec<String>),
    /// It cannot be done now; in words, with what to do.
    Unavailable(String),
    /// It is not done, whoever asks how often.
    Refused(String),
    /// The graph or the settings are invalid.
    Rejected(String),
    /// The caller may not.
    Denied(String),
}
