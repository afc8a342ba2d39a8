//! What systemd is told: ready, reloading, how it stands, that the loop is alive, stopping. Silent without systemd.

use crate::driver::{Audience, News, Pulse};
use sd_notify::NotifyState;
use steadfast_engine::Mode;

/// Tells systemd what changes of state mean for it.
#[derive(Debug, Default)]
pub struct Notifier {
    status: String,
}

impl Notifier {
    /// One that has said nothing yet.
    #[must_use]
    pub fn new() -> Self {
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

/// The daemon is alive, and this is how it stands.
pub(super) fn alive(status: &str) {
    notify(&[NotifyState::Watchdog, NotifyState::Status(status)]);
}

/// How it stands, in one line with counts.
pub(super) fn status(pulse: &Pulse) -> String {
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
