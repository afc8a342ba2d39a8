//! The runtime of the driver: threads for blocking work, the watches, and the wall clock.
//!
//! Everything that the loop does not do itself comes from here, so that a test can replace all of it and decide the
//! order of events. [`Threads`] is the runtime of every daemon; `tests/simulation` has another one. [`SessionRuntime`]
//! is the part of a driver that owns a runtime.

use super::runs::thread_pool::Pool;
use super::watches::command_source::HostLines;
use super::watches::systemd_source::HostUnits;
use super::{DriverEvent, Inbox};
use crate::watch::{ExternalSources, Signal, WatchHub};
use futures_util::FutureExt as _;
use std::any::Any;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_engine::Tick;
use steadfast_resources::{ExecutorKind, Host};
use tokio::time::Instant;
use tracing::Instrument as _;

/// The interval between two nudges of the executor while jobs are queued.
const NUDGE: Duration = Duration::from_millis(5);

/// A check or an apply; its result is an event for the inbox.
pub type Job = Pin<Box<dyn Future<Output = DriverEvent> + Send>>;

/// The callback that receives the signals of the watch hub.
pub type EventSink = Box<dyn Fn(Vec<Signal>) + Send + Sync>;

/// The threads, watches and clock that a driver uses.
pub trait Runtime: Send {
    /// Creates an executor that puts results into this inbox and uses at most `most` threads.
    fn hands(&self, most: usize, inbox: Inbox<DriverEvent>) -> Box<dyn Executor>;

    /// Creates the watch hub; its signals go to `ear`.
    fn hub(&self, host: &Host, ear: EventSink) -> WatchHub;

    /// Drops a large value on another thread, so that the loop does not wait.
    fn discard(&self, what: Box<dyn Any + Send>);

    /// Returns the wall-clock time since 1970: only for data that outlives the session, and for windows.
    fn wall(&self) -> Duration;
}

/// An executor of checks and applies.
pub trait Executor: Send {
    /// Runs a job soon. `blocks` means that the job waits for a device: then it does not queue behind another such job.
    fn run(&self, executor: ExecutorKind, blocks: bool, work: Job);

    /// Adds threads if queued work makes no progress. The driver calls this periodically.
    fn nudge(&self);

    /// Returns true if work is queued, so that [`Executor::nudge`] is useful.
    fn is_waiting(&self) -> bool;
}

/// The runtime of one driver, with its host, its executor, its inbox and its start.
pub(super) struct SessionRuntime {
    threads: Box<dyn Runtime>,
    executor: Box<dyn Executor>,
    inbox: Inbox<DriverEvent>,
    began: Instant,
    /// A token held by this driver and by each run that it has started.
    presence: Arc<()>,
    /// The host that runs check and change.
    pub(super) host: Host,
}

impl SessionRuntime {
    /// Starts the clock and an executor with at most `most` threads.
    pub(super) fn new(threads: Box<dyn Runtime>, most: usize, host: Host) -> Self {
        let inbox = Inbox::default();
        let executor = threads.hands(most, inbox.clone());
        Self { threads, executor, inbox, began: Instant::now(), presence: Arc::default(), host }
    }

    /// Creates the watch hub; its signals go to the inbox.
    pub(super) fn hub(&self) -> WatchHub {
        let inbox = self.inbox.clone();
        let sink = move |signals| inbox.put(DriverEvent::Watched(signals));
        self.threads.hub(&self.host, Box::new(sink))
    }

    /// Returns a handle to the inbox.
    pub(super) fn inbox(&self) -> Inbox<DriverEvent> {
        self.inbox.clone()
    }

