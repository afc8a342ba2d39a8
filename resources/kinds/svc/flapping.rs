//! Detection of flapping: many restarts of a service by systemd within a short time are a failure, even if
//! the service runs in between.

use crate::failure::Failure;
use crate::secrets::escape::short;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The number of restarts within [`WINDOW`] that counts as flapping.
const MANY: u32 = 3;
/// The window of the count; a service without so many restarts in the window is quiet.
const WINDOW: Duration = Duration::from_mins(2);
/// The limit of stored samples: so many distinct samples mean more than [`MANY`] restarts.
const LOOKS: usize = 64;

/// The samples of the restart counter in the window, oldest first.
#[derive(Debug, Default)]
pub(super) struct Restarts(Mutex<VecDeque<(Instant, u32)>>);

impl Restarts {
    /// Stores a sample of the counter, and fails if the counter has grown too much. A smaller counter means that
    /// a new start has reset it.
    pub(super) fn judge(&self, unit: &str, count: u32, now: Instant) -> Result<(), Failure> {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.back().is_some_and(|(_, last)| *last > count) {
            looks.clear();
        }
        while looks.front().is_some_and(|(at, _)| now.duration_since(*at) > WINDOW) {
            looks.pop_front();
        }
        let length = looks.len();
        let is_same = length > 1 && looks.range(length - 2..).all(|(_, last)| *last == count);
        if is_same {
            // The first and the last of several equal samples are enough.
            looks.pop_back();
        } else if length == LOOKS {
            looks.pop_front();
        }
        looks.push_back((now, count));
        let Some((since, first)) = looks.front().copied() else { return Ok(()) };
        let restarts = count.saturating_sub(first);
        if restarts < MANY {
            return Ok(());
        }
        let (unit, seconds) = (short(unit, 40), now.duration_since(since).as_secs().max(1));
        let what =
            format!("flapping: systemd has restarted {unit} {restarts} times within {seconds} s");
        let hint = format!(
            "see `journalctl -u {unit}` for the reason; the resource recovers after {} s with fewer than {MANY} restarts",
            WINDOW.as_secs()
        );
        Err(Failure::new(what).hint(hint).passing())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F4: a service recovers when its counter is quiet, and frequent samples do not hide a slow loop.
    #[test]
    fn a_quiet_service_is_well_again() {
        let (restarts, start) = (Restarts::default(), Instant::now());
        let judge = |count, half_seconds: u32| {
            restarts.judge("a.service", count, start + Duration::from_millis(500) * half_seconds)
        };
        for count in 0..3 {
            judge(count, 0).expect("few");
        }
        let told = judge(5, 2).expect_err("many");
        assert!(told.passes, "no event says that it is quiet");
        judge(5, 122).expect_err("not quiet for long enough");
        judge(5, 243).expect("quiet");
        for look in 300..1300 {
            judge(7, look).expect("few");
        }
        for look in 0..400 {
            let told = judge(7 + look / 60, 1300 + look);
            assert_eq!(told.is_err(), look >= 180, "look {look}");
        }
    }
}
