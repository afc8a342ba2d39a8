//! The watch index: watched directories, the routes through them, and the vertices that wait at the ends of routes.
//!
//! A *route* is the text of a parent directory's path. A walk of the route looks up one entry after the other, each in
//! a watched directory, and ends in the directory that contains the *leaves*. All paths in one directory share one
//! route. This module holds data only: nothing here accesses the host.

use super::Signal;
use super::backend::{BackendEvent, DirectoryId};
use super::filesystem::Identity;
use super::recursive::Tree;
use super::retry::Retry;
use super::systemd::Units;
use super::timer_and_command_sources::SourceOwner;
use super::work_state::Turn;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;
use steadfast_resources::host::systemd::Bus;

/// The name of an entry in a directory.
pub(super) type Name = Arc<[u8]>;

/// The maximum number of symbolic links that are followed to report an event.
pub(super) const LINKS: usize = 10;

/// The prefix of the daemon's own temporary names; changes of these are not reported.
const TEMPORARY: &[u8] = b".steadfast-";

/// The number of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RouteId(pub(super) u32);

/// The reason for a walk of a route, in rising order of the signal that its vertices get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// A check that the route still leads to the same directory.
    Verify,
    /// A watch on the route was lost.
    Lost,
    /// An entry on the route has changed.
    Changed,
}

/// A watched directory.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    /// The number of routes that pass through this directory or end in it.
    pub(super) routes: u32,
    /// The entries in this directory through which routes pass.
    pub(super) steps: HashMap<Name, BTreeSet<RouteId>>,
    /// The routes that end in this directory.
    pub(super) ends: Vec<RouteId>,
}

/// The leaves of a route. Signals follow the order of this map, which depends only on the operations on it, so that a
/// test replays a session identically. The names come from the graph: nobody else can choose colliding ones.
type Leaves = HashMap<Name, Leaf, BuildHasherDefault<DefaultHasher>>;

/// The directory part of watched paths, with the vertices that wait at its end.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) path: Arc<Path>,
    pub(super) walked: Walked,
    pub(super) leaves: Leaves,
    /// Vertices that wait for any change in the directory at the end.
    pub(super) below: Vec<VertexId>,
}

/// The result of a walk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// The entries that were looked up.
    pub(super) steps: Vec<(DirectoryId, Name)>,
    /// The directories on the way, each once.
    pub(super) used: Vec<DirectoryId>,
    /// The directory at the end; `None` if a part of the path is missing.
    pub(super) end: Option<DirectoryId>,
    /// The reason for which a directory on the way cannot be watched.
    pub(super) failed: Option<Box<str>>,
}

/// A vertex that waits for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) vertex: VertexId,
    /// True if the content of the path is only an input of the vertex (a secret), not its object.
    pub(super) is_supplied: bool,
}

/// A watched path: one name at the end of a route.
#[derive(Debug, Default)]
pub(super) struct Leaf {
    pub(super) waiters: Vec<Waiter>,
    /// The symbolic links whose targets are this leaf.
    pub(super) links: Vec<(RouteId, Name)>,
    /// The target of this leaf, if the leaf is a symbolic link.
    pub(super) follows: Option<Box<(RouteId, Name)>>,
    /// The leaf is a mount point and no directory.
    pub(super) is_mounted: bool,
}

/// One place of the index at which a vertex waits.
#[derive(Clone, Debug)]
pub(super) enum Placed {
    Leaf(RouteId, Name),
    Below(RouteId),
    Unit(Bus, Arc<str>),
}

/// The watch of one vertex.
#[derive(Debug)]
pub(super) struct Armed {
    /// A number that distinguishes this arming of the vertex from later ones.
    pub(super) serial: u64,
    pub(super) placed: Box<[Placed]>,
    pub(super) reported: Reported,
}

/// The last report about the watch of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reported {
    /// The watch is not placed in the index yet.
    Never,
    Nothing,
    Established,
    Absent,
}

/// The state of a watch source other than a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Running {
    Starting,
    Yes,
    Failed(String),
}

/// The routes that are walked again without an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Again {
    #[default]
    None,
    /// Some of the routes that could not be followed to their ends.
    Failed,
    All,
}

