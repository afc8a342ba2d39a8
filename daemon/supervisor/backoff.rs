//! The delays before a worker is started again.

use std::time::Duration;

/// All delays of a supervisor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delays {
    /// The delay before the first attempt after a failure.
    pub error: Duration,
    /// The factor by which the delay grows with each failure in a row; at least 1.
    pub factor: f64,
    /// The longest delay, jitter included; at least `error`.
    pub longest: Duration,
    /// The delay before a restart without a failure.
    pub bounce: Duration,
    /// A failure after a run of this duration is not counted as one in a row.
    pub reset: Duration,
    /// The longest time for which a start waits for inputs that are about to change, so that it need not be repeated.
    pub settle: Duration,
    /// The time in which an aborted worker must return before it is given up.
    pub cut_off: Duration,
    /// The number of failures within a duration that is fatal; none for no limit.
    pub budget: Option<(u32, Duration)>,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            error: Duration::from_secs(1),
            factor: 2.0,
            longest: Duration::from_mins(1),
            bounce: Duration::from_millis(10),
            reset: Duration::from_mins(5),
            settle: Duration::from_secs(2),
            cut_off: Duration::from_secs(1),
            budget: None,
        }
    }
}

impl Delays {
    /// Returns the first problem of the values, if any.
    pub(super) fn fault(&self) -> Option<&'static str> {
        if self.error.is_zero() {
            return Some("the delay after a failure must be greater than zero");
        }
        if self.factor.is_nan() || self.factor.is_infinite() || self.factor < 1.0 {
            return Some("the factor must be a number of at least 1");
        }
        if self.longest < self.error {
            return Some("the longest delay must be at least the delay after a failure");
        }
        if self.reset.is_zero() {
            return Some("the time after which failures are forgotten must be greater than zero");
        }
        if self.budget.is_some_and(|(failures, time)| failures == 0 || time.is_zero()) {
            return Some("a failure budget must be at least one, in a time greater than zero");
        }
        None
    }

    /// Returns the delay after `failures` failures in a row, up to a tenth longer by `jitter` (0 to 255).
    pub(super) fn after(&self, failures: u32, jitter: u8) -> Duration {
        let longest = self.longest.as_secs_f64();
        let mut wait = self.error.as_secs_f64();
        for _ in 1..failures {
            wait *= self.factor;
            if wait >= longest {
                // The delay grows no further, however many failures follow: nothing can overflow.
                break;
            }
        }
        let wait = wait * (1.0 + f64::from(jitter) / 2550.0);
        Duration::from_secs_f64(wait.min(longest)).max(self.error)
    }
}
