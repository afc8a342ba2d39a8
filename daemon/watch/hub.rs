//! The watch hub: accepts requests of the driver and events of the kernel, and leaves slow work to its own thread.

use super::backend::inotify::InotifyBackend;
use super::backend::notify::NotifyBackend;
use super::backend::{Backend, Sink};
use super::filesystem::{FileSystem, HostFileSystem};
use super::following::{follow_file, follow_mounts};
use super::index::{Again, share_of_watches};
use super::proc_files::FOLLOWED;
use super::shared::Shared;
use super::signal::Signal;
use super::sources::ExternalSources;
use super::worker::Worker;
use crate::metrics::WatchCounts;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// The time limit for the end of the hub's thread.
const LEAVE: std::time::Duration = std::time::Duration::from_millis(500);

/// The hub with all event sources. Its methods return at once; results come as signals through `send`.
pub struct WatchHub {
    shared: Arc<Shared>,
}

/// A worker that does the slow work of a hub one step per call; tests and the simulation use it.
#[derive(Clone)]
pub struct SteppedWorker(Worker);

impl fmt::Debug for SteppedWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hand").field("is_wanted", &self.is_wanted()).finish()
    }
}

impl SteppedWorker {
    /// Returns true if there is work.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }

    /// Does one step; returns false if there is no work.
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
    /// Creates a hub that reports signals to `send`. The hub's threads call `send` with the hub's lock held, so that no
    /// signal follows a disarm: `send` must be quick, and must neither call the hub nor wait for a thread that does.
    pub fn new(handle: Handle, send: impl Fn(Vec<Signal>) + Send + Sync + 'static) -> Self {
        Self::with_sources(handle, ExternalSources::default(), send)
    }

    /// Creates a hub on the crate `notify` instead of inotify, for a few quiet directories; see [`WatchHub::new`].
    pub fn through_notify(
        handle: Handle,
        send: impl Fn(Vec<Signal>) + Send + Sync + 'static,
    ) -> Self {
        let notify = |sink| -> Box<dyn Backend> { Box::new(NotifyBackend::new(sink)) };
        Self::open(handle, ExternalSources::default(), Box::new(send), notify)
    }

    /// Creates a hub with sources for watch commands and systemd; see [`WatchHub::new`].
    pub fn with_sources(
        handle: Handle,
        sources: ExternalSources,
        send: impl Fn(Vec<Signal>) + Send + Sync + 'static,
    ) -> Self {
        let inotify = |sink| -> Box<dyn Backend> { Box::new(InotifyBackend::new(sink)) };
        let hub = Self::open(handle, sources, Box::new(send), inotify);
        hub.bound_trees(share_of_watches());
        let following = follow_mounts(Arc::clone(&hub.shared));
        hub.shared.keep_following(hub.shared.spawn(following));
        for path in FOLLOWED {
            let following = follow_file(Arc::clone(&hub.shared), path);
            hub.shared.keep_following(hub.shared.spawn(following));
        }
        hub
    }

    /// Limits the watched directories of each recursive watch. A larger tree is reported as absent, and sweeps check
    /// it.
    pub fn bound_trees(&self, share: usize) {
        self.shared.lock().tree_share = Some(share);
    }

    fn open(
        handle: Handle,
        sources: ExternalSources,
        send: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
        backend: fn(Sink) -> Box<dyn Backend>,
    ) -> Self {
        let (hub, hand) = Self::by_hand(handle, sources, send, (Arc::new(HostFileSystem), backend));
        match hand.0.spawn() {
            Ok(thread) => hub.shared.set_thread(thread),
            Err(error) => hub.shared.breaks(&format!("no thread to walk paths: {error}")),
        }
        hub
    }

    /// Creates a hub without a thread: the returned worker does all slow work. `ground` is the file system, and
    /// `backend` makes the source of its events.
    pub fn by_hand(
        handle: Handle,
        sources: ExternalSources,
        send: Box<dyn Fn(Vec<Signal>) + Send + Sync>,
        (ground, backend): (Arc<dyn FileSystem>, impl FnOnce(Sink) -> Box<dyn Backend>),
    ) -> (Self, SteppedWorker) {
        let shared = Arc::new(Shared::new(handle, sources, send));
        let weak = Arc::downgrade(&shared);
        let sink: Sink = Box::new(move |happenings| {
            weak.upgrade().is_some_and(|shared| shared.take_in(happenings))
        });
        let worker = Worker::new(Arc::clone(&shared), backend(sink).into(), ground);
        (Self { shared }, SteppedWorker(worker))
    }

    /// Watches these sources for a vertex, in place of its former ones. The result is `Established` or `Absent`.
    pub fn arm(&self, vertex: VertexId, sources: Vec<WatchSource>) {
        self.arm_all(vec![(vertex, sources)]);
    }

    /// Watches sources for many vertices with one lock and one wake-up; see [`WatchHub::arm`].
    pub fn arm_all(&self, all: Vec<(VertexId, Vec<WatchSource>)>) {
        let mut tasks = self.shared.tasks();
        let mut state = self.shared.lock();
        state.vertices.reserve(all.len());
        state.work.arms.reserve(all.len());
        for (vertex, sources) in all {
            state.muted.remove(&vertex);
            abort(tasks.remove(&vertex));
            state.displace(vertex);
            state.order(vertex, sources);
        }
        drop(state);
        drop(tasks);
        self.shared.wake.notify_one();
    }

    /// Stops watching for a vertex: no signal for it follows the return of this method.
    pub fn disarm(&self, vertex: VertexId) {
        abort(self.shared.tasks().remove(&vertex));
        let mut state = self.shared.lock();
        state.muted.remove(&vertex);
        state.displace(vertex);
        let work = !state.work.is_empty();
        drop(state);
        if work {
            self.shared.wake.notify_one();
        }
    }

    /// Suppresses the signals of a vertex until [`WatchHub::unmute`]: a check is due anyway.
    pub fn mute(&self, vertex: VertexId) {
        self.shared.lock().muted.insert(vertex);
    }

    /// Reports the signals of a vertex again after [`WatchHub::mute`].
    pub fn unmute(&self, vertex: VertexId) {
        self.shared.lock().muted.remove(&vertex);
    }

    /// Walks every path again, to find changes without an event.
    pub fn walk_all(&self) {
        self.shared.walk_all();
    }

    /// Retries failed watches now, ahead of their schedule.
    pub fn try_failed(&self) {
        self.shared.lock().work.again(Again::Failed);
        self.shared.wake.notify_one();
    }

    /// Returns the number of watches by source. A few thousand units are counted in microseconds.
    #[must_use]
    pub fn counts(&self) -> WatchCounts {
        let timers_and_commands = self.shared.tasks().len();
        let state = self.shared.lock();
        WatchCounts {
            directories: state.directories.len(),
            units: state.units.count(),
            timers_and_commands,
            overflows: state.overflows,
        }
    }

    /// Returns a counter that grows with each completed step. Waiting work and a constant counter mean that a file
    /// system hangs.
    pub fn progress(&self) -> u64 {
        self.shared.progress.load(Ordering::Relaxed)
    }

    /// Ends all watches and the hub's thread.
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
        // A thread in a hanging file system is left behind: the stop must not wait for it (E-16).
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
