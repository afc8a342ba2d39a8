//! The operator's commands on the state of a resource (B-24), used by the daemon and by offline commands.

use super::{Entry, Ownership};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A state command of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateCommand {
    /// Protect the object from removal.
    Protect,
    /// End the protection.
    Unprotect,
    /// Delete the ownership and the completed definition.
    Forget,
    /// Delete only the completed definition.
    Retry,
}

/// An operator's action on one resource or its state, reported as an event when it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The name of the event.
    pub what: &'static str,
    /// The identity of the resource.
    pub resource: Arc<str>,
    /// The text of the event.
    pub message: String,
}

/// The effect of a state command on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The command is recorded, with this reply.
    Done(&'static str),
    /// There is nothing to do, with this reply.
    Idle(&'static str),
    /// The command is rejected, for this reason.
    Refused(String),
}

impl StateCommand {
    /// Decides the effect of the command on a resource with this ownership record. `running` is none without a daemon;
    /// otherwise it is true if the running graph protects the resource.
    #[must_use]
    pub fn judge(self, name: &str, before: Option<&Ownership>, running: Option<bool>) -> Effect {
        let is_protected = before.is_some_and(Ownership::is_protected);
        let is_pinned = before.is_some_and(|owned| owned.pinned);
        let by_graph = before.is_some_and(|owned| owned.protect);
        match (self, running) {
            (Self::Protect, None) if before.is_none() => Effect::Refused(format!(
                "{name} has no record in the state: set `protect: true` in its graph"
            )),
            (Self::Protect, _) if is_pinned => Effect::Idle("is already protected"),
            (Self::Protect, _) => Effect::Done("is protected: a graph without it is rejected"),
            (Self::Unprotect, Some(true)) => Effect::Refused(format!(
                "{name} is protected by its graph: load a graph with `protect: false`"
            )),
            (Self::Unprotect, _) if !is_protected => Effect::Idle("was not protected"),
            (Self::Unprotect, None) if by_graph => {
                Effect::Done("is no longer protected, until a graph with `protect: true` is loaded")
            }
            (Self::Unprotect, _) => Effect::Done("is no longer protected"),
            (Self::Forget, Some(_)) => Effect::Done(
                "is forgotten: existing objects are adopted, and one-time resources run again",
            ),
            (Self::Forget, None) => Effect::Done(
                "is forgotten: the next graph that declares it adopts existing objects and runs one-time resources again",
            ),
            (Self::Retry, Some(_)) => Effect::Done("runs again"),
            (Self::Retry, None) => Effect::Done("runs again when a graph next declares it"),
        }
    }

    /// Returns the name of the command.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Self::Protect => "protect",
            Self::Unprotect => "unprotect",
            Self::Forget => "forget",
            Self::Retry => "retry --persist",
        }
    }

    /// Returns the audit entry of the command for a resource. `says` is its text.
    #[must_use]
    pub fn audit_entry(self, resource: &Arc<str>, says: &str) -> AuditEntry {
        let what = match self {
            Self::Protect => "protected",
            Self::Unprotect => "unprotected",
            Self::Forget => "forgotten",
            Self::Retry => "retried",
        };
        AuditEntry { what, resource: Arc::clone(resource), message: says.to_owned() }
    }

    /// Returns the ownership after the command. Without a record before, only the declaring graph is known.
    #[must_use]
    pub fn owned(self, before: Option<&Ownership>, graph: &Arc<str>) -> Option<Ownership> {
        let unknown = || Ownership { graph: Arc::clone(graph), ..Ownership::default() };
        let after = match self {
            Self::Protect => Some(before.cloned().unwrap_or_else(unknown).protected(true)),
            Self::Unprotect => before.map(|owned| owned.protected(false)),
            Self::Retry => before.cloned(),
            Self::Forget => None,
        };
        after.filter(Ownership::is_recorded)
    }

    /// Returns true if a stored value that is made once is made again after the command.
    #[must_use]
    pub const fn makes_anew(self) -> bool {
        matches!(self, Self::Forget | Self::Retry)
    }

    /// Returns the entry that records the command.
    #[must_use]
    pub fn entry(self, identity: &Arc<str>, before: Option<&Ownership>, graph: &Arc<str>) -> Entry {
        let identity = Arc::clone(identity);
        match (self, before) {
            (Self::Forget, _) => Entry::Reset(identity),
            (Self::Retry, _) => Entry::Retry(identity),
            (Self::Protect | Self::Unprotect, Some(_)) => {
                Entry::Protect { identity, protect: self == Self::Protect }
            }
            (Self::Protect | Self::Unprotect, None) => {
                Entry::Own { identity, owned: self.owned(None, graph).map(Arc::new) }
            }
        }
    }
}
