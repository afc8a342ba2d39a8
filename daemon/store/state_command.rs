//! What an operator orders about what is kept of a resource (B-24): the same whether a daemon does it or a command alone.

use super::{Entry, Ownership};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An order of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateCommand {
    /// It must not leave its graph.
    Protect,
    /// That is over.
    Unprotect,
    /// Whose it is, and whether it has run, is forgotten.
    Forget,
    /// Only whether it has run is.
    Redo,
}

/// What an operator has had done to one resource, or to what is kept of it: told as an event when it is done and durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The event.
    pub what: &'static str,
    /// Which.
    pub resource: Arc<str>,
    /// In words.
    pub message: String,
}

/// What an order comes to for one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is to be recorded, and this is said.
    Done(&'static str),
    /// There is nothing to be done, and this is said.
    Idle(&'static str),
    /// It is not carried out, and why.
    Refused(String),
}

impl StateCommand {
    /// What it comes to for this resource, of which this is kept. `running`: a daemon runs it, and whether its graph protects it; none where
    /// none does.
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
            (Self::Redo, Some(_)) => Effect::Done("runs again"),
            (Self::Redo, None) => Effect::Done("runs again when a graph next declares it"),
        }
    }

    /// The command by which it is given.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Self::Protect => "protect",
            Self::Unprotect => "unprotect",
            Self::Forget => "forget",
            Self::Redo => "retry --persist",
        }
    }

    /// What was done by it to this one, in words. Nothing is, where there is no entry for it.
    #[must_use]
    pub fn deed(self, resource: &Arc<str>, says: &str) -> AuditEntry {
        let what = match self {
            Self::Protect => "protected",
            Self::Unprotect => "unprotected",
            Self::Forget => "forgotten",
            Self::Redo => "retried",
        };
        AuditEntry { what, resource: Arc::clone(resource), message: says.to_owned() }
    }

    /// What is kept of whose a thing is after this order. Of what nothing was kept, nothing is known but the graph that declares it.
    #[must_use]
    pub fn owned(self, before: Option<&Ownership>, graph: &Arc<str>) -> Option<Ownership> {
        let unknown = || Ownership { graph: Arc::clone(graph), ..Ownership::default() };
        let after = match self {
            Self::Protect => Some(before.cloned().unwrap_or_else(unknown).protected(true)),
            Self::Unprotect => before.map(|owned| owned.protected(false)),
            Self::Redo => before.cloned(),
            Self::Forget => None,
        };
        after.filter(Ownership::says_something)
    }

    /// Whether what was made once, and is there as long as it is kept, is made once more after it.
    #[must_use]
    pub const fn makes_anew(self) -> bool {
        matches!(self, Self::Forget | Self::Redo)
    }

    /// The entry by which that is kept.
    #[must_use]
    pub fn entry(self, identity: &Arc<str>, before: Option<&Ownership>, graph: &Arc<str>) -> Entry {
        let identity = Arc::clone(identity);
        match (self, before) {
            (Self::Forget, _) => Entry::Anew(identity),
            (Self::Redo, _) => Entry::Redo(identity),
            (Self::Protect | Self::Unprotect, Some(_)) => {
                Entry::Protect { identity, protect: self == Self::Protect }
            }
            (Self::Protect | Self::Unprotect, None) => {
                Entry::Own { identity, owned: self.owned(None, graph).map(Arc::new) }
            }
        }
    }
}