/// The work of the hub's thread. Its size is bounded by the number of armed vertices, however many events come.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) arms: Vec<(VertexId, u64, Vec<WatchSource>)>,
    pub(super) dirty: BTreeMap<RouteId, Reason>,
    pub(super) looks: BTreeSet<(RouteId, Name)>,
    pub(super) lost: BTreeSet<DirectoryId>,
    pub(super) emptied: BTreeSet<RouteId>,
    /// Directories of recursive watches whose subdirectories must be listed.
    pub(super) grow: BTreeSet<(VertexId, RouteId)>,
    pub(super) judge: BTreeSet<VertexId>,
    pub(super) overflow: bool,
    /// The routes that are walked again.
    pub(super) again: Again,
    pub(super) closed: bool,
}

/// The maximum number of vertices that are armed in one turn.
const ARMS_AT_ONCE: usize = 4096;

impl Work {
    /// Takes the pending work, with a limited number of vertices to arm: the first ones are reported before the last
    /// ones are armed.
    pub(super) fn take(&mut self) -> Self {
        let mut work = std::mem::take(self);
        self.closed = work.closed;
        if work.arms.len() > ARMS_AT_ONCE {
            self.arms = work.arms.split_off(ARMS_AT_ONCE);
        }
        work
    }

    pub(super) fn is_empty(&self) -> bool {
        self.arms.is_empty()
            && self.dirty.is_empty()
            && self.looks.is_empty()
            && self.lost.is_empty()
            && self.emptied.is_empty()
            && self.grow.is_empty()
            && self.judge.is_empty()
            && self.again == Again::None
            && !(self.overflow || self.closed)
    }

    pub(super) fn again(&mut self, again: Again) {
        self.again = again.max(self.again);
    }

    pub(super) fn walk(&mut self, route: RouteId, reason: Reason) {
        let known = self.dirty.entry(route).or_insert(reason);
        *known = reason.max(*known);
    }
}

/// All data of the watch hub.
#[derive(Debug, Default)]
pub(super) struct WatchIndex {
    pub(super) directories: HashMap<DirectoryId, Directory>,
    pub(super) identities: HashMap<Identity, DirectoryId>,
    pub(super) routes: HashMap<RouteId, Route>,
    pub(super) by_path: HashMap<Arc<Path>, RouteId>,
    pub(super) vertices: HashMap<VertexId, Armed>,
    /// Muted vertices: no signals are sent for them.
    pub(super) muted: HashSet<VertexId>,
    pub(super) running: HashMap<VertexId, Vec<Running>>,
    /// The directory trees of recursive watches.
    pub(super) trees: HashMap<VertexId, Tree>,
    /// The maximum number of watched directories per recursive watch; `None` means no limit.
    pub(super) tree_share: Option<usize>,
    /// The watched systemd units.
    pub(super) units: Units,
    /// Watches that failed and are tried again.
    pub(super) retry: Retry,
    /// Work that has accumulated for the next turn.
    pub(super) work: Work,
    /// The progress of the current turn.
    pub(super) turn: Turn,
    /// The number of overflows of the kernel's queue.
    pub(super) overflows: u64,
    serial: u64,
    directory: u32,
    route: u32,
}

impl WatchIndex {
    /// Schedules a vertex that is not armed to be armed by the hub's thread.
    pub(super) fn order(&mut self, vertex: VertexId, sources: Vec<WatchSource>) {
        self.serial += 1;
        let serial = self.serial;
        let armed = Armed { serial, placed: Box::default(), reported: Reported::Never };
        self.vertices.insert(vertex, armed);
        self.work.arms.push((vertex, serial, sources));
    }

    /// Returns true if this arming of the vertex is the current one.
    pub(super) fn is_armed(&self, owner: SourceOwner) -> bool {
        self.vertices.get(&owner.vertex).is_some_and(|armed| armed.serial == owner.serial)
    }

    pub(super) fn next_directory(&mut self) -> DirectoryId {
        self.directory += 1;
        DirectoryId(self.directory)
    }

    /// Returns the route with this path; a new one is scheduled for a walk.
    pub(super) fn route(&mut self, path: &Path, work: &mut Work) -> RouteId {
        if let Some(route) = self.by_path.get(path) {
            return *route;
        }
        self.route += 1;
        let id = RouteId(self.route);
        let path: Arc<Path> = path.into();
        let route = Route {
            path: Arc::clone(&path),
            walked: Walked::default(),
            leaves: Leaves::default(),
            below: Vec::new(),
        };
        self.routes.insert(id, route);
        self.by_path.insert(path, id);
        work.walk(id, Reason::Verify);
        id
    }

