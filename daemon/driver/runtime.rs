//! The runtime of the driver: threads for blocking work, the watches, and the wall clock.
//!
//! Everything that the loop does not do itself comes from here, so that a test can replace all of it and decide the
//! order of events. [`Threads`] is the runtime of every daemon; `tests/simulation` has another one.

use super::runs::thread_pool::Pool;
use super::watches::command_source::HostLines;
use super::watches::systemd_source::HostUnits;
use super::{DriverEvent, Inbox};
use crate::watch::{ExternalSources, Signal, WatchHub};
use futures_util::FutureExt as _;
use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::{ExecutorKind, Host};

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
    fn run(&self, seat: ExecutorKind, blocks: bool, work: Job);

    /// Adds threads if queued work makes no progress. The driver calls this periodically.
    fn nudge(&self);

    /// Returns true if work is queued, so that [`Executor::nudge`] is useful.
    fn is_waiting(&self) -> bool;
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
    fn run(&self, seat: ExecutorKind, blocks: bool, work: Job) {
        match seat {
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
