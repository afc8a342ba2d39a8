//! The hub's own thread: arms, walks, follows links, gives up, and then says how it stands.

use super::Signal;
use super::backend::{Backend, DirectoryId};
use super::hub::Shared;
use super::place::discard_unused;
use super::pulse::{Owner, listen, tick};
use super::table::{LINKS, Name, Placed, Reason, RouteId, Running, Table, Told, Work};
use super::tree;
use super::units::follow;
use super::walk::Walk;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use steadfast_engine::VertexId;
use steadfast_resources::Source;
use steadfast_resources::host::systemd::Bus;
use tokio::task::AbortHandle;

/// The hub's own thread.
pub(super) struct Worker {
    shared: Arc<Shared>,
    backend: Box<dyn Backend>,
    /// To be told at the end of the turn.
    signals: Vec<Signal>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, backend: Box<dyn Backend>) -> Self {
        Self { shared, backend, signals: Vec::new() }
    }

    /// Works until the hub is closed.
    pub(super) fn run(mut self) {
        while let Some(work) = self.shared.work() {
            self.turn(work);
        }
    }

    fn turn(&mut self, mut work: Work) {
        let mut renewed = work.overflow.then(HashSet::new);
        if work.overflow || work.sweep {
            let reason = if work.overflow { Reason::Lost } else { Reason::Verify };
            for route in self.shared.lock().routes.keys() {
                work.walk(*route, reason);
            }
            self.shared.lock().grow_all(&mut work);
        }
        for directory in std::mem::take(&mut work.lost) {
            self.lose(directory, &mut work);
        }
        for (vertex, serial, sources) in std::mem::take(&mut work.arms) {
            self.arm(Owner { vertex, serial }, sources, &mut work);
        }
        // First what is given back: a limit may have been reached.
        self.give_up(&mut work);
        loop {
            while let Some((route, reason)) = work.dirty.pop_first() {
                self.walk(route, reason, &mut work, renewed.as_mut());
                self.shared.progress.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(leaf) = work.looks.pop_first() {
                self.look(&leaf, &mut work);
            } else if let Some((vertex, route)) = work.grow.pop_first() {
                // What was found before is watched by now.
                tree::grow(&self.shared, vertex, route, (&mut work, &mut self.signals));
            } else {
                break;
            }
            self.shared.progress.fetch_add(1, Ordering::Relaxed);
        }
        self.give_up(&mut work);
        self.finish(&work.judge);
    }

    fn give_up(&mut self, work: &mut Work) {
        for route in std::mem::take(&mut work.emptied) {
            let used = self.shared.lock().give_up(route);
            discard_unused(&self.shared, &mut *self.backend, &used);
        }
    }

    /// Says how it stands with those concerned, and tells everything that came up in this turn.
    fn finish(&mut self, judge: &BTreeSet<VertexId>) {
        let mut state = self.shared.lock();
        for vertex in judge {
            state.judge(*vertex, &mut self.signals);
        }
        let mut signals = std::mem::take(&mut self.signals);
        // Disarmed during the turn.
        signals.retain(|signal| {
            let (Signal::Established(vertex)
            | Signal::Absent(vertex, _)
            | Signal::Changed(vertex)
            | Signal::Suspect(vertex)) = signal;
            state.vertices.get(vertex).is_some_and(|armed| armed.told > Told::Nothing)
        });
        self.shared.tell(&state, signals);
    }

    /// A watch is gone: every way through it is walked again.
    fn lose(&mut self, id: DirectoryId, work: &mut Work) {
        let lost = self.shared.lock().remove_directory(id);
        let Some(lost) = lost else { return };
        for route in lost.steps.values().flatten().chain(&lost.ends) {
            work.walk(*route, Reason::Lost);
        }
        self.backend.unwatch(id);
    }

    fn arm(&mut self, owner: Owner, sources: Vec<Source>, work: &mut Work) {
        let vertex = owner.vertex;
        let mut state = self.shared.lock();
        if !state.is_armed(owner) {
            return;
        }
        let mut all = Vec::new();
        let mut tasks = Vec::new();
        let mut running = Vec::new();
        for source in sources {
            match source {
                Source::Unit { bus, unit } => {
                    if state.units.place(vertex, bus, &unit) {
                        self.begin_following(bus, &mut state);
                    }
                    all.push(Placed::Unit(bus, unit));
                }
                Source::Path { path, below } => all.extend(state.place(vertex, &path, below, work)),
                Source::Tree(path) => {
                    all.extend(state.place(vertex, &path, true, work));
                    state.plant(vertex, &path, work);
                }
                Source::Every(interval) => {
                    let task = tick(Arc::clone(&self.shared), owner, interval);
                    tasks.push(self.shared.handle.spawn(task).abort_handle());
                }
                Source::Lines(command) => {
                    let Some(lines) = self.shared.sources.lines.clone() else {
                        running.push(Running::Failed("watch commands cannot be run".to_owned()));
                        continue;
                    };
                    let shared = Arc::clone(&self.shared);
                    let task = listen(shared, owner, running.len(), (lines, command));
                    running.push(Running::Starting);
                    tasks.push(self.shared.handle.spawn(task).abort_handle());
                }
            }
        }
        if !running.is_empty() {
            state.running.insert(vertex, running);
        }
        if let Some(armed) = state.vertices.get_mut(&vertex) {
            armed.placed = all.into();
            armed.told = Told::Nothing;
        }
        drop(state);
        if !tasks.is_empty() {
            self.keep(owner, tasks);
        }
        work.judge.insert(vertex);
    }

    /// The first vertex that waits for a unit on this bus.
    fn begin_following(&self, bus: Bus, state: &mut Table) {
        let Some(units) = self.shared.sources.units.clone() else {
            state.units.refuse(bus, "systemd cannot be listened to");
            return;
        };
        let task = follow(Arc::clone(&self.shared), units, bus);
        let task = self.shared.handle.spawn(task).abort_handle();
        self.shared.keep_following(task);
    }

    /// Keeps the tasks of a vertex, or ends them where it was disarmed meanwhile.
    fn keep(&self, owner: Owner, tasks: Vec<AbortHandle>) {
        let mut kept = self.shared.tasks();
        let state = self.shared.lock();
        if state.is_armed(owner) {
            kept.insert(owner.vertex, tasks);
        } else {
            for task in tasks {
                task.abort();
            }
        }
    }

    fn walk(
        &mut self,
        id: RouteId,
        reason: Reason,
        work: &mut Work,
        renewed: Option<&mut HashSet<DirectoryId>>,
    ) {
        let Some(path) = self.shared.lock().routes.get(&id).map(|route| Arc::clone(&route.path))
        else {
            return;
        };
        let shared = &*self.shared;
        let walk = Walk { shared, backend: &mut *self.backend, route: id, renewed };
        let walked = walk.run(&path);
        let mut state = self.shared.lock();
        let failed = state.routes.get(&id).and_then(|route| route.walked.failed.clone());
        let flipped = failed.is_some() != walked.failed.is_some();
        let (used, differs) = state.settle(id, walked);
        if differs || reason > Reason::Verify {
            let signal = if reason == Reason::Changed { Signal::Changed } else { Signal::Suspect };
            state.tell_route(id, signal, &mut self.signals);
            let leaves = state.routes.get(&id).into_iter().flat_map(|route| route.leaves.keys());
            work.looks.extend(leaves.map(|name| (id, Arc::clone(name))));
            if let Some(route) = state.routes.get(&id) {
                state.grow(id, route, work);
            }
        }
        if flipped {
            state.concern(id, &mut work.judge);
        }
        drop(state);
        discard_unused(&self.shared, &mut *self.backend, &used);
    }

    /// Follows what a path links to, so that changes there are seen as well.
    fn look(&mut self, leaf: &(RouteId, Name), work: &mut Work) {
        let path = {
            let state = self.shared.lock();
            let end = state.routes.get(&leaf.0).and_then(|route| route.walked.end);
            end.and_then(|end| state.directories.get(&end)).map(|end| end.path.clone())
        };
        let target = path.as_ref().and_then(|directory| {
            let target =
                rustix::fs::readlink(directory.join(OsStr::from_bytes(&leaf.1)), Vec::new());
            let target = PathBuf::from(OsStr::from_bytes(target.ok()?.as_bytes()));
            Some(super::place::normal(&directory.join(target)))
        });
        let mut state = self.shared.lock();
        if state.follow(leaf, target.as_deref(), work) {
            let known = state.routes.get(&leaf.0).and_then(|route| route.leaves.get(&leaf.1));
            if let Some(known) = known {
                state.tell_leaf(known, Signal::Suspect, &mut self.signals, LINKS);
            }
        }
    }
}
