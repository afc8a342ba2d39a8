//! The sources that are no paths: timers, and commands whose lines are events.

use super::index::Running;
use super::{Shared, Signal};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::host::Command;
use tokio::time::{Instant, MissedTickBehavior};

/// The wait before a command that ended is started again: it doubles from the first to the last.
const AGAIN: Duration = Duration::from_secs(1);
const AT_MOST: Duration = Duration::from_mins(1);

/// A future in a box.
pub type SourceFuture<'p, T> = Pin<Box<dyn Future<Output = T> + Send + 'p>>;

/// Starts commands to listen to.
pub trait LineSource: Send + Sync {
    /// Starts one; it runs until the stream is dropped.
    fn open<'s>(
        &'s self,
        command: &'s Command,
    ) -> SourceFuture<'s, Result<Box<dyn LineStream>, String>>;
}

/// A command that is listened to.
pub trait LineStream: Send {
    /// True for each line; false when there will be none any more.
    fn next(&mut self) -> SourceFuture<'_, bool>;

    /// How the command ended.
    fn ended(self: Box<Self>) -> SourceFuture<'static, String>;
}

/// Which arming of which vertex a task belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceOwner {
    pub(super) vertex: VertexId,
    pub(super) serial: u64,
}

/// An event at each interval, on the monotonic clock; intervals that were missed are one event.
pub(super) async fn tick(shared: Arc<Shared>, owner: SourceOwner, interval: Duration) {
    let interval = interval.max(Duration::from_millis(1));
    let Some(first) = Instant::now().checked_add(interval) else { return };
    let mut ticks = tokio::time::interval_at(first, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        shared.tell_for(owner, Signal::Changed);
    }
}

/// An event for each line; the command is started again when it ends.
pub(super) async fn listen(
    shared: Arc<Shared>,
    owner: SourceOwner,
    index: usize,
    (source, command): (Arc<dyn LineSource>, Command),
) {
    let mut wait = AGAIN;
    loop {
        let began = Instant::now();
        let why = match source.open(&command).await {
            Ok(mut stream) => {
                shared.set_running(owner, index, Running::Yes);
                while stream.next().await {
                    shared.tell_for(owner, Signal::Changed);
                }
                stream.ended().await
            }
            Err(why) => why,
        };
        if began.elapsed() > wait {
            wait = AGAIN;
        }
        // What it would have said meanwhile is not known.
        shared.set_running(
            owner,
            index,
            Running::Failed(format!("the watch command ended: {why}")),
        );
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(AT_MOST);
    }
}
