//! The hub: takes orders from the driver, events from the kernel, and does the slow part on its own thread.

use super::Signal;
use super::backend::inotify::InotifyBackend;
use super::backend::notify::NotifyBackend;
use super::backend::{Backend, BackendEvent, Sink};
use super::filesystem::{FileSystem, HostFileSystem};
use super::index::{Again, Running, WatchIndex};
use super::recursive::share_of_watches;
use super::systemd::UnitSource;
use super::timer_and_command_sources::{LineSource, SourceOwner};
use super::worker::Worker;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// How long the thread may take to end.
const LEAVE: std::time::Duration = std::time::Duration::from_millis(500);

/// All sources of events. Its orders return at once; the answers come through `tell`.
pub struct WatchHub {
    shared: Arc<Shared>,
}

/// What all threads share.
pub(super) struct Shared {
    state: Mutex<WatchIndex>,
    /// The hub's thread waits here for work.
    pub(super) wake: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
    tell: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
    pub(super) handle: Handle,
    pub(super) sources: ExternalSources,
    /// Counts what the hub's thread has done.
    pub(super) progress: AtomicU64,
    /// The timers and watch commands of each vertex.
    tasks: Mutex<HashMap<VertexId, Vec<AbortHandle>>>,
    /// Those that listen to systemd, one for each bus, and the one that waits to try again what could not be watched.
    following: Mutex<Vec<AbortHandle>>,
}

/// Who brings the events that are not of the kernel.
#[derive(Clone, Default)]
pub struct ExternalSources {
    /// Starts watch commands.
    pub lines: Option<Arc<dyn LineSource>>,
    /// Listens to systemd.
    pub units: Option<Arc<dyn UnitSource>>,
}

impl fmt::Debug for ExternalSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lines, units) = (self.lines.is_some(), self.units.is_some());
        f.debug_struct("Sources").field("lines", &lines).field("units", &units).finish()
    }
}

/// Does the slow part of a hub, step by step.
#[derive(Clone)]
pub struct SteppedWorker(Worker);

impl fmt::Debug for SteppedWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hand").field("is_wanted", &self.is_wanted()).finish()
    }
}

impl SteppedWorker {
    /// Whether there is something to do.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }

    /// Takes one step: false where there is nothing to do.
    pub fn step(&self) -> bool {
        self.0.step()
    }
}

impl fmt::Debug for WatchHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("Hub")
            .field("vertices", &state.vertices.len())
            .field("routes", &state.routes.len())
            .field("directories", &state.directories.len())
            .finish_non_exhaustive()
    }
}

impl WatchHub {
    /// A hub that tells what it learns. `tell` is called from the hub's threads while they hold the hub's lock, so that nothing is
    /// told of a vertex after it was disarmed: it must be quick and must not call the hub, nor wait for somebody who does.
    pub fn new(handle: Handle, tell: impl Fn(Vec<Signal>) + Send + Sync + 'static) -> Self {
        Self::with_sources(handle, ExternalSources::default(), tell)
    }

    /// The same over the crate `notify`: for a few quiet directories.
    pub fn through_notify(
        handle: Handle,
        tell: impl Fn(Vec<Signal>) + Send + Sync + 'static,
    ) -> Self {
        let notify = |sink| -> Box<dyn Backend> { Box::new(NotifyBackend::new(sink)) };
        Self::open(handle, ExternalSources::default(), Box::new(tell), notify)
    }

    /// The same as [`WatchHub::new`], with those who can start watch commands and listen to systemd.
    pub fn with_sources(
        handle: Handle,
        sources: ExternalSources,
        tell: impl Fn(Vec<Signal>) + Send + Sync + 'static,
    ) -> Self {
        let inotify = |sink| -> Box<dyn Backend> { Box::new(InotifyBackend::new(sink)) };
        let hub = Self::open(handle, sources, Box::new(tell), inotify);
        hub.bound_trees(share_of_watches());
        hub
    }

