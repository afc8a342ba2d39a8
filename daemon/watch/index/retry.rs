//! Retries of failed watches: soon at first, then with growing waits, and a few at a time, since a reason that prevents
//! many watches (a system limit) mostly prevents all of them.

use super::route::RouteId;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The first wait before a retry; it doubles up to `LONGEST`.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// The number of routes tried at the start of a round.
const AT_ONCE: usize = 64;
/// The number of further routes tried for each success.
const MORE: usize = 2;

/// The routes whose last walk failed, and their retry schedule.
#[derive(Debug)]
pub(in crate::watch) struct Retry {
    failed: BTreeSet<RouteId>,
    /// The last route that was tried: a round continues after it.
    last_tried: RouteId,
    /// The number of routes left in this round.
    remaining: usize,
    wait: Duration,
    /// True while a task waits for the next retry.
    is_awaited: bool,
    /// The signal for a shorter wait.
    fresh: Arc<Notify>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            failed: BTreeSet::new(),
            last_tried: RouteId(0),
            remaining: 0,
            wait: FIRST,
            is_awaited: false,
            fresh: Arc::default(),
        }
    }
}

impl Retry {
    pub(in crate::watch) fn is_empty(&self) -> bool {
        self.failed.is_empty()
    }

    /// Notes the result of a walk. Returns true if the route had failed before and works now.
    pub(in crate::watch) fn note(&mut self, route: RouteId, fails: bool) -> bool {
        if !fails {
            return self.failed.remove(&route);
        }
        if self.failed.insert(route) {
            self.wait = FIRST;
            self.fresh.notify_one();
        }
        false
    }

    /// Starts a round; returns the first routes to try.
    pub(in crate::watch) fn begin(&mut self) -> Vec<RouteId> {
        self.remaining = self.failed.len();
        self.take(AT_ONCE)
    }

    /// Continues the round after a success; returns the next routes to try.
    pub(in crate::watch) fn go_on(&mut self) -> Vec<RouteId> {
        self.take(MORE)
    }

    fn take(&mut self, most: usize) -> Vec<RouteId> {
        let behind = (Bound::Excluded(self.last_tried), Bound::Unbounded);
        let before = (Bound::Unbounded, Bound::Included(self.last_tried));
        let all = self.failed.range(behind).chain(self.failed.range(before)).copied();
        let some: Vec<_> = all.take(most.min(self.remaining)).collect();
        self.remaining -= some.len();
        self.last_tried = some.last().copied().unwrap_or(self.last_tried);
        some
    }

    /// Returns the wait until the next retry; `None` if nothing has failed, or the hub `is_closed`: the task ends.
    pub(in crate::watch) fn next_try(
        &mut self,
        is_closed: bool,
    ) -> Option<(Duration, Arc<Notify>)> {
        if self.failed.is_empty() || is_closed {
            (self.is_awaited, self.wait) = (false, FIRST);
            return None;
        }
        Some((self.wait, Arc::clone(&self.fresh)))
    }

    /// Doubles the wait, up to the longest one.
    pub(in crate::watch) fn lengthen(&mut self) {
        self.wait = (self.wait * 2).min(LONGEST);
    }

    /// Returns true if a task must be started to wait for the next retry.
    pub(in crate::watch) fn is_to_be_awaited(&mut self) -> bool {
        !self.failed.is_empty() && !std::mem::replace(&mut self.is_awaited, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-6: a round tries a few failed routes, the next round others, and all of them once watches succeed.
    #[test]
    fn each_has_its_turn_and_success_brings_more() {
        let mut retry = Retry::default();
        for number in 1..=150 {
            assert!(!retry.note(RouteId(number), true));
        }
        let (first, second) = (retry.begin(), retry.begin());
        assert_eq!((first.len(), second.len()), (AT_ONCE, AT_ONCE));
        assert!(first.iter().all(|route| !second.contains(route)));
        let mut round = retry.begin();
        let mut tried = BTreeSet::new();
        while let Some(route) = round.pop() {
            assert!(tried.insert(route), "once in a round");
            assert!(retry.note(route, false), "it can be watched by now");
            round.extend(retry.go_on());
        }
        assert_eq!(tried.len(), 150);
        assert!(retry.is_empty() && retry.begin().is_empty());
    }
}
