//! Routes: the ways through directories to watched paths, and the vertices that wait at their ends.
//!
//! A *route* is the text of a parent directory's path. A walk of the route looks up one entry after the other, each in
//! a watched directory, and ends in the directory that contains the *leaves*. All paths in one directory share one
//! route.

use crate::watch::backend::DirectoryId;
use crate::watch::filesystem::Identity;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_engine::VertexId;

/// The name of an entry in a directory.
pub(in crate::watch) type Name = Arc<[u8]>;

/// The maximum number of symbolic links that are followed to report an event.
pub(in crate::watch) const LINKS: usize = 10;

/// The number of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::watch) struct RouteId(pub(in crate::watch) u32);

/// The reason for a walk of a route, in rising order of the signal that its vertices get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::watch) enum Reason {
    /// A check that the route still leads to the same directory.
    Verify,
    /// A watch on the route was lost.
    Lost,
    /// An entry on the route has changed.
    Changed,
}

/// A watched directory.
#[derive(Debug)]
pub(in crate::watch) struct Directory {
    pub(in crate::watch) path: PathBuf,
    pub(in crate::watch) identity: Identity,
    /// The number of routes that pass through this directory or end in it.
    pub(in crate::watch) routes: u32,
    /// The entries in this directory through which routes pass.
    pub(in crate::watch) steps: HashMap<Name, BTreeSet<RouteId>>,
    /// The routes that end in this directory.
    pub(in crate::watch) ends: Vec<RouteId>,
}

/// The leaves of a route. Signals follow the order of this map, which depends only on the operations on it, so that a
/// test replays a session identically. The names come from the graph: nobody else can choose colliding ones.
pub(in crate::watch) type Leaves = HashMap<Name, Leaf, BuildHasherDefault<DefaultHasher>>;

/// The directory part of watched paths, with the vertices that wait at its end.
#[derive(Debug)]
pub(in crate::watch) struct Route {
    pub(in crate::watch) path: Arc<Path>,
    pub(in crate::watch) walked: Walked,
    pub(in crate::watch) leaves: Leaves,
    /// Vertices that wait for any change in the directory at the end.
    pub(in crate::watch) below: Vec<VertexId>,
}

/// The result of a walk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::watch) struct Walked {
    /// The entries that were looked up.
    pub(in crate::watch) steps: Vec<(DirectoryId, Name)>,
    /// The directories on the way, each once.
    pub(in crate::watch) used: Vec<DirectoryId>,
    /// The directory at the end; `None` if a part of the path is missing.
    pub(in crate::watch) end: Option<DirectoryId>,
    /// The reason for which a directory on the way cannot be watched.
    pub(in crate::watch) failed: Option<Box<str>>,
}

/// A vertex that waits for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::watch) struct Waiter {
    pub(in crate::watch) vertex: VertexId,
    /// True if the content of the path is only an input of the vertex (a secret), not its object.
    pub(in crate::watch) is_supplied: bool,
}

/// A watched path: one name at the end of a route.
#[derive(Debug, Default)]
pub(in crate::watch) struct Leaf {
    pub(in crate::watch) waiters: Vec<Waiter>,
    /// The symbolic links whose targets are this leaf.
    pub(in crate::watch) links: Vec<(RouteId, Name)>,
    /// The target of this leaf, if the leaf is a symbolic link.
    pub(in crate::watch) follows: Option<Box<(RouteId, Name)>>,
    /// The leaf is a mount point and no directory.
    pub(in crate::watch) is_mounted: bool,
}