    /// Watches so many directories of one tree at most. A tree that has more is told to be absent, and is looked at in turn.
    pub fn bound_trees(&self, share: usize) {
        self.shared.lock().tree_share = Some(share);
    }

    fn open(
        handle: Handle,
        sources: ExternalSources,
        tell: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
        backend: fn(Sink) -> Box<dyn Backend>,
    ) -> Self {
        let (hub, hand) = Self::by_hand(handle, sources, tell, (Arc::new(HostFileSystem), backend));
        match hand.0.spawn() {
            Ok(thread) => hub.shared.set_thread(thread),
            Err(error) => hub.shared.breaks(&format!("no thread to walk paths: {error}")),
        }
        hub
    }

    /// A hub without a thread of its own: nothing is armed, looked at or followed but by the hand of whoever holds it. Over
    /// this file system, whose events come through what `backend` makes.
    pub fn by_hand(
        handle: Handle,
        sources: ExternalSources,
        tell: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
        (ground, backend): (Arc<dyn FileSystem>, impl FnOnce(Sink) -> Box<dyn Backend>),
    ) -> (Self, SteppedWorker) {
        let shared = Arc::new(Shared::new(handle, sources, tell));
        let weak = Arc::downgrade(&shared);
        let sink: Sink = Box::new(move |happenings| {
            weak.upgrade().is_some_and(|shared| shared.take_in(happenings))
        });
        let worker = Worker::new(Arc::clone(&shared), backend(sink).into(), ground);
        (Self { shared }, SteppedWorker(worker))
    }

    /// Listens to these sources for a vertex, in the place of those it had. Answered by `Established` or `Absent`.
    pub fn arm(&self, vertex: VertexId, sources: Vec<WatchSource>) {
        self.arm_all(vec![(vertex, sources)]);
    }

    /// The same for many: they cost one turn of the lock and one wake-up.
    pub fn arm_all(&self, all: Vec<(VertexId, Vec<WatchSource>)>) {
        let mut tasks = self.shared.tasks();
        let mut state = self.shared.lock();
        state.vertices.reserve(all.len());
        state.work.arms.reserve(all.len());
        for (vertex, sources) in all {
            state.deaf.remove(&vertex);
            abort(tasks.remove(&vertex));
            state.displace(vertex);
            state.order(vertex, sources);
        }
        drop(state);
        drop(tasks);
        self.shared.wake.notify_one();
    }

    /// Stops listening: when this returns, nothing is told of the vertex any more.
    pub fn disarm(&self, vertex: VertexId) {
        abort(self.shared.tasks().remove(&vertex));
        let mut state = self.shared.lock();
        state.deaf.remove(&vertex);
        state.displace(vertex);
        let work = !state.work.is_empty();
        drop(state);
        if work {
            self.shared.wake.notify_one();
        }
    }

    /// Tells nothing of a vertex until [`WatchHub::listen`]: it will be checked anyway, and each event would only wake somebody.
    pub fn mute(&self, vertex: VertexId) {
        self.shared.lock().deaf.insert(vertex);
    }

    /// Tells of it again.
    pub fn unmute(&self, vertex: VertexId) {
        self.shared.lock().deaf.remove(&vertex);
    }

    /// Walks every path again: finds what changed without an event, such as a mount.
    pub fn walk_all(&self) {
        self.shared.lock().work.again(Again::All);
        self.shared.wake.notify_one();
    }

    /// Tries at once what could not be watched; that is done from time to time anyway.
    pub fn try_failed(&self) {
        self.shared.lock().work.again(Again::Failed);
        self.shared.wake.notify_one();
    }

    /// Changes with each piece of work that the thread has done: whoever waits while it stays the same waits for a file system
    /// that does not answer.
    pub fn progress(&self) -> u64 {
        self.shared.progress.load(Ordering::Relaxed)
    }

    /// Ends all watches and the thread.
    pub fn close(self) {
        self.stop();
    }

