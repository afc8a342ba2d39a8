//! The data that all threads and tasks of the hub share: the index behind a lock, the tasks, and the way of signals.

use super::backend::BackendEvent;
use super::index::{Again, Running, SourceOwner, WatchIndex};
use super::signal::Signal;
use super::sources::ExternalSources;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use steadfast_engine::VertexId;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// The data that all threads of the hub share.
pub(super) struct Shared {
    state: Mutex<WatchIndex>,
    /// The condition variable that wakes the hub's thread.
    pub(super) wake: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
    send: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
    pub(super) handle: Handle,
    pub(super) sources: ExternalSources,
    /// A counter of completed steps of the hub's thread.
    pub(super) progress: AtomicU64,
    /// The tasks of timers and watch commands, by vertex.
    tasks: Mutex<HashMap<VertexId, Vec<AbortHandle>>>,
    /// The tasks that are not bound to a vertex: one for each systemd bus, and the one for retries.
    pub(super) following: Mutex<Vec<AbortHandle>>,
}

impl Shared {
    pub(super) fn new(
        handle: Handle,
        sources: ExternalSources,
        send: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
    ) -> Self {
        Self {
            state: Mutex::default(),
            wake: Condvar::new(),
            thread: Mutex::default(),
            send,
            handle,
            sources,
            progress: AtomicU64::new(0),
            tasks: Mutex::default(),
            following: Mutex::default(),
        }
    }

    /// Starts a task of the hub; a panic of the task breaks the hub.
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

    /// Reports that the hub has failed as a whole; the receiver makes another hub.
    pub(super) fn breaks(&self, why: &str) {
        let state = self.lock();
        self.send(&state, vec![Signal::Broken(why.to_owned())]);
    }

    /// Walks every path again.
    pub(super) fn walk_all(&self) {
        self.lock().work.again(Again::All);
        self.wake.notify_one();
    }

    /// Stores a task that is not bound to a vertex.
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

    /// Waits for the wake-up call; the caller checks for work.
    pub(super) fn wait<'s>(&self, state: MutexGuard<'s, WatchIndex>) -> MutexGuard<'s, WatchIndex> {
        self.wake.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the hub's thread.
    pub(super) fn set_thread(&self, thread: JoinHandle<()>) {
        *self.thread() = Some(thread);
    }

    pub(super) fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports signals. The caller holds the lock, so that the signals of one vertex stay in order and none follows a
    /// disarm.
    pub(super) fn send(&self, state: &WatchIndex, signals: Vec<Signal>) {
        if !signals.is_empty() && !state.work.closed {
            (self.send)(signals);
        }
    }

    /// Processes events of the kernel, on the thread that reads them. Returns true if any of them matters to a vertex.
    pub(super) fn take_in(&self, happenings: &[BackendEvent<'_>]) -> bool {
        let mut signals = Vec::new();
        let mut state = self.lock();
        for happening in happenings {
            state.take_in(*happening, &mut signals);
        }
        let (news, work) = (!signals.is_empty(), !state.work.is_empty());
        self.send(&state, signals);
        drop(state);
        if work {
            self.wake.notify_one();
        }
        news || work
    }

    /// Reports a change of each watched directory entry among these paths.
    pub(super) fn report_entries(&self, paths: &BTreeSet<PathBuf>) {
        let entries = self.lock().watched_entries(paths);
        let happenings: Vec<_> = entries
            .iter()
            .map(|(directory, name)| BackendEvent::Entry {
                directory: *directory,
                name,
                structural: true,
            })
            .collect();
        self.take_in(&happenings);
    }

    /// Reports a signal of a timer or command task, unless its vertex was armed again.
    pub(super) fn signal_source(&self, owner: SourceOwner, signal: fn(VertexId) -> Signal) {
        let state = self.lock();
        if !state.is_armed(owner) {
            return;
        }
        let mut signals = Vec::new();
        state.send(owner.vertex, signal, &mut signals);
        self.send(&state, signals);
    }

    /// Updates the state of a watch command, from its task.
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

/// A guard that reports a panic of a task; cancelling the task is fine.
struct Missed(Arc<Shared>);

impl Drop for Missed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.breaks("an event task panicked; see the log for the location");
        }
    }
}
