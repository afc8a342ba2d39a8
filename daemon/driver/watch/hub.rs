//! The hub: takes orders from the driver, events from the kernel, and does the slow part on its own thread.

use super::Signal;
use super::backend::{Backend, DirectoryId, Happening, Sink};
use super::place::discard_unused;
use super::pulse::{LineSource, Owner, listen, tick};
use super::table::{Armed, Name, Reason, RouteId, Running, Table, Told, Work};
use super::through_notify::NotifyBackend;
use super::walk::Walk;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use steadfast_engine::VertexId;
use steadfast_resources::Source;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// All sources of events. Its orders return at once; the answers come through `tell`.
pub struct Hub {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What all threads share.
pub(super) struct Shared {
    state: Mutex<Table>,
    wake: Condvar,
    tell: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
    handle: Handle,
    lines: Option<Arc<dyn LineSource>>,
    /// The timers and watch commands of each vertex.
    tasks: Mutex<HashMap<VertexId, Vec<AbortHandle>>>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("Hub")
            .field("vertices", &state.vertices.len())
            .field("routes", &state.routes.len())
            .field("directories", &state.directories.len())
            .finish_non_exhaustive()
    }
}

impl Hub {
    /// A hub that tells what it learns. `tell` is called from the hub's threads while they hold the hub's lock, so that nothing is
    /// told of a vertex after it was disarmed: it must be quick and must not call the hub, nor wait for somebody who does.
    pub fn new(handle: Handle, tell: impl Fn(Vec<Signal>) + Send + Sync + 'static) -> Self {
        Self::open(handle, None, Box::new(tell))
    }

    /// The same, with somebody who can start watch commands.
    pub fn with_lines(
        handle: Handle,
        lines: Arc<dyn LineSource>,
        tell: impl Fn(Vec<Signal>) + Send + Sync + 'static,
    ) -> Self {
        Self::open(handle, Some(lines), Box::new(tell))
    }

    fn open(
        handle: Handle,
        lines: Option<Arc<dyn LineSource>>,
        tell: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
    ) -> Self {
        let shared = Arc::new(Shared::new(handle, lines, tell));
        let weak = Arc::downgrade(&shared);
        let sink: Sink = Box::new(move |happenings| {
            if let Some(shared) = weak.upgrade() {
                shared.take_in(happenings);
            }
        });
        let worker = Worker {
            shared: Arc::clone(&shared),
            backend: Box::new(NotifyBackend::new(sink)),
            signals: Vec::new(),
        };
        let thread =
            std::thread::Builder::new().name("watch".to_owned()).spawn(move || worker.run());
        let thread = thread.inspect_err(|error| {
            tracing::error!(%error, "no thread for watching: nothing will be watched");
        });
        Self { shared, thread: thread.ok() }
    }

    /// Listens to these sources for a vertex, in the place of those it had. Answered by `Established` or `Absent`.
    pub fn arm(&self, vertex: VertexId, sources: Vec<Source>) {
        self.disarm(vertex);
        let mut state = self.shared.lock();
        let serial = state.next_serial();
        let armed = Armed { serial, placed: Box::default(), told: Told::Never };
        state.vertices.insert(vertex, armed);
        state.work.arms.push((vertex, serial, sources));
        drop(state);
        self.shared.wake.notify_one();
    }

    /// Stops listening: when this returns, nothing is told of the vertex any more.
    pub fn disarm(&self, vertex: VertexId) {
        let tasks = self.shared.tasks().remove(&vertex);
        for task in tasks.into_iter().flatten() {
            task.abort();
        }
        self.shared.lock().displace(vertex);
        self.shared.wake.notify_one();
    }

    /// Walks every path again (at a swap and a sweep): tries what could not be watched, and finds what changed without an event, such
    /// as a mount.
    pub fn rearm_failed(&self) {
        self.shared.lock().work.sweep = true;
        self.shared.wake.notify_one();
    }

    /// Ends all watches and the thread.
    pub fn close(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        for task in self.shared.tasks().drain().flat_map(|(_, tasks)| tasks) {
            task.abort();
        }
        self.shared.lock().work.closed = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread for watching panicked");
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    pub(super) fn new(
        handle: Handle,
        lines: Option<Arc<dyn LineSource>>,
        tell: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
    ) -> Self {
        let (state, wake, tasks) = (Mutex::default(), Condvar::new(), Mutex::default());
        Self { state, wake, tell, handle, lines, tasks }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<VertexId, Vec<AbortHandle>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by the thread that reads the kernel's events.
    fn take_in(&self, happenings: &[Happening<'_>]) {
        let mut signals = Vec::new();
        let mut state = self.lock();
        for happening in happenings {
            state.take_in(*happening, &mut signals);
        }
        let work = !state.work.is_empty();
        if !signals.is_empty() && !state.work.closed {
            (self.tell)(signals);
        }
        drop(state);
        if work {
            self.wake.notify_one();
        }
    }

    /// Called by the task of a timer or a command.
    pub(super) fn tell_for(&self, owner: Owner, signal: fn(VertexId) -> Signal) {
        let state = self.lock();
        if !state.is_armed(owner) {
            return;
        }
        let mut signals = Vec::new();
        state.tell(owner.vertex, signal, &mut signals);
        if !signals.is_empty() {
            (self.tell)(signals);
        }
    }

    /// Called by the task of a command.
    pub(super) fn set_running(&self, owner: Owner, index: usize, running: Running) {
        let mut state = self.lock();
        if !state.is_armed(owner) {
            return;
        }
        let known = state.running.get_mut(&owner.vertex).and_then(|all| all.get_mut(index));
        if let Some(known) = known {
            *known = running;
            state.work.judge.insert(owner.vertex);
            self.wake.notify_one();
        }
    }
}

/// The hub's own thread.
struct Worker {
    shared: Arc<Shared>,
    backend: Box<dyn Backend>,
    /// To be told at the end of the turn.
    signals: Vec<Signal>,
}

impl Worker {
    fn run(mut self) {
        loop {
            let mut state = self.shared.lock();
            while state.work.is_empty() {
                state = self.shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let work = std::mem::take(&mut state.work);
            state.work.closed = work.closed;
            drop(state);
            if work.closed {
                return;
            }
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
            }
            let Some(leaf) = work.looks.pop_first() else { break };
            self.look(&leaf, &mut work);
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
        if !signals.is_empty() && !state.work.closed {
            (self.shared.tell)(signals);
        }
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
                Source::Path { path, below } => all.extend(state.place(vertex, &path, below, work)),
                Source::Every(interval) => {
                    let task = tick(Arc::clone(&self.shared), owner, interval);
                    tasks.push(self.shared.handle.spawn(task).abort_handle());
                }
                Source::Lines(command) => {
                    let Some(lines) = self.shared.lines.clone() else {
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
                state.tell_leaf(known, Signal::Suspect, &mut self.signals, super::table::LINKS);
            }
        }
    }
}
