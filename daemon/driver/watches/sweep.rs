//! Sweeps: a check of every resource, spread over an interval, independent of events (DESIGN.md 2.4); and a faster
//! sweep over vertices without a working watch (E-1) or with a failure that may pass without an event.

use crate::driver::{Driver, Tuning};
use std::time::Duration;
use steadfast_engine::{Event, VertexId};
use tokio::time::Instant;

/// The interval between two parts of a sweep.
const STEP: Duration = Duration::from_secs(1);

/// The duration of a sweep over all polled resources.
pub(in crate::driver) const UNWATCHED: Duration = Duration::from_secs(30);

/// The progress of a sweep.
#[derive(Debug)]
pub(crate) struct Sweep {
    interval: Option<Duration>,
    next: Option<Instant>,
    /// The start of the current round, its size, and the remaining vertices in reverse order.
    round: Option<(Instant, usize, Vec<VertexId>)>,
}

impl Sweep {
    pub(crate) fn new(interval: Option<Duration>) -> Self {
        let next = interval.map(|every| Instant::now() + STEP.min(every));
        Self { interval, next, round: None }
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Returns the vertices that are due now.
    pub(in crate::driver) fn due(
        &mut self,
        now: Instant,
        all: impl FnOnce() -> Vec<VertexId>,
    ) -> Vec<VertexId> {
        let (Some(interval), Some(next)) = (self.interval, self.next) else { return Vec::new() };
        if next > now {
            return Vec::new();
        }
        let (began, total, mut left) = self.round.take().unwrap_or_else(|| {
            let mut all = all();
            all.reverse();
            (now, all.len(), all)
        });
        let share = now.duration_since(began).as_secs_f64() / interval.as_secs_f64().max(0.001);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a count, clamped to it"
        )]
        let keep = (total as f64 * (1.0 - share.clamp(0.0, 1.0))) as usize;
        let due = left.split_off(keep.min(left.len()));
        let over = left.is_empty() && share >= 1.0;
        self.round = (!over).then_some((began, total, left));
        self.next = Some(if over { now } else { now + STEP.min(interval) });
        due
    }

    pub(super) fn is_new_round(&self) -> bool {
        self.round.is_none()
    }
}

impl Driver {
    /// Changes the settings of a running driver.
    pub(in crate::driver) fn tune(&mut self, Tuning { sweep, pause_limit, repair_limit }: Tuning) {
        if self.settings.sweep != sweep {
            self.watches.set_sweep(sweep);
        }
        self.engine.set_repair_limit(repair_limit);
        let settings = &mut self.settings;
        (settings.sweep, settings.pause_limit, settings.repair_limit) =
            (sweep, pause_limit, repair_limit);
    }

    /// Checks the vertices that are due in the sweeps.
    pub(in crate::driver) fn sweep_some(&mut self, now: Instant) {
        for id in self.watches.polled_now(now).into_iter().rev() {
            self.turn(Event::Look(id));
        }
        let graph = &self.graph;
        let due = self.watches.swept_now(now, || graph.vertices().collect());
        for id in due.into_iter().rev() {
            self.turn(Event::Look(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_reaches_everyone_once_and_spreads_them() {
        let mut sweep = Sweep::new(Some(Duration::from_secs(10)));
        let start = Instant::now();
        let all = || (0..100).map(VertexId).collect::<Vec<_>>();
        let mut seen = Vec::new();
        let mut most = 0;
        for second in 1..=11 {
            let due = sweep.due(start + Duration::from_secs(second), all);
            most = most.max(due.len());
            seen.extend(due);
        }
        seen.sort_unstable();
        assert_eq!(seen, all());
        assert!(most <= 20, "spread over the interval: at most {most} at once");
    }
}
