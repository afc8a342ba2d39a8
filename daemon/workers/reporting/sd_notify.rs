//! Notifications to systemd: ready, reloading, status, watchdog, stopping. Nothing is sent without systemd.

use crate::driver::{Caveat, DriverHealth, Notification, Observer};
use sd_notify::NotifyState;
use std::sync::OnceLock;
use std::sync::mpsc::{self, SyncSender};
use steadfast_engine::Mode;

/// An observer that reports changes of state to systemd.
#[derive(Debug, Default)]
pub struct Notifier {
    status: String,
    /// The status of a converged host, while it is converged.
    converged: Option<String>,
    /// The daemon makes no changes.
    is_read_only: bool,
}

impl Notifier {
    /// Creates an observer that has sent nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn status(&mut self, status: String) {
        let status = if self.is_read_only { READ_ONLY.to_owned() } else { status };
        if self.status != status {
            say(Said::Status(status.clone()));
            self.status = status;
        }
    }
}

impl Observer for Notifier {
    fn hear(&mut self, news: &Notification<'_>) {
        match news {
            // The daemon is ready only when a graph runs.
            Notification::Loaded { graph, .. } => {
                say(Said::Ready);
                self.converged = None;
                self.status(format!("{graph}: loaded"));
            }
            // A rejected reload has ended, and the previous graph is still running.
            Notification::Rejected(_) => {
                say(Said::Ready);
                self.status(REJECTED.to_owned());
            }
            Notification::Converged { counts, .. } => {
                let converged = format!("converged: {} resources", counts.total);
                self.status(converged.clone());
                self.converged = Some(converged);
            }
            Notification::ReadOnly(_) => {
                self.is_read_only = true;
                self.status(String::new());
            }
            Notification::Diverged { .. } => self.converged = None,
            Notification::Failed { identity, .. } => self.status(format!("failed: {identity}")),
            Notification::Paused { .. } => {
                self.converged = None;
                self.status("paused".to_owned());
            }
            // The convergence may have been reported a moment before.
            Notification::Resumed => {
                self.status(self.converged.clone().unwrap_or_else(|| "working".to_owned()));
            }
            _ => {}
        }
    }
}

/// The status after a rejected reload.
const REJECTED: &str =
    "the graph file was rejected; the previous graph is still running, see `steadfast status`";

/// The status of a daemon that makes no changes.
const READ_ONLY: &str = "read-only, see `steadfast status`";

/// A notification to systemd.
#[derive(Debug)]
enum Said {
    Ready,
    Status(String),
    /// The begin of a reload, with the monotonic clock in microseconds.
    Reloading(i128),
    Alive(String),
    Stopping,
}

/// The number of notifications that wait while systemd does not read; further ones are dropped.
const WAITING: usize = 64;

/// The channel to the thread that notifies systemd, so that a hanging systemd blocks no worker. `None` without systemd.
static WAY: OnceLock<Option<SyncSender<Said>>> = OnceLock::new();

fn say(what: Said) {
    let way = WAY.get_or_init(|| {
        std::env::var_os("NOTIFY_SOCKET")?;
        let (way, said) = mpsc::sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("systemd".to_owned());
        thread.spawn(move || said.into_iter().for_each(|what| send(&what))).ok()?;
        Some(way)
    });
    if way.as_ref().is_some_and(|way| way.try_send(what).is_err()) {
        tracing::debug!("systemd does not accept notifications");
    }
}

fn send(what: &Said) {
    let told = match what {
        Said::Ready => sd_notify::notify(&[NotifyState::Ready]),
        Said::Status(status) => sd_notify::notify(&[NotifyState::Status(status)]),
        Said::Reloading(at) => {
            sd_notify::notify(&[NotifyState::Reloading, NotifyState::MonotonicUsec(*at)])
        }
        Said::Alive(status) => {
            sd_notify::notify(&[NotifyState::Watchdog, NotifyState::Status(status)])
        }
        Said::Stopping => sd_notify::notify(&[NotifyState::Stopping]),
    };
    if let Err(error) = told {
        tracing::debug!(%error, "cannot notify systemd");
    }
}

/// Notifies systemd that a reload has begun.
pub(in crate::workers) fn reloading() {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    say(Said::Reloading(i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1000));
}

/// Notifies systemd that the daemon is stopping.
pub(in crate::workers) fn stopping() {
    say(Said::Stopping);
}

/// Notifies systemd that the daemon is alive, with its status.
pub(in crate::workers) fn alive(status: &str) {
    say(Said::Alive(status.to_owned()));
}

/// Returns the status in one line with counts.
pub(in crate::workers) fn status(pulse: &DriverHealth) -> String {
    let c = pulse.counts;
    let what = match (pulse.mode, pulse.caveat) {
        (Mode::Running, Some(Caveat::ReadOnly)) => READ_ONLY,
        (Mode::Running, Some(Caveat::Starting)) => "starting: no graph is loaded yet",
        (Mode::Running, Some(Caveat::GraphRejected)) => REJECTED,
        (Mode::Running, None) if pulse.converged => "converged",
        (Mode::Running, None) => "working",
        (Mode::Draining | Mode::Pausing, _) => "pausing",
        (Mode::Paused, _) => "paused",
        (Mode::Stopping | Mode::Stopped, _) => "stopping",
    };
    format!(
        "{what}: {} resources, {} converged, {} waiting, {} running, {} failed, {} held, {} stuck, {} contended",
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