    fn stop(&self) {
        for task in self.shared.tasks().drain().flat_map(|(_, tasks)| tasks) {
            task.abort();
        }
        let mut following = self.shared.following.lock().unwrap_or_else(PoisonError::into_inner);
        for task in following.drain(..) {
            task.abort();
        }
        drop(following);
        self.shared.lock().work.closed = true;
        self.shared.wake.notify_one();
        let Some(thread) = self.shared.thread().take() else { return };
        // A thread that a hung file system holds is left behind: it must not hold up the stop (E-16).
        let limit = std::time::Instant::now() + LEAVE;
        while !thread.is_finished() {
            if std::time::Instant::now() > limit {
                tracing::warn!("the watch thread does not respond and was abandoned");
                return;
            }
            std::thread::sleep(LEAVE / 100);
        }
        if thread.join().is_err() {
            tracing::error!("the thread for watching panicked");
        }
    }
}

fn abort(tasks: Option<Vec<AbortHandle>>) {
    for task in tasks.into_iter().flatten() {
        task.abort();
    }
}

impl Drop for WatchHub {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    pub(super) fn new(
        handle: Handle,
        sources: ExternalSources,
        tell: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
    ) -> Self {
        Self {
            state: Mutex::default(),
            wake: Condvar::new(),
            thread: Mutex::default(),
            tell,
            handle,
            sources,
            progress: AtomicU64::new(0),
            tasks: Mutex::default(),
            following: Mutex::default(),
        }
    }

    /// Starts a task of the hub's; where it panics, the hub is broken.
    pub(super) fn spawn(
        self: &Arc<Self>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let missed = Missed(Arc::clone(self));
        let task = async move {
            let _missed = missed;
            task.await;
        };
        self.handle.spawn(task).abort_handle()
    }

    /// Nothing more can be relied on. Said once for all: whoever hears it makes another hub.
    pub(super) fn breaks(&self, why: &str) {
        let state = self.lock();
        self.tell(&state, vec![Signal::Broken(why.to_owned())]);
    }

    /// Keeps a task that is nobody's in particular.
    pub(super) fn keep_following(&self, task: AbortHandle) {
        let mut following = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        following.retain(|task| !task.is_finished());
        following.push(task);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, WatchIndex> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tasks(&self) -> MutexGuard<'_, HashMap<VertexId, Vec<AbortHandle>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there may be work.
    pub(super) fn wait<'s>(&self, state: MutexGuard<'s, WatchIndex>) -> MutexGuard<'s, WatchIndex> {
        self.wake.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread that works from now on.
    pub(super) fn set_thread(&self, thread: JoinHandle<()>) {
        *self.thread() = Some(thread);
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called with the lock held: what is told of one vertex is told in order, and not after it was disarmed.
    pub(super) fn tell(&self, state: &WatchIndex, signals: Vec<Signal>) {
        if !signals.is_empty() && !state.work.closed {
            (self.tell)(signals);
        }
    }

    /// Called by the thread that reads the kernel's events. Whether anybody waits for any of it.
    fn take_in(&self, happenings: &[BackendEvent<'_>]) -> bool {
        let mut signals = Vec::new();
        let mut state = self.lock();
        for happening in happenings {
            state.take_in(*happening, &mut signals);
        }
        let (news, work) = (!signals.is_empty(), !state.work.is_empty());
        self.tell(&state, signals);
        drop(state);
        if work {
            self.wake.notify_one();
        }
        news || work
    }

    /// Called by the task of a timer or a command.
    pub(super) fn tell_for(&self, owner: SourceOwner, signal: fn(VertexId) -> Signal) {
        let state = self.lock();
        if !state.is_armed(owner) {
            return;
        }
        let mut signals = Vec::new();
        state.tell(owner.vertex, signal, &mut signals);
        self.tell(&state, signals);
    }

    /// Called by the task of a command.
    pub(super) fn set_running(&self, owner: SourceOwner, index: usize, running: Running) {
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

/// A task of the hub's runs. It may be ended; it must not panic.
struct Missed(Arc<Shared>);

impl Drop for Missed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.breaks("an event task panicked; see the log for the location");
        }
    }
}