    /// Processes an event of the kernel: immediate signals go to `signals`, further work is scheduled.
    pub(super) fn take_in(&mut self, happening: BackendEvent<'_>, signals: &mut Vec<Signal>) {
        match happening {
            BackendEvent::Entry { directory, name, structural } => {
                let mut work = std::mem::take(&mut self.work);
                self.touch(directory, name, structural, (&mut work, signals));
                self.work = work;
            }
            BackendEvent::Lost(directory) => {
                if self.directories.contains_key(&directory) {
                    self.work.lost.insert(directory);
                }
            }
            BackendEvent::Overflow => {
                self.work.overflow = true;
                self.overflows += 1;
            }
            BackendEvent::Broken(why) => signals.push(Signal::Broken(why.to_owned())),
        }
    }

    fn touch(
        &self,
        directory: DirectoryId,
        name: &[u8],
        structural: bool,
        (work, signals): (&mut Work, &mut Vec<Signal>),
    ) {
        let Some(directory) = self.directories.get(&directory) else { return };
        for route in directory.steps.get(name).into_iter().flatten() {
            let known = self.routes.get(route);
            let whole = known.filter(|route| route.walked.end.is_some());
            match (structural, whole) {
                (true, _) => work.walk(*route, Reason::Changed),
                // New permissions may open a route that was blocked.
                (false, None) => work.walk(*route, Reason::Verify),
                // New permissions may also allow an operation that was denied on the leaves.
                (false, Some(route)) => {
                    for leaf in route.leaves.values() {
                        self.signal_leaf(leaf, Signal::Suspect, signals, LINKS);
                    }
                }
            }
        }
        for id in &directory.ends {
            let Some(route) = self.routes.get(id) else { continue };
            if let Some((name, leaf)) = route.leaves.get_key_value(name) {
                self.signal_leaf(leaf, Signal::Changed, signals, LINKS);
                if structural {
                    work.looks.insert((*id, Arc::clone(name)));
                }
            }
            if !name.is_empty() && !name.starts_with(TEMPORARY) {
                for vertex in &route.below {
                    self.send(*vertex, Signal::Changed, signals);
                }
                if structural {
                    self.grow(*id, route, work);
                }
            }
        }
    }

    /// Sends a signal to all vertices on a route.
    pub(super) fn signal_route(
        &self,
        route: RouteId,
        signal: fn(VertexId) -> Signal,
        signals: &mut Vec<Signal>,
    ) {
        let Some(route) = self.routes.get(&route) else { return };
        for leaf in route.leaves.values() {
            self.signal_leaf(leaf, signal, signals, LINKS);
        }
        for vertex in &route.below {
            self.send(*vertex, signal, signals);
        }
    }

    /// Sends a signal to the vertices that wait for a path, also through symbolic links to it.
    pub(super) fn signal_leaf(
        &self,
        leaf: &Leaf,
        signal: fn(VertexId) -> Signal,
        signals: &mut Vec<Signal>,
        links: usize,
    ) {
        for waiter in &leaf.waiters {
            match signal(waiter.vertex) {
                Signal::Changed(_) if waiter.is_supplied => {
                    self.send(waiter.vertex, Signal::Supplied, signals);
                }
                _ => self.send(waiter.vertex, signal, signals),
            }
        }
        if links == 0 {
            return;
        }
        for (route, name) in &leaf.links {
            if let Some(leaf) = self.routes.get(route).and_then(|route| route.leaves.get(name)) {
                self.signal_leaf(leaf, signal, signals, links - 1);
            }
        }
    }

    /// Sends a signal to one vertex, unless nothing was reported for its watch yet: the check after the first report
    /// covers the change.
    pub(super) fn send(
        &self,
        vertex: VertexId,
        signal: fn(VertexId) -> Signal,
        signals: &mut Vec<Signal>,
    ) {
        if !self.muted.is_empty() && self.muted.contains(&vertex) {
            return;
        }
        let signal = signal(vertex);
        let known =
            self.vertices.get(&vertex).is_some_and(|armed| armed.reported > Reported::Nothing);
        if known && !signals.iter().rev().take(8).any(|told| *told == signal) {
            signals.push(signal);
        }
    }
}
