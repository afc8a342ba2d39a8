//! Who waits for what: directories that are watched, routes that lead to them, and the vertices at their ends.
//!
//! A *route* is the text of a parent directory's path. Walking it consults one entry after the other, each in a directory that is
//! watched, and ends in the directory where its *leaves* lie. All paths in one directory share one route. Data only: nothing
//! here touches the machine.

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

/// A name in a directory.
pub(super) type Name = Arc<[u8]>;

/// How far a link is followed for the sake of its events.
pub(super) const LINKS: usize = 10;

/// What our own temporary names begin with; nobody waits for them.
const TEMPORARY: &[u8] = b".steadfast-";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RouteId(pub(super) u32);

/// Why a route is walked, in rising order of what its users are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// Only to see whether it still leads where it led.
    Verify,
    /// A watch on it was lost.
    Lost,
    /// Somebody changed a part of it.
    Changed,
}

#[derive(Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    /// How many routes lead through it or end in it.
    pub(super) routes: u32,
    /// The entries that routes go through.
    pub(super) steps: HashMap<Name, BTreeSet<RouteId>>,
    /// The routes that end here.
    pub(super) ends: Vec<RouteId>,
}

/// Those at the end of a route. They are told in the order of this map, which is the same whenever the same was done to it: a
/// test that replays a run must find the same one. The names are those of the graph, so nobody else chooses the hashes.
type Leaves = HashMap<Name, Leaf, BuildHasherDefault<DefaultHasher>>;

#[derive(Debug)]
pub(super) struct Route {
    pub(super) path: Arc<Path>,
    pub(super) walked: Walked,
    pub(super) leaves: Leaves,
    /// Who waits for whatever happens in the directory at its end.
    pub(super) below: Vec<VertexId>,
}

/// What a walk found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// The entries consulted.
    pub(super) steps: Vec<(DirectoryId, Name)>,
    /// The directories used, each once.
    pub(super) used: Vec<DirectoryId>,
    /// Where it ends; none where a part of it is missing.
    pub(super) end: Option<DirectoryId>,
    /// Why something on it cannot be watched.
    pub(super) failed: Option<Box<str>>,
}

/// Who waits for a path, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) vertex: VertexId,
    /// It only receives something that is made of what lies there.
    pub(super) is_supplied: bool,
}

#[derive(Debug, Default)]
pub(super) struct Leaf {
    pub(super) waiters: Vec<Waiter>,
    /// The links that lead here.
    pub(super) links: Vec<(RouteId, Name)>,
    /// Where this one leads, where it is a link.
    pub(super) follows: Option<Box<(RouteId, Name)>>,
}

/// One place where a vertex waits.
#[derive(Clone, Debug)]
pub(super) enum Placed {
    Leaf(RouteId, Name),
    Below(RouteId),
    Unit(Bus, Arc<str>),
}

#[derive(Debug)]
pub(super) struct Armed {
    /// Tells one arming of a vertex from the next.
    pub(super) serial: u64,
    pub(super) placed: Box<[Placed]>,
    pub(super) reported: Reported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reported {
    /// It waits to be placed.
    Never,
    Nothing,
    Established,
    Absent,
}

/// How a source that is no path stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Running {
    Starting,
    Yes,
    Failed(String),
}

/// Which routes are walked again, though nothing was heard of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Again {
    #[default]
    None,
    /// Some of those that could not be followed to their ends.
    Failed,
    All,
}

/// What the hub's thread is to do; bounded by what is armed, however many events come.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) arms: Vec<(VertexId, u64, Vec<WatchSource>)>,
    pub(super) dirty: BTreeMap<RouteId, Reason>,
    pub(super) looks: BTreeSet<(RouteId, Name)>,
    pub(super) lost: BTreeSet<DirectoryId>,
    pub(super) emptied: BTreeSet<RouteId>,
    /// Directories of trees whose own directories have to be listed.
    pub(super) grow: BTreeSet<(VertexId, RouteId)>,
    pub(super) judge: BTreeSet<VertexId>,
    pub(super) overflow: bool,
    /// Which routes are walked again.
    pub(super) again: Again,
    pub(super) closed: bool,
}

/// So many vertices are armed in one turn.
const ARMS_AT_ONCE: usize = 4096;

