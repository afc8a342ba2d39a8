//! Where a resource's events come from, and what it holds for itself.

use std::path::PathBuf;
use std::time::Duration;

/// A source of events, as data. The loops that listen belong to the driver: one for each sort of source, shared by all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchSource {
    /// Whatever happens to the thing at this absolute path: its content, its attributes, its coming and going, and that of
    /// the directories above it. With `below`, also whatever happens in the directory at that path (one level).
    Path {
        /// Absolute.
        path: PathBuf,
        /// Also the entries of the directory.
        below: bool,
    },
    /// Whatever happens to the file at this absolute path, of which something is made that the resource receives: a change of it is no
    /// change of the resource.
    Supply(PathBuf),
    /// Whatever happens to the directory at this absolute path and, however deep, in it: directories that come later too. Links
    /// in it are not followed, and what is mounted in it is left out.
    Tree(PathBuf),
    /// An event at this interval (the kind `timer`).
    Every(Duration),
    /// An event for each line that this command prints (`watchcmd`); started again with back-off when it ends.
    Lines(crate::host::Command),
    /// Whatever systemd tells of this unit.
    Unit {
        /// By which systemd.
        bus: crate::host::systemd::Bus,
        /// Any of its names, whole (`nginx.service`).
        unit: std::sync::Arc<str>,
    },
}

/// Something that a resource writes. Two claims on one thing are refused when the graph is loaded, where it is exclusive; and what
/// any resource claims is never removed for another that has left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// The thing at this path (normalised, absolute).
    Path(PathBuf),
    /// A unit of systemd.
    Unit {
        /// It is one of the user's, not the machine's.
        session: bool,
        /// Its whole name.
        name: String,
    },
    /// A package, whatever its architecture: several resources may hold it.
    Package(String),
}

impl Claim {
    /// Whether only one resource may hold it.
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
