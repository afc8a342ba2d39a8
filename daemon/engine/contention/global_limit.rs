//! The repair limit (E-20) suspends repeated repairs of all vertices if too many repairs are undone. Watches continue,
//! and the suspension is reported. During it each vertex still has [`FREE`] repairs within a minute: one user who
//! undoes many repairs delays no others.
//!
//! Only repeated repairs count: those of a vertex that was already repaired within the last minute. Repairing a whole
//! tree once is normal work; repairing it again and again is not.

use crate::engine::Engine;
use crate::interface::action::Notice;
use crate::interface::ids::{Tick, VertexId};
use std::collections::VecDeque;
use std::time::Duration;

/// The period over which repairs are counted, and the time for which a suspension lasts.
pub(crate) const MINUTE: Duration = Duration::from_mins(1);

/// The number of repairs of one vertex within a minute that a suspension does not delay.
const FREE: usize = 3;

/// The repairs of the last minute, and the state of the suspension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RepairLimiter {
    /// The largest number of repeated repairs in a minute; none disables the limit.
    pub(crate) limit: Option<u32>,
    /// The time and vertex of each repair, and if it was a repeated one.
    pub(crate) recent: VecDeque<(Tick, VertexId, bool)>,
    repeated: u32,
    /// The end of the suspension, before which no vertex has more than [`FREE`] repairs within a minute.
    pub(crate) until: Option<Tick>,
}

impl Default for RepairLimiter {
    fn default() -> Self {
        Self { limit: Some(600), recent: VecDeque::new(), repeated: 0, until: None }
    }
}

impl RepairLimiter {
    /// Maps every moment in the past, for the comparison of states (see `ranked`).
    pub(crate) fn map_past(&mut self, f: impl Fn(Tick) -> Tick) {
        for (at, _, _) in &mut self.recent {
            *at = f(*at);
        }
        // Entries of the same moment are forgotten together, so their order does not matter.
        self.recent.make_contiguous().sort_unstable();
    }
}

impl Engine {
    /// Returns the engine with another limit on repeated repairs in a minute; none disables the limit. The default is
    /// 600.
    #[must_use]
    pub fn with_repair_limit(mut self, limit: Option<u32>) -> Self {
        self.repair_limiter.limit = limit;
        self
    }

    /// Changes the limit on repeated repairs in a minute; none disables the limit. An active suspension continues to
    /// its end.
    pub fn set_repair_limit(&mut self, limit: Option<u32>) {
        self.repair_limiter.limit = limit;
    }

    /// Returns the time until which no vertex is repaired more than three times within a minute, if
    /// repairs are suspended.
    #[must_use]
    pub fn repairs_suspended_until(&self) -> Option<Tick> {
        self.repair_limiter.until
    }

    /// Returns the time until which the repair limit delays the repair of a vertex: a minute after the first of its
    /// last [`FREE`] repairs, and at most the end of the suspension.
    pub(crate) fn suspended_until(&self, id: VertexId) -> Option<Tick> {
        let until = self.repair_limiter.until?;
        let first = self.contentions.get(&id)?.rounds.iter().nth_back(FREE - 1)?.at;
        Some(first.after(MINUTE).min(until)).filter(|at| *at > self.now)
    }

    /// Counts a repair. Repairs without a successor within the minute are forgotten.
    pub(crate) fn count_repair(&mut self, id: VertexId) {
        let now = self.now;
        while let Some((at, other, again)) = self.repair_limiter.recent.front().copied() {
            if at.after(MINUTE) > now {
                break;
            }
            self.repair_limiter.recent.pop_front();
            self.repair_limiter.repeated -= u32::from(again);
            self.forget_old_rounds(other);
        }
        let last = self.contentions.get(&id).and_then(|contention| contention.rounds.back());
        let again = last.is_some_and(|round| round.at.after(MINUTE) > now);
        self.repair_limiter.recent.push_back((now, id, again));
        self.repair_limiter.repeated += u32::from(again);
        let repairs = self.repair_limiter.repeated;
        if self.repair_limiter.limit.is_none_or(|limit| repairs <= limit) {
            return;
        }
        let until = now.after(MINUTE);
        let newly = self.repair_limiter.until.replace(until).is_none();
        self.repair_limiter.recent.clear();
        self.repair_limiter.repeated = 0;
        if newly {
            self.notify(Notice::RepairsSuspended { repairs, until });
        }
    }

    fn forget_old_rounds(&mut self, id: VertexId) {
        let now = self.now;
        let old = self.contentions.get(&id).is_some_and(|contention| {
            contention.since.is_none()
                && contention.rounds.back().is_none_or(|round| round.at.after(MINUTE) <= now)
        });
        if old {
            self.contentions.remove(&id);
        }
    }

    pub(crate) fn resume_repairs(&mut self) {
        if self.repair_limiter.until.is_some_and(|until| until <= self.now) {
            self.repair_limiter.until = None;
            self.notify(Notice::RepairsResumed);
        }
    }
}