impl Work {
    /// Takes what is to be done; the first of many are told of while the others are armed.
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

#[derive(Debug, Default)]
pub(super) struct WatchIndex {
    pub(super) directories: HashMap<DirectoryId, Directory>,
    pub(super) identities: HashMap<Identity, DirectoryId>,
    pub(super) routes: HashMap<RouteId, Route>,
    pub(super) by_path: HashMap<Arc<Path>, RouteId>,
    pub(super) vertices: HashMap<VertexId, Armed>,
    /// Those of which nothing is told for now.
    pub(super) deaf: HashSet<VertexId>,
    pub(super) running: HashMap<VertexId, Vec<Running>>,
    /// The trees of those that wait for all below a directory.
    pub(super) trees: HashMap<VertexId, Tree>,
    /// So many directories of one tree are watched at most; none where there is no bound.
    pub(super) tree_share: Option<usize>,
    pub(super) units: Units,
    /// What could not be watched.
    pub(super) retry: Retry,
    /// What has come up.
    pub(super) work: Work,
    /// What is in hand.
    pub(super) turn: Turn,
    serial: u64,
    directory: u32,
    route: u32,
}

impl WatchIndex {
    /// Notes that a vertex, which is not armed, is to be armed by the hub's thread.
    pub(super) fn order(&mut self, vertex: VertexId, sources: Vec<WatchSource>) {
        self.serial += 1;
        let serial = self.serial;
        let armed = Armed { serial, placed: Box::default(), reported: Reported::Never };
        self.vertices.insert(vertex, armed);
        self.work.arms.push((vertex, serial, sources));
    }

    /// This very arming holds.
    pub(super) fn is_armed(&self, owner: SourceOwner) -> bool {
        self.vertices.get(&owner.vertex).is_some_and(|armed| armed.serial == owner.serial)
    }

    pub(super) fn next_directory(&mut self) -> DirectoryId {
        self.directory += 1;
        DirectoryId(self.directory)
    }

    /// The route with this text; a new one has not been walked.
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

    /// Takes in what the kernel reports: whom to tell at once, and what the hub's thread has to look at.
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
            BackendEvent::Overflow => self.work.overflow = true,
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
                // New rights may open a way that was shut.
                (false, None) => work.walk(*route, Reason::Verify),
                // Or they let happen what was denied below.
                (false, Some(route)) => {
                    for leaf in route.leaves.values() {
                        self.tell_leaf(leaf, Signal::Suspect, signals, LINKS);
                    }
                }
            }
        }
        for id in &directory.ends {
            let Some(route) = self.routes.get(id) else { continue };
            if let Some((name, leaf)) = route.leaves.get_key_value(name) {
                self.tell_leaf(leaf, Signal::Changed, signals, LINKS);
                if structural {
                    work.looks.insert((*id, Arc::clone(name)));
                }
            }
            if !name.is_empty() && !name.starts_with(TEMPORARY) {
                for vertex in &route.below {
                    self.tell(*vertex, Signal::Changed, signals);
                }
                if structural {
                    self.grow(*id, route, work);
                }
            }
        }
    }

    /// Tells everybody on a route.
    pub(super) fn tell_route(
        &self,
        route: RouteId,
        signal: fn(VertexId) -> Signal,
        signals: &mut Vec<Signal>,
    ) {
        let Some(route) = self.routes.get(&route) else { return };
        for leaf in route.leaves.values() {
            self.tell_leaf(leaf, signal, signals, LINKS);
        }
        for vertex in &route.below {
            self.tell(*vertex, signal, signals);
        }
    }

    /// Tells those who wait for a path, also through links that lead to it.
    pub(super) fn tell_leaf(
        &self,
        leaf: &Leaf,
        signal: fn(VertexId) -> Signal,
        signals: &mut Vec<Signal>,
        links: usize,
    ) {
        for waiter in &leaf.waiters {
            match signal(waiter.vertex) {
                Signal::Changed(_) if waiter.is_supplied => {
                    self.tell(waiter.vertex, Signal::Supplied, signals);
                }
                _ => self.tell(waiter.vertex, signal, signals),
            }
        }
        if links == 0 {
            return;
        }
        for (route, name) in &leaf.links {
            if let Some(leaf) = self.routes.get(route).and_then(|route| route.leaves.get(name)) {
                self.tell_leaf(leaf, signal, signals, links - 1);
            }
        }
    }

    /// Tells one vertex. One that was told nothing yet is checked after it is told that it is watched, which covers this.
    pub(super) fn tell(
        &self,
        vertex: VertexId,
        signal: fn(VertexId) -> Signal,
        signals: &mut Vec<Signal>,
    ) {
        if !self.deaf.is_empty() && self.deaf.contains(&vertex) {
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
