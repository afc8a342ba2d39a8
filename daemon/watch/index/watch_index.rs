//! The data of the watch hub, and the signals that follow from an event of the kernel.

use super::retry::Retry;
use super::route::Directory;
use super::route::{LINKS, Leaf, Leaves, Reason, Route, RouteId, Walked};
use super::tree::Tree;
use super::turn::Turn;
use super::units::Units;
use super::vertex_watch::{Armed, Reported, Running, SourceOwner};
use super::work::Work;
use crate::watch::backend::{BackendEvent, DirectoryId};
use crate::watch::filesystem::Identity;
use crate::watch::signal::Signal;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;

/// The prefix of the daemon's own temporary names; changes of these are not reported.
const TEMPORARY: &[u8] = b".steadfast-";

/// All data of the watch hub.
#[derive(Debug, Default)]
pub(in crate::watch) struct WatchIndex {
    pub(in crate::watch) directories: HashMap<DirectoryId, Directory>,
    pub(in crate::watch) identities: HashMap<Identity, DirectoryId>,
    pub(in crate::watch) routes: HashMap<RouteId, Route>,
    pub(in crate::watch) by_path: HashMap<Arc<Path>, RouteId>,
    pub(in crate::watch) vertices: HashMap<VertexId, Armed>,
    /// Muted vertices: no signals are sent for them.
    pub(in crate::watch) muted: HashSet<VertexId>,
    pub(in crate::watch) running: HashMap<VertexId, Vec<Running>>,
    /// The directory trees of recursive watches.
    pub(in crate::watch) trees: HashMap<VertexId, Tree>,
    /// The maximum number of watched directories per recursive watch; `None` means no limit.
    pub(in crate::watch) tree_share: Option<usize>,
    /// The watched systemd units.
    pub(in crate::watch) units: Units,
    /// Watches that failed and are tried again.
    pub(in crate::watch) retry: Retry,
    /// Work that has accumulated for the next turn.
    pub(in crate::watch) work: Work,
    /// The progress of the current turn.
    pub(in crate::watch) turn: Turn,
    /// The number of overflows of the kernel's queue.
    pub(in crate::watch) overflows: u64,
    serial: u64,
    directory: u32,
    route: u32,
}

impl WatchIndex {
    /// Schedules a vertex that is not armed to be armed by the hub's thread.
    pub(in crate::watch) fn order(&mut self, vertex: VertexId, sources: Vec<WatchSource>) {
        self.serial += 1;
        let serial = self.serial;
        let armed = Armed { serial, placed: Box::default(), reported: Reported::Never };
        self.vertices.insert(vertex, armed);
        self.work.arms.push((vertex, serial, sources));
    }

    /// Returns true if this arming of the vertex is the current one.
    pub(in crate::watch) fn is_armed(&self, owner: SourceOwner) -> bool {
        self.vertices.get(&owner.vertex).is_some_and(|armed| armed.serial == owner.serial)
    }

    pub(in crate::watch) fn next_directory(&mut self) -> DirectoryId {
        self.directory += 1;
        DirectoryId(self.directory)
    }

    /// Returns the route with this path; a new one is scheduled for a walk.
    pub(in crate::watch) fn route(&mut self, path: &Path, work: &mut Work) -> RouteId {
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
    pub(in crate::watch) fn take_in(
        &mut self,
        happening: BackendEvent<'_>,
        signals: &mut Vec<Signal>,
    ) {
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
    pub(in crate::watch) fn signal_route(
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
    pub(in crate::watch) fn signal_leaf(
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
    pub(in crate::watch) fn send(
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
