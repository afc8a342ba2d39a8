//! The notifier: the observer of the driver, and the state of its reports.

use super::notification::{Notification, Observer};
use std::time::Duration;
use tokio::time::Instant;

/// The interval between two progress notifications.
const PROGRESS: Duration = Duration::from_millis(100);

/// The observer of the driver, and the state of its reports.
pub(in crate::driver) struct Notifier {
    observer: Box<dyn Observer>,
    /// The time of the next progress notification.
    progress_at: Instant,
    /// True if the first drift since convergence was found on a contended resource.
    pub(in crate::driver) contended_drift: bool,
}

impl Notifier {
    pub(in crate::driver) fn new(observer: Box<dyn Observer>) -> Self {
        Self { observer, progress_at: Instant::now() + PROGRESS, contended_drift: false }
    }

    /// Sends one notification.
    pub(in crate::driver) fn notify(&mut self, notification: &Notification<'_>) {
        self.observer.hear(notification);
    }

    /// Returns true if a session that changes nothing must predict an apply.
    pub(in crate::driver) fn wants_foresight(&self) -> bool {
        self.observer.wants_foresight()
    }

    /// Returns the time until which the loop waits at most for the next progress notification.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        self.observer.wants_progress().then(|| Instant::now() + PROGRESS)
    }

    /// Returns true if a progress notification is due, and schedules the next one.
    pub(in crate::driver) fn is_progress_due(&mut self, now: Instant) -> bool {
        let is_due = self.observer.wants_progress() && self.progress_at <= now;
        if is_due {
            self.progress_at = now + PROGRESS;
        }
        is_due
    }
}
