//! The rules of requests: the callers that may make a request, and the command line that the log shows for a request.

use crate::api::{Principal, Request};
use crate::store::{Maintenance, StateCommand};
use rustix::process::geteuid;

impl Principal {
    /// Returns the user id.
    #[must_use]
    pub const fn uid(self) -> u32 {
        let Self::Local { uid, .. } = self;
        uid
    }

    /// Returns true for root and for the user of the daemon.
    #[must_use]
    pub fn is_trusted(self) -> bool {
        self.uid() == 0 || self.uid() == geteuid().as_raw()
    }

    /// Returns true if the caller may make a request. Every caller may read; only trusted callers may change.
    #[must_use]
    pub fn may(self, ask: &Request) -> bool {
        !ask.changes() || self.is_trusted()
    }
}

impl Request {
    /// Creates a request for the last recorded events, at most `limit`, of one resource or of all.
    #[must_use]
    pub fn lately(resource: Option<String>, limit: usize) -> Self {
        let (from, since, limit) = (None, None, Some(limit));
        let resources = resource.into_iter().collect();
        Self::Events { follow: false, resources, from, since, limit, debug: false }
    }

    /// The request for this change of what is recorded of resources.
    #[must_use]
    pub fn state_command(command: StateCommand, resources: Vec<String>) -> Self {
        match command {
            StateCommand::Protect => Self::Protect { resources },
            StateCommand::Unprotect => Self::Unprotect { resources },
            StateCommand::Forget => Self::Forget { resources },
            StateCommand::Retry => Self::Retry { resources, persist: true },
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
            Self::Select { resources, .. } => ("status", words(resources)),
            Self::Diff { resources, .. } => ("diff", words(resources)),
            Self::Why { resource } => ("why", vec![resource]),
            Self::Events { .. } => ("events", Vec::new()),
            Self::Workers => ("workers", Vec::new()),
            Self::Pause { resources, drain: true, .. } => {
                ("pause", [vec!["--drain"], words(resources)].concat())
            }
            Self::Pause { resources, .. } => ("pause", words(resources)),
            Self::Resume { resources } => ("resume", words(resources)),
            Self::Reload { yes: true, .. } => ("reload", vec!["--yes"]),
            Self::Reload { allow_empty: true, .. } => ("reload", vec!["--allow-empty"]),
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
            | Self::Select { .. }
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
