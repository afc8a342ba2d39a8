//! The vertices that are polled: those that cannot be watched, those with a source that has no events, and those with a
//! failure that may pass without an event.

use super::state::{ANSWER, WatchStates};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::{CheckResult, Outcome};
use tokio::time::Instant;

/// The vertices that are polled, with the reasons.
#[derive(Debug, Default)]
pub(in crate::driver) struct Polled {
    /// Vertices that cannot be watched.
    unwatched: BTreeSet<VertexId>,
    /// Vertices with a source that has no events.
    without_events: BTreeSet<VertexId>,
    /// Vertices with a failure that may pass without an event.
    passing: BTreeSet<VertexId>,
    /// Vertices whose apply failed for a full or read-only file system, or for a lack of descriptors.
    exhausted: Exhausted,
}

/// The time within which repeated losses count as one: a bus that restarts comes and goes.
const ONE_LOSS: Duration = Duration::from_secs(10);

/// The number of exhausted vertices that are tried in one sweep; a success frees all others.
const PROBES: usize = 16;

/// Vertices in the order of their last failures.
#[derive(Debug, Default)]
struct Exhausted {
    order: BTreeMap<u64, VertexId>,
    numbers: HashMap<VertexId, u64>,
    last: u64,
}

impl Exhausted {
    fn put(&mut self, id: VertexId) {
        self.remove(id);
        self.last += 1;
        self.order.insert(self.last, id);
        self.numbers.insert(id, self.last);
    }

    /// Removes a vertex; returns true if it was there.
    fn remove(&mut self, id: VertexId) -> bool {
        self.numbers.remove(&id).and_then(|number| self.order.remove(&number)).is_some()
    }

    /// Returns the vertices to try next: those that failed least recently.
    fn probes(&self) -> impl Iterator<Item = VertexId> {
        self.order.values().take(PROBES).copied()
    }

    fn take_all(&mut self) -> Vec<VertexId> {
        self.numbers.clear();
        std::mem::take(&mut self.order).into_values().collect()
    }
}

impl WatchStates {
    /// Polls a vertex whose watch failed. Returns true if the failure must be reported: a closed watch is not, and
    /// neither is a repeated loss.
    pub(in crate::driver) fn poll_instead_of_watch(&mut self, id: VertexId, now: Instant) -> bool {
        self.asked.remove(&id);
        if !self.open.contains(&id) || !self.polled.poll_unwatched(id) {
            return false;
        }
        let before = self.loss_reported.get(&id);
        let is_news = before.is_none_or(|before| *before + ONE_LOSS <= now);
        if is_news {
            self.loss_reported.insert(id, now);
        }
        is_news
    }

    /// Returns the requested watches if the hub has made no progress for too long.
    pub(in crate::driver) fn late(&mut self, now: Instant, progress: u64) -> Vec<VertexId> {
        if self.asked.is_empty() {
            return Vec::new();
        }
        if self.progress.0 != progress {
            self.progress = (progress, now);
        }
        let late = self.progress.1 + ANSWER <= now;
        if late { self.asked.iter().copied().collect() } else { Vec::new() }
    }
}

impl Polled {
    /// Returns the vertices to poll now.
    pub(in crate::driver) fn all(&self) -> Vec<VertexId> {
        let mut polled: BTreeSet<_> = self.unwatched.union(&self.passing).copied().collect();
        polled.extend(&self.without_events);
        polled.extend(self.exhausted.probes());
        polled.into_iter().collect()
    }

    /// Returns true if no vertex is polled.
    pub(in crate::driver) fn is_empty(&self) -> bool {
        self.unwatched.is_empty()
            && self.passing.is_empty()
            && self.without_events.is_empty()
            && self.exhausted.order.is_empty()
    }

    /// Polls a vertex that cannot be watched. Returns false if this is known already.
    pub(super) fn poll_unwatched(&mut self, id: VertexId) -> bool {
        self.unwatched.insert(id)
    }

    /// Ends the polling of a vertex whose watch works again. Returns true if the vertex could not be watched before.
    pub(super) fn end_polling(&mut self, id: VertexId) -> bool {
        self.unwatched.remove(&id)
    }

    /// Polls a vertex with a source that has no events, beside the watch of its other sources.
    pub(in crate::driver) fn poll_without_events(&mut self, id: VertexId) {
        self.without_events.insert(id);
    }

