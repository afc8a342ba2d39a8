//! Restarts of a service by systemd itself: many of them within a short time are a failure, although it runs in between.

use crate::escape::short;
use crate::failure::Failure;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many restarts by systemd within [`WINDOW`] are flapping.
const MANY: u32 = 3;
/// A service without so many restarts for so long is quiet.
const WINDOW: Duration = Duration::from_mins(2);
/// The most looks that are remembered: with so many, a service has been restarted more than [`MANY`] times.
const LOOKS: usize = 64;

/// The restart counter at the looks of the last minutes, oldest first.
#[derive(Debug, Default)]
pub(super) struct Restarts(Mutex<VecDeque<(Instant, u32)>>);

impl Restarts {
    /// Notes the counter, and fails where it has grown too much. A counter that has become smaller was begun anew by a start.
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
            // Of looks that find the same, the first and the last say all.
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

    /// F4: it recovers when the counter is quiet, and many looks do not hide a slow loop.
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