    /// Returns the time since the start of the driver.
    pub(super) fn uptime(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the present time of the engine.
    pub(super) fn now(&self) -> Tick {
        Tick(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the instant of a time of the engine.
    pub(super) fn instant(&self, at: Tick) -> Instant {
        self.began + Duration::from_nanos(at.0)
    }

    /// Returns the time from now until a time of the engine; zero if that time is over.
    pub(super) fn until(&self, at: Tick) -> Duration {
        Duration::from_nanos(at.0.saturating_sub(self.now().0))
    }

    /// Returns the wall-clock time since 1970.
    pub(super) fn wall(&self) -> Duration {
        self.threads.wall()
    }

    /// Drops a large value on another thread.
    pub(super) fn discard(&self, what: Box<dyn Any + Send>) {
        self.threads.discard(what);
    }

    /// Starts a job of a run. The presence token lives until the job has ended.
    pub(super) fn start_run(
        &self,
        (executor, blocks): (ExecutorKind, bool),
        span: tracing::Span,
        work: impl Future<Output = DriverEvent> + Send + 'static,
    ) {
        let presence = self.presence();
        let work = async move {
            let event = work.await;
            drop(presence);
            event
        };
        self.executor.run(executor, blocks, Box::pin(work.instrument(span)));
    }

    /// Starts a job that belongs to no run and does not block.
    pub(super) fn start_job(
        &self,
        executor: ExecutorKind,
        work: impl Future<Output = DriverEvent> + Send + 'static,
    ) {
        self.executor.run(executor, false, Box::pin(work));
    }

    /// Adds threads if queued jobs make no progress.
    pub(super) fn nudge(&self) {
        self.executor.nudge();
    }

    /// Returns the time of the next [`SessionRuntime::nudge`], if jobs are queued.
    pub(super) fn nudge_due(&self) -> Option<Instant> {
        self.executor.is_waiting().then(|| Instant::now() + NUDGE)
    }

    /// Returns a token of the presence of this driver.
    pub(super) fn presence(&self) -> Arc<()> {
        Arc::clone(&self.presence)
    }

    /// Returns a weak token; an upgrade succeeds as long as this driver or any of its runs is alive.
    pub(super) fn weak_presence(&self) -> Weak<()> {
        Arc::downgrade(&self.presence)
    }

    /// Gives up the driver's own token at its end; active runs keep theirs.
    pub(super) fn drop_presence(&mut self) {
        self.presence = Arc::default();
    }
}

/// The runtime of every daemon: OS threads, tokio tasks and the real clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads;

impl Runtime for Threads {
    fn hands(&self, most: usize, inbox: Inbox<DriverEvent>) -> Box<dyn Executor> {
        let (handle, results) = (tokio::runtime::Handle::current(), inbox.clone());
        // `put_quietly` does not wake the loop: the pool does that when few jobs are left.
        let act = move |work: Job| results.put_quietly(handle.block_on(work));
        let pool = Pool::new(most, act, {
            let inbox = inbox.clone();
            move || inbox.wake()
        });
        Box::new(PoolAndTasks { pool, inbox })
    }

    fn hub(&self, host: &Host, ear: EventSink) -> WatchHub {
        let sources = ExternalSources {
            lines: Some(Arc::new(HostLines(host.clone()))),
            units: Some(Arc::new(HostUnits(host.clone()))),
        };
        WatchHub::with_sources(tokio::runtime::Handle::current(), sources, ear)
    }

    fn discard(&self, what: Box<dyn Any + Send>) {
        // If no thread can be started, the value is dropped on this one.
        let thread = std::thread::Builder::new().name("discard".to_owned());
        drop(thread.spawn(move || drop(what)));
    }

    fn wall(&self) -> Duration {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.unwrap_or_default()
    }
}

/// An executor that runs blocking work on a thread pool and all other work as tokio tasks.
struct PoolAndTasks {
    pool: Pool<Job>,
    inbox: Inbox<DriverEvent>,
}

impl Executor for PoolAndTasks {
    fn run(&self, executor: ExecutorKind, blocks: bool, work: Job) {
        match executor {
            ExecutorKind::Thread => self.pool.run(blocks, work),
            ExecutorKind::Command => {
                let inbox = self.inbox.clone();
                drop(tokio::spawn(work.map(move |input| inbox.put(input))));
            }
        }
    }

    fn nudge(&self) {
        self.pool.nudge();
    }

    fn is_waiting(&self) -> bool {
        self.pool.is_waiting()
    }
}
