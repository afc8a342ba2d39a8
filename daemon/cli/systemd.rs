//! What systemd is told: ready, reloading, how it stands, that the loop is alive, stopping. Silent without systemd.

use crate::driver::{Answer, Audience, Inbox, Input, News, Pulse};
use sd_notify::NotifyState;
use std::time::Duration;
use steadfast_engine::Mode;

/// Tells systemd what changes of state mean for it.
#[derive(Debug, Default)]
pub(super) struct Notifier {
    status: String,
}

impl Notifier {
    /// One that has said nothing yet.
    #[must_use]
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn status(&mut self, status: String) {
        if self.status != status {
            notify(&[NotifyState::Status(&status)]);
            self.status = status;
        }
    }
}

impl Audience for Notifier {
    fn hear(&mut self, news: &News<'_>) {
        match news {
            // Ready only now: a graph runs.
            News::Loaded { graph, .. } => {
                notify(&[NotifyState::Ready]);
                self.status(format!("{graph}: loaded"));
            }
            // A reload that was refused is over, too: the old graph goes on.
            News::Refused(_) => notify(&[NotifyState::Ready]),
            News::Converged(counts) => {
                self.status(format!("as declared: {} resources", counts.total));
            }
            News::Failed { identity, .. } => self.status(format!("failed: {identity}")),
            News::Paused => self.status("paused".to_owned()),
            News::Resumed => self.status("running".to_owned()),
            _ => {}
        }
    }
}

/// A reload has begun.
pub(super) fn reloading() {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let usec = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1000;
    notify(&[NotifyState::Reloading, NotifyState::MonotonicUsec(usec)]);
}

/// The daemon is stopping.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "cannot tell systemd");
    }
}

/// Feeds the watchdog of systemd, if it asks for it, each time after a round trip through the driver and its engine.
pub(super) async fn feed_watchdog(inbox: Inbox<Input>) {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    let every = (limit / 3).max(Duration::from_millis(10));
    loop {
        let (told, answer) = tokio::sync::oneshot::channel::<Pulse>();
        let ping = Answer(Box::new(move |pulse| {
            // Nobody waits for it any more: the process is ending.
            told.send(pulse).unwrap_or_default();
        }));
        inbox.put(Input::Ping(ping));
        let Ok(pulse) = answer.await else { return };
        let status = status(&pulse);
        notify(&[NotifyState::Watchdog, NotifyState::Status(&status)]);
        tokio::time::sleep(every).await;
    }
}

/// How it stands, in one line with counts.
fn status(pulse: &Pulse) -> String {
    let c = pulse.counts;
    let what = match pulse.mode {
        Mode::Running if pulse.converged => "as declared",
        Mode::Running => "working",
        Mode::Draining | Mode::Pausing => "pausing",
        Mode::Paused => "paused",
        Mode::Stopping | Mode::Stopped => "stopping",
    };
    format!(
        "{what}: {} resources, {} as declared, {} waiting, {} running, {} failed, {} held, {} stuck, {} contended",
        c.total,
        c.settled,
        c.waiting + c.delayed,
        c.running,
        c.failed,
        c.held,
        c.stuck,
        c.contended
    )
}
