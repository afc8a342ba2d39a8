//! What could not be watched is tried again by itself: soon at first, then ever more seldom, and a few at a time, since what keeps
//! many from being watched (a limit of the system) mostly keeps all of them.

use super::hub::Shared;
use super::index::{Again, RouteId, WatchIndex};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The wait before another try: it doubles from the first to the last.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// So many are tried to begin with.
const AT_ONCE: usize = 64;
/// For each that can be watched by now, so many more are tried.
const MORE: usize = 2;

/// The routes that cannot be followed to their ends.
#[derive(Debug)]
pub(super) struct Retry {
    failed: BTreeSet<RouteId>,
    /// The one that was tried last: the others come first.
    last_tried: RouteId,
    /// How many of this round are left to be tried.
    remaining: usize,
    wait: Duration,
    /// A task waits for the time to try again.
    is_awaited: bool,
    /// Told when the wait is shorter than it was.
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
    pub(super) fn is_empty(&self) -> bool {
        self.failed.is_empty()
    }

    /// How a route stands. True where it could not be followed before, and can be now.
    pub(super) fn note(&mut self, route: RouteId, fails: bool) -> bool {
        if !fails {
            return self.failed.remove(&route);
        }
        if self.failed.insert(route) {
            self.wait = FIRST;
            self.fresh.notify_one();
        }
        false
    }

    /// Those to be tried first.
    pub(super) fn begin(&mut self) -> Vec<RouteId> {
        self.remaining = self.failed.len();
        self.take(AT_ONCE)
    }

    /// Those to be tried since one is as it should be.
    pub(super) fn go_on(&mut self) -> Vec<RouteId> {
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

    /// Whether somebody has to begin to wait for the time to try again.
    pub(super) fn is_to_be_awaited(&mut self) -> bool {
        !self.failed.is_empty() && !std::mem::replace(&mut self.is_awaited, true)
    }
}

impl WatchIndex {
    /// When to try again; none where there is nothing to try.
    fn next_try(&mut self) -> Option<(Duration, Arc<Notify>)> {
        let retry = &mut self.retry;
        if retry.failed.is_empty() || self.work.closed {
            (retry.is_awaited, retry.wait) = (false, FIRST);
            return None;
        }
        Some((retry.wait, Arc::clone(&retry.fresh)))
    }
}

/// Has the hub try again, until nothing is left that fails.
pub(super) async fn try_again(shared: Arc<Shared>) {
    let mut due = None;
    loop {
        let next = shared.lock().next_try();
        let Some((wait, fresh)) = next else { return };
        // What fails anew brings the next try on, and never puts it off.
        let soon = Instant::now() + wait;
        let at = due.map_or(soon, |due: Instant| due.min(soon));
        due = Some(at);
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(at) => due = None,
            () = fresh.notified() => continue,
        }
        let mut state = shared.lock();
        state.retry.wait = (state.retry.wait * 2).min(LONGEST);
        state.work.again(Again::Failed);
        drop(state);
        shared.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-6: of many that cannot be watched a few are tried, others the next time; and all, as soon as they can be.
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
