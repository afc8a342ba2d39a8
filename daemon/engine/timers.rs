//! Deadlines of vertices: a table, and one question, *when next?*

use crate::ids::{Tick, VertexId};
use std::collections::BTreeSet;

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    /// Its limiter has a token again.
    Limit,
    /// A retry is due.
    Retry,
    /// A poll tick.
    Poll,
    /// The run in progress has lasted too long.
    Deadline,
    /// What is held back by a fight or the brake may go.
    Backoff,
    /// A fight has been quiet for long enough.
    Calm,
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

    /// Takes one that is due.
    pub(crate) fn pop_due(&mut self, now: Tick) -> Option<(Tick, VertexId, Timer)> {
        if self.next()? > now { None } else { self.0.pop_first() }
    }

    /// Replaces every moment, for comparison of states (see `ranked`).
    pub(crate) fn map(&mut self, f: impl Fn(Tick) -> Tick) {
        self.0 = self.0.iter().map(|(at, v, t)| (f(*at), *v, *t)).collect();
    }
}
