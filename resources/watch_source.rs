//! The sources of a resource's events, and the objects that a resource claims.

use std::path::PathBuf;
use std::time::Duration;

/// A source of events, as data. The driver's loops listen: one loop for each sort of source, shared by all
/// resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchSource {
    /// Changes of the object at this path: its content, its attributes, its appearance and removal, and changes
    /// of the directories above. With `below`, also changes of the entries of the directory at that path (one
    /// level).
    Path {
        /// The absolute path.
        path: PathBuf,
        /// Also the entries of the directory.
        below: bool,
    },
    /// Changes of the file at this absolute path, from which an input of the resource is made. Such a change is
    /// no drift of the resource.
    Supply(PathBuf),
    /// Changes of the directory at this absolute path and of everything below, at any depth, including later
    /// directories. Links are not followed, and mounts are left out.
    Tree(PathBuf),
    /// An event at this interval (the kind `timer`).
    Every(Duration),
    /// An event for each line that this command prints (`watchcmd`); the command is started again with back-off
    /// after its end.
    Lines(crate::host::Command),
    /// The notifications of systemd about this unit.
    Unit {
        /// The systemd that manages the unit.
        bus: crate::host::systemd::Bus,
        /// Any full name of the unit (`nginx.service`).
        unit: std::sync::Arc<str>,
    },
}

/// An object that a resource writes. A graph with two claims on one exclusive object is rejected. An object
/// that any resource claims is never removed for a resource that has left the graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// The object at this path (normalised, absolute).
    Path(PathBuf),
    /// A systemd unit.
    Unit {
        /// True for a unit of a user's systemd, false for one of the machine's.
        session: bool,
        /// The full name of the unit.
        name: String,
    },
    /// A package, whatever its architecture: several resources may share the claim.
    Package(String),
}

impl Claim {
    /// Returns true if only one resource may claim the object.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        match self {
            Self::Path(_) | Self::Unit { .. } => true,
            Self::Package(_) => false,
        }
    }
}

impl std::fmt::Display for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Unit { name, .. } | Self::Package(name) => f.write_str(name),
        }
    }
}