    /// Returns the vertices that cannot be watched.
    pub(in crate::driver) fn unwatched(&self) -> &BTreeSet<VertexId> {
        &self.unwatched
    }

    /// Returns the number of vertices with a source that has no events.
    pub(in crate::driver) fn without_events(&self) -> usize {
        self.without_events.len()
    }

    /// Ends the polling that a watch needed.
    pub(super) fn close(&mut self, id: VertexId) {
        self.unwatched.remove(&id);
        self.without_events.remove(&id);
    }

    /// Ends all polling of a vertex that has left the graph.
    pub(super) fn forget(&mut self, id: VertexId) {
        self.close(id);
        self.passing.remove(&id);
        self.exhausted.remove(id);
    }

    /// Polls a vertex after a check with a failure that may pass without an event, until another check.
    pub(in crate::driver) fn note_verdict(&mut self, id: VertexId, verdict: &CheckResult) {
        if matches!(verdict, CheckResult::Unknown(failure) if failure.passes) {
            self.passing.insert(id);
        } else {
            self.passing.remove(&id);
        }
        if matches!(verdict, CheckResult::Same) {
            self.exhausted.remove(id);
        }
    }

    /// Polls a vertex after an apply that failed for a lack of room or descriptors. Returns the vertices whose failure
    /// has probably passed, after a success of one with such a failure.
    pub(in crate::driver) fn note_outcome(
        &mut self,
        id: VertexId,
        outcome: &Outcome,
    ) -> Vec<VertexId> {
        let had = self.exhausted.remove(id);
        match outcome {
            Outcome::Failed { failure, .. } if failure.passes => self.exhausted.put(id),
            Outcome::Changed(_) | Outcome::Unchanged if had => return self.exhausted.take_all(),
            _ => {}
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_resources::Failure;

    /// F4: a flapping service may become quiet without an event.
    #[test]
    fn a_passing_failure_is_checked_again() {
        let (mut polled, id) = (Polled::default(), VertexId(1));
        let failure = Failure::new("flapping");
        polled.note_verdict(id, &CheckResult::Unknown(failure.clone()));
        assert!(polled.is_empty() && polled.all().is_empty());
        polled.note_verdict(id, &CheckResult::Unknown(failure.clone().passing()));
        assert!(polled.all() == [id] && !polled.is_empty());
        polled.note_verdict(id, &CheckResult::Same);
        assert!(polled.all().is_empty());
        polled.note_verdict(id, &CheckResult::Unknown(failure.passing()));
        polled.forget(id);
        assert!(polled.is_empty() && polled.all().is_empty());
    }

    #[test]
    fn a_source_without_events_is_polled_until_its_watch_is_closed() {
        let (mut polled, id) = (Polled::default(), VertexId(1));
        polled.poll_without_events(id);
        polled.end_polling(id);
        assert!(polled.all() == [id] && !polled.is_empty());
        assert!(polled.unwatched().is_empty(), "the other sources are watched");
        polled.close(id);
        assert!(polled.is_empty() && polled.all().is_empty());
    }

    /// R5: of many vertices that failed for a full disk a few are tried at a time, each in its turn; one success frees
    /// all others.
    #[test]
    fn one_success_frees_the_others() {
        let mut polled = Polled::default();
        let failed = |passes| {
            let failure = Failure { passes, ..Failure::new("cannot write f: no space left") };
            Outcome::Failed { failure, touched: false }
        };
        assert!(polled.note_outcome(VertexId(99), &failed(false)).is_empty());
        assert!(polled.is_empty() && polled.all().is_empty());
        for number in 0..20 {
            assert!(polled.note_outcome(VertexId(number), &failed(true)).is_empty());
        }
        let first = polled.all();
        assert_eq!(first.len(), PROBES);
        for id in first {
            polled.note_outcome(id, &failed(true));
        }
        assert!(polled.all().contains(&VertexId(19)), "each has its turn");
        assert_eq!(polled.note_outcome(VertexId(50), &Outcome::Unchanged), []);
        assert_eq!(polled.note_outcome(VertexId(19), &Outcome::Unchanged).len(), 19);
        assert!(polled.all().is_empty());
    }
}
