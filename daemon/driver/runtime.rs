//! What the loop stands on: threads for what blocks, the watches, and the clock of the wall.
//!
//! Everything of the driver that is not its own turn comes from here, so that a test may take the place of all of it and decide
//! what happens when. [`Threads`] is the machinery of every daemon; the other one lives in `tests/simulation`.

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

/// A check or an apply; what comes of it is for the inbox.
pub type Job = Pin<Box<dyn Future<Output = DriverEvent> + Send>>;

/// Takes what the hub has to tell.
pub type EventSink = Box<dyn Fn(Vec<Signal>) + Send + Sync>;

/// What a driver runs on.
pub trait Runtime: Send {
    /// Those who do the work, at most so many of them on threads; they put what comes of it into this inbox.
    fn hands(&self, most: usize, inbox: Inbox<DriverEvent>) -> Box<dyn Executor>;

    /// Where events come from.
    fn hub(&self, host: &Host, ear: EventSink) -> WatchHub;

    /// Drops what takes a while to drop, so that nobody waits for it.
    fn discard(&self, what: Box<dyn Any + Send>);

    /// The clock on the wall, since 1970: only for what is kept across restarts, and for windows.
    fn wall(&self) -> Duration;
}

/// Those who do the work.
pub trait Executor: Send {
    /// Does it soon. `blocks` says that it will wait for a device: it then does not wait for another's end.
    fn run(&self, seat: ExecutorKind, blocks: bool, work: Job);

    /// Looks whether work stands still, and adds hands then. Called once in a while.
    fn nudge(&self);

    /// Whether work is queued: then it is worth to nudge.
    fn is_waiting(&self) -> bool;
}

/// The machinery of every daemon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads;

impl Runtime for Threads {
    fn hands(&self, most: usize, inbox: Inbox<DriverEvent>) -> Box<dyn Executor> {
        let (handle, results) = (tokio::runtime::Handle::current(), inbox.clone());
        // A result wakes nobody by itself: the pool does that when few jobs are left.
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
        // Where no thread can be started, this one drops it.
        let thread = std::thread::Builder::new().name("discard".to_owned());
        drop(thread.spawn(move || drop(what)));
    }

    fn wall(&self) -> Duration {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.unwrap_or_default()
    }
}

/// What blocks goes to threads, all else are tasks.
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
