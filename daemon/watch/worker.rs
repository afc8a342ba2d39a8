//! The hub's thread: arms vertices, walks routes, resolves links, ends unused watches, and reports the status.

use super::backend::{Backend, DirectoryId};
use super::filesystem::FileSystem;
use super::following::{follow, listen, tick, try_again};
use super::index::{
    Again, LINKS, Name, Placed, Reason, Reported, RouteId, Running, SourceOwner, Turn, Waiter,
    WatchIndex, WorkStep, normal,
};
use super::path_walk::PathWalk;
use super::shared::Shared;
use super::signal::Signal;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;
use steadfast_resources::host::systemd::Bus;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// The interval at which a working thread is monitored.
const LOOK_AFTER: Duration = Duration::from_millis(500);

/// The worker of the hub, run by a thread or step by step.
#[derive(Clone)]
pub(super) struct Worker {
    shared: Arc<Shared>,
    backend: Arc<dyn Backend>,
    ground: Arc<dyn FileSystem>,
    number: u64,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<Shared>,
        backend: Arc<dyn Backend>,
        ground: Arc<dyn FileSystem>,
    ) -> Self {
        Self { shared, backend, ground, number: 0 }
    }

    pub(super) fn spawn(self) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || self.run())
    }

    /// Works until the hub is closed or another thread has taken over.
    fn run(self) {
        let _ends = Ends(&self);
        while let Some(step) = self.next() {
            #[cfg(feature = "fault-injection")]
            if crate::fault_injection::inject_fault("watch").is_err() {
                return;
            }
            self.act(step);
        }
    }

    fn act(&self, step: WorkStep) {
        match step {
            WorkStep::Begin => self.begin(),
            WorkStep::Walk(route, reason) => self.walk(route, reason),
            WorkStep::Look(route, name) => self.look(&(route, name)),
            WorkStep::Grow(vertex, route) => self.grow(vertex, route),
            WorkStep::End => self.finish(),
        }
        self.shared.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Does one step on the caller's thread, without a time limit; returns false if there is no work.
    pub(super) fn step(&self) -> bool {
        let mut state = self.shared.lock();
        let step = if state.work.closed { None } else { state.next_step() };
        drop(state);
        let is_one = step.is_some();
        if let Some(step) = step {
            self.act(step);
        }
        is_one
    }

    /// Returns true if there is work.
    pub(super) fn is_wanted(&self) -> bool {
        let state = self.shared.lock();
        !state.work.closed && !state.is_idle()
    }

    /// Waits for the next step; returns `None` when the thread must end.
    fn next(&self) -> Option<WorkStep> {
        let mut state = self.shared.lock();
        loop {
            if state.turn.thread != self.number {
                state.came_back(self.number);
                self.shared.wake.notify_all();
                return None;
            }
            if state.work.closed {
                return None;
            }
            if let Some(step) = state.next_step() {
                if !std::mem::replace(&mut state.turn.guarded, true) {
                    self.shared.spawn(self.clone().look_after());
                }
                return Some(step);
            }
            state = self.shared.wait(state);
        }
    }

    /// Monitors the thread while there is work; starts another thread if a step exceeds its time limit.
    async fn look_after(mut self) {
        loop {
            tokio::time::sleep(LOOK_AFTER).await;
            let mut state = self.shared.lock();
            if state.work.closed || state.is_idle() {
                state.turn.guarded = false;
                return;
            }
            let Some((number, path, unused)) = state.give_up_step(Instant::now()) else { continue };
            drop(state);
            tracing::warn!(path = %path.display(), "the path does not respond and cannot be watched");
            for directory in unused {
                self.backend.unwatch(directory);
            }
            self.number = number;
            match self.clone().spawn() {
                Ok(thread) => self.shared.set_thread(thread),
                Err(error) => self.shared.breaks(&format!("no thread to walk paths: {error}")),
            }
        }
    }

    /// Changes the index and the turn; returns `None` if another thread has taken over.
    fn with<T>(&self, change: impl FnOnce(&mut WatchIndex, &mut Turn) -> T) -> Option<T> {
        let mut state = self.shared.lock();
        if state.turn.thread != self.number {
            return None;
        }
        let mut turn = std::mem::take(&mut state.turn);
        let answer = change(&mut state, &mut turn);
        state.turn = turn;
        Some(answer)
    }

    fn begin(&self) {
        let arms = self.with(|state, turn| {
            let work = &mut turn.work;
            if work.overflow || work.again == Again::All {
                let reason = if work.overflow { Reason::Lost } else { Reason::Verify };
                for route in state.routes.keys() {
                    work.walk(*route, reason);
                }
                state.grow_all(work);
            } else if work.again == Again::Failed {
                for route in state.retry.begin() {
                    work.walk(route, Reason::Verify);
                }
            }
            let lost = std::mem::take(&mut work.lost);
            for directory in lost.iter().filter_map(|id| state.remove_directory(*id)) {
                // Every route through a lost directory is walked again.
                for route in directory.steps.values().flatten().chain(&directory.ends) {
                    work.walk(*route, Reason::Lost);
                }
            }
            (lost, std::mem::take(&mut work.arms))
        });
        let Some((lost, arms)) = arms else { return };
        for directory in lost {
            self.backend.unwatch(directory);
        }
        for (vertex, serial, sources) in arms {
            self.arm(SourceOwner { vertex, serial }, sources);
        }
        // Unused watches end first: a limit may have been reached.
        self.give_up();
    }

    fn give_up(&self) {
        let used = self.with(|state, turn| {
            let emptied = std::mem::take(&mut turn.work.emptied);
            let mut used = Vec::new();
            for route in emptied {
                // A vertex may wait there again: then the route must still be walked.
                if let Some(directories) = state.give_up(route) {
                    turn.work.dirty.remove(&route);
                    used.extend(directories);
                }
            }
            used
        });
        self.discard(&used.unwrap_or_default());
    }

    fn discard(&self, directories: &[DirectoryId]) {
        discard_unused(&self.shared, &*self.backend, (self.number, directories));
    }

    /// Ends the turn: determines the status of affected vertices and reports all signals.
    fn finish(&self) {
        self.give_up();
        self.with(|state, turn| {
            for vertex in std::mem::take(&mut turn.work.judge) {
                state.judge(vertex, &mut turn.signals);
            }
            let mut signals = std::mem::take(&mut turn.signals);
            // Vertices that were disarmed during the turn get no signals.
            signals.retain(|signal| match signal {
                Signal::Established(vertex)
                | Signal::Absent(vertex, _)
                | Signal::Changed(vertex)
                | Signal::Supplied(vertex)
                | Signal::Suspect(vertex) => state
                    .vertices
                    .get(vertex)
                    .is_some_and(|armed| armed.reported > Reported::Nothing),
                Signal::Broken(_) => true,
            });
            self.shared.send(state, signals);
            if state.retry.is_to_be_awaited() {
                let task = self.shared.spawn(try_again(Arc::clone(&self.shared)));
                self.shared.keep_following(task);
            }
        });
    }

    fn arm(&self, owner: SourceOwner, sources: Vec<WatchSource>) {
        let vertex = owner.vertex;
        let mut guard = self.shared.lock();
        if !guard.is_armed(owner) {
            return;
        }
        let mut turn = std::mem::take(&mut guard.turn);
        let (state, work) = (&mut *guard, &mut turn.work);
        let own = Waiter { vertex, is_supplied: false };
        let supplied = Waiter { vertex, is_supplied: true };
        let mut all = Vec::new();
        let mut tasks = Vec::new();
        let mut running = Vec::new();
        for source in sources {
            match source {
                WatchSource::Unit { bus, unit } => {
                    if state.units.place(vertex, bus, &unit) {
                        self.begin_following(bus, state);
                    }
                    all.push(Placed::Unit(bus, unit));
                }
                WatchSource::Path { path, below } => {
                    all.extend(state.place(own, &path, below, work));
                }
                WatchSource::Supply(path) => all.extend(state.place(supplied, &path, false, work)),
                WatchSource::Tree(path) => {
                    all.extend(state.place(own, &path, true, work));
                    state.plant(vertex, &path, work);
                }
                // The driver polls the source itself, or hears of the world.
                WatchSource::Polled(_) | WatchSource::World(_) => {}
                WatchSource::Every(interval) => {
                    let task = tick(Arc::clone(&self.shared), owner, interval);
                    tasks.push(self.shared.spawn(task));
                }
                WatchSource::Lines(command) => {
                    let Some(lines) = self.shared.sources.lines.clone() else {
                        running.push(Running::Failed("watch commands cannot be run".to_owned()));
                        continue;
                    };
                    let shared = Arc::clone(&self.shared);
                    let task = listen(shared, owner, running.len(), (lines, command));
                    running.push(Running::Starting);
                    tasks.push(self.shared.spawn(task));
                }
            }
        }
        if !running.is_empty() {
            state.running.insert(vertex, running);
        }
        if let Some(armed) = state.vertices.get_mut(&vertex) {
            armed.placed = all.into();
            armed.reported = Reported::Nothing;
        }
        work.judge.insert(vertex);
        guard.turn = turn;
        drop(guard);
        if !tasks.is_empty() {
            self.keep(owner, tasks);
        }
    }

    /// Starts to follow a bus, for the first vertex with a unit on it.
    fn begin_following(&self, bus: Bus, state: &mut WatchIndex) {
        let Some(units) = self.shared.sources.units.clone() else {
            state.units.refuse(bus, "systemd signals cannot be received");
            return;
        };
        let task = follow(Arc::clone(&self.shared), units, bus);
        let task = self.shared.spawn(task);
        self.shared.keep_following(task);
    }

    /// Stores the tasks of a vertex; cancels them if the vertex was disarmed in between.
    fn keep(&self, owner: SourceOwner, tasks: Vec<AbortHandle>) {
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

    fn walk(&self, id: RouteId, reason: Reason) {
        let Some(path) = self.shared.lock().routes.get(&id).map(|route| Arc::clone(&route.path))
        else {
            return;
        };
        let (shared, backend, ground) = (&*self.shared, &*self.backend, &*self.ground);
        let walk = PathWalk { shared, backend, ground, thread: self.number, route: id };
        let Some(walked) = walk.run(&path) else { return };
        let used = self.with(|state, turn| {
            let failed = state.routes.get(&id).and_then(|route| route.walked.failed.clone());
            let flipped = failed.is_some() != walked.failed.is_some();
            if state.retry.note(id, walked.failed.is_some()) {
                for other in state.retry.go_on() {
                    turn.work.walk(other, Reason::Verify);
                }
            }
            let (used, differs) = state.settle(id, walked);
            if differs || reason > Reason::Verify {
                let signal =
                    if reason == Reason::Changed { Signal::Changed } else { Signal::Suspect };
                state.signal_route(id, signal, &mut turn.signals);
                let route = state.routes.get(&id);
                let leaves = route.into_iter().flat_map(|route| route.leaves.keys());
                turn.work.looks.extend(leaves.map(|name| (id, Arc::clone(name))));
                if let Some(route) = route {
                    state.grow(id, route, &mut turn.work);
                }
            }
            if flipped {
                state.concern(id, &mut turn.work.judge);
            }
            used
        });
        self.discard(&used.unwrap_or_default());
    }

    /// Resolves the symbolic link at a path, so that changes of its target are seen as well.
    fn look(&self, leaf: &(RouteId, Name)) {
        let directory = {
            let mut state = self.shared.lock();
            let end = state.routes.get(&leaf.0).and_then(|route| route.walked.end);
            let directory = end.and_then(|end| state.directories.get(&end));
            let directory = directory.map(|end| end.path.clone());
            let path = directory.as_ref().map(|at| at.join(OsStr::from_bytes(&leaf.1)));
            if path.is_some_and(|path| !state.look_through(path, leaf)) {
                return;
            }
            directory
        };
        let path = directory.as_ref().map(|at| at.join(OsStr::from_bytes(&leaf.1)));
        let target = directory.zip(path.as_ref()).and_then(|(directory, path)| {
            let target = self.ground.link(path)?;
            Some(normal(&directory.join(target)))
        });
        let is_mounted =
            target.is_none() && path.is_some_and(|path| self.ground.is_mounted_file(&path));
        self.with(|state, turn| {
            let is_other = state.note_mount(leaf, is_mounted);
            if !state.follow(leaf, target.as_deref(), &mut turn.work) && !is_other {
                return;
            }
            let known = state.routes.get(&leaf.0).and_then(|route| route.leaves.get(&leaf.1));
            if let Some(known) = known {
                state.signal_leaf(known, Signal::Suspect, &mut turn.signals, LINKS);
                // The former target may have been the one that could not be watched.
                state.concern_leaf(known, &mut turn.work.judge, LINKS);
            }
        });
    }

    /// Lists the subdirectories of a directory in a recursive watch.
    fn grow(&self, vertex: VertexId, route: RouteId) {
        let end = {
            let mut state = self.shared.lock();
            let end = state.end_of(route);
            if end.as_ref().is_some_and(|(path, _)| !state.look_at(path.clone(), route)) {
                return;
            }
            end
        };
        let found = end.map(|(path, identity)| self.ground.directories_in(&path, identity));
        self.with(|state, turn| {
            if state.branch(vertex, route, &found.unwrap_or_default(), &mut turn.work) {
                // Entries may have been created before the new directories were watched.
                state.send(vertex, Signal::Suspect, &mut turn.signals);
            }
        });
    }
}

/// Ends the watches of those of these directories that no route uses; does nothing on an abandoned thread.
fn discard_unused(
    shared: &Shared,
    backend: &dyn Backend,
    (thread, directories): (u64, &[DirectoryId]),
) {
    for directory in directories {
        let mut state = shared.lock();
        if state.turn.thread != thread {
            // Another thread has taken over, and may use the directories.
            return;
        }
        let unused = state.directories.get(directory).is_some_and(|known| known.routes == 0);
        if unused {
            state.remove_directory(*directory);
            drop(state);
            backend.unwatch(*directory);
            // The free watch may serve a failed route.
            let mut state = shared.lock();
            if !state.retry.is_empty() {
                state.work.again(Again::Failed);
            }
        }
    }
}

/// A guard that reports an unrequested end of the thread. Abandoned threads and those of a closed hub are not reported.
struct Ends<'w>(&'w Worker);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let state = self.0.shared.lock();
        let is_at_work = state.turn.thread == self.0.number && !state.work.closed;
        let is_missed = is_at_work || std::thread::panicking();
        drop(state);
        if is_missed {
            self.0.shared.breaks("the path thread has ended");
        }
    }
}
