//! Event sources besides files and units: timers, and commands whose output lines are events.

use crate::watch::index::{Running, SourceOwner};
use crate::watch::shared::Shared;
use crate::watch::signal::Signal;
use crate::watch::sources::{LineSource, LineStream};
use futures_util::FutureExt as _;
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::host::Command;
use tokio::time::{Instant, MissedTickBehavior};

/// The first wait before a command that ended is restarted; it doubles up to `AT_MOST`.
const AGAIN: Duration = Duration::from_secs(1);
const AT_MOST: Duration = Duration::from_mins(1);

/// The delay after the first event of a command; it doubles up to `AT_MOST` while lines come during the delay.
const FIRST_DELAY: Duration = Duration::from_millis(50);

/// The number of lines that one event stands for, at most.
const MOST_DROPPED: usize = 10_000;

/// Reports an event at each interval of the monotonic clock; missed intervals make one event.
pub(in crate::watch) async fn tick(shared: Arc<Shared>, owner: SourceOwner, interval: Duration) {
    let interval = interval.max(Duration::from_millis(1));
    let Some(first) = Instant::now().checked_add(interval) else { return };
    let mut ticks = tokio::time::interval_at(first, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        shared.signal_source(owner, Signal::Changed);
    }
}

/// The delay between the events of one command. It doubles while the command prints without a pause.
#[derive(Debug, Default)]
struct Pace {
    delay: Duration,
    /// The end of the last delay.
    rested: Option<Instant>,
}

impl Pace {
    /// Waits after an event, without reading: a command that prints meanwhile has to wait, too.
    async fn rest(&mut self) {
        let was_quiet = self.rested.is_none_or(|rested| rested.elapsed() >= self.delay);
        self.delay = if was_quiet { FIRST_DELAY } else { (self.delay * 2).min(AT_MOST) };
        tokio::time::sleep(self.delay).await;
        self.rested = Some(Instant::now());
    }
}

/// Drops the lines that wait already: they make one event with the line before.
fn drop_waiting(stream: &mut dyn LineStream) {
    for _ in 0..MOST_DROPPED {
        if stream.next().now_or_never() != Some(true) {
            return;
        }
    }
}

/// Reports an event for the lines of a command, and restarts the command when it ends. Events of a command that prints
/// without a pause have doubling delays.
pub(in crate::watch) async fn listen(
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
                let mut pace = Pace::default();
                while stream.next().await {
                    drop_waiting(&mut *stream);
                    shared.signal_source(owner, Signal::Changed);
                    pace.rest().await;
                }
                stream.ended().await
            }
            Err(error) => error.0,
        };
        if began.elapsed() > wait {
            wait = AGAIN;
        }
        // Lines may be missed until the restart.
        shared.set_running(
            owner,
            index,
            Running::Failed(format!("the watch command ended: {why}")),
        );
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(AT_MOST);
    }
}
