//! Deadlines of vertices: a table ordered by time.

use crate::interface::ids::{Tick, VertexId};
use std::collections::BTreeSet;

/// The purpose of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    /// The limiter has a token again.
    Limit,
    /// A retry is due.
    Retry,
    /// A poll tick.
    Poll,
    /// The run in progress has lasted too long.
    Deadline,
    /// A vertex delayed by contention or the repair limit may run.
    Backoff,
    /// A contention has been quiet for long enough.
    ContentionEnd,
    /// The cancelled run should have returned by now.
    Return,
}

/// All deadlines of vertices, earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Timers(BTreeSet<(Tick, VertexId, Timer)>);

impl Timers {
    pub(crate) fn set(&mut self, at: Tick, vertex: VertexId, timer: Timer) {
        self.0.insert((at, vertex, timer));
    }

    pub(crate) fn clear(&mut self, at: Tick, vertex: VertexId, timer: Timer) {
        self.0.remove(&(at, vertex, timer));
    }

    pub(crate) fn next(&self) -> Option<Tick> {
        self.0.first().map(|(at, _, _)| *at)
    }

    /// Removes and returns a deadline that is due.
    pub(crate) fn pop_due(&mut self, now: Tick) -> Option<(Tick, VertexId, Timer)> {
        if self.next()? > now { None } else { self.0.pop_first() }
    }

    /// Maps every moment, for the comparison of states (see `ranked`).
    pub(crate) fn map(&mut self, f: impl Fn(Tick) -> Tick) {
        self.0 = self.0.iter().map(|(at, v, t)| (f(*at), *v, *t)).collect();
    }
}
