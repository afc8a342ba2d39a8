//! The sweep: a look at everything, spread over its interval, whatever events said (DESIGN.md 2.4); and a quicker one over those
//! for which there are no events (E-1: declared absent, so polled), and those whose trouble may pass without one.

use crate::driver::{Driver, Tuning};
use std::time::Duration;
use steadfast_engine::{Event, VertexId};
use tokio::time::Instant;

/// How often a part of the sweep is done.
const STEP: Duration = Duration::from_secs(1);

/// The duration of a round over all polled resources.
pub(in crate::driver) const UNWATCHED: Duration = Duration::from_secs(30);

/// Where the sweep stands.
#[derive(Debug)]
pub(crate) struct Sweep {
    interval: Option<Duration>,
    next: Option<Instant>,
    /// When this round began, and who is still to be looked at in it, last first.
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

    /// Those whose turn it is now.
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

    fn is_new_round(&self) -> bool {
        self.round.is_none()
    }
}

impl Driver {
    /// Changes settings of a driver that runs.
    pub(in crate::driver) fn tune(&mut self, Tuning { sweep, pause_limit, brake }: Tuning) {
        if self.settings.sweep != sweep {
            self.sweep = Sweep::new(sweep);
        }
        self.engine.set_brake(brake);
        let settings = &mut self.settings;
        (settings.sweep, settings.pause_limit, settings.brake) = (sweep, pause_limit, brake);
    }

    /// Looks at the part of the graph whose turn it is.
    pub(in crate::driver) fn sweep_some(&mut self, now: Instant) {
        if self.watches.next_look().is_some_and(|at| at <= now) {
            let polled = self.watches.polled();
            for id in self.watches.sweep.due(now, || polled).into_iter().rev() {
                self.turn(Event::Look(id));
            }
        }
        let table = &self.table;
        let begins = self.sweep.is_new_round();
        let due = self.sweep.due(now, || table.vertices().collect());
        if begins
            && !self.sweep.is_new_round()
            && let Some(hub) = &self.hub
        {
            hub.walk_all();
        }
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
