//! The state of the watch of each vertex: requested, established or failed.

use super::sweep::{Sweep, UNWATCHED};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::{CheckResult, Outcome, WatchSource};
use tokio::time::Instant;

/// The time without progress of the hub after which requested watches count as failed.
const ANSWER: Duration = Duration::from_secs(5);

/// The time within which repeated losses count as one: a bus that restarts comes and goes.
const ONE_LOSS: Duration = Duration::from_secs(10);

/// The states of all watches.
#[derive(Debug)]
pub(in crate::driver) struct WatchStates {
    /// Watches that were requested and not closed since.
    open: BTreeSet<VertexId>,
    /// Watches that were requested and not answered yet.
    asked: BTreeSet<VertexId>,
    /// Vertices without a working watch.
    unwatched: BTreeSet<VertexId>,
    /// The time at which the loss of a watch was last reported.
    loss_reported: HashMap<VertexId, Instant>,
    /// Vertices with a source that has no events.
    polled_sources: BTreeSet<VertexId>,
    /// Vertices whose watch includes files.
    file_sources: BTreeSet<VertexId>,
    /// Vertices with a failure that may pass without an event.
    passing: BTreeSet<VertexId>,
    /// Vertices whose apply failed for a full or read-only file system, or for a lack of descriptors.
    exhausted: Exhausted,
    /// Watches that were closed and reopened: an answer may belong to the earlier request.
    reopened: BTreeSet<VertexId>,
    /// The last progress counter of the hub, and the time at which it was first seen.
    progress: (u64, Instant),
    /// The sweep over polled vertices.
    pub(in crate::driver) sweep: Sweep,
}

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
    pub(in crate::driver) fn new() -> Self {
        Self {
            open: BTreeSet::new(),
            asked: BTreeSet::new(),
            unwatched: BTreeSet::new(),
            loss_reported: HashMap::new(),
            polled_sources: BTreeSet::new(),
            file_sources: BTreeSet::new(),
            passing: BTreeSet::new(),
            exhausted: Exhausted::default(),
            reopened: BTreeSet::new(),
            progress: (0, Instant::now()),
            sweep: Sweep::new(Some(UNWATCHED)),
        }
    }

    /// Notes a request for a watch.
    pub(in crate::driver) fn ask(&mut self, id: VertexId) {
        if self.asked.is_empty() {
            self.progress.1 = Instant::now();
        }
        self.asked.insert(id);
        self.open.insert(id);
    }

    /// Notes that a source of the vertex has no events, so that the sweep examines the vertex too.
    pub(in crate::driver) fn poll_too(&mut self, id: VertexId) {
        self.polled_sources.insert(id);
    }

    /// Returns the number of vertices with a source that has no events.
    pub(in crate::driver) fn polled_sources(&self) -> usize {
        self.polled_sources.len()
    }

    /// Notes whether the requested watch includes files.
    pub(in crate::driver) fn note_files(&mut self, id: VertexId, sources: &[WatchSource]) {
        let is_file = |source: &WatchSource| {
            matches!(source, WatchSource::Path { .. } | WatchSource::Tree(_))
        };
        if sources.iter().any(is_file) {
            self.file_sources.insert(id);
        } else {
            self.file_sources.remove(&id);
        }
    }

    /// Returns true if the watch of the vertex includes files.
    pub(in crate::driver) fn watches_files(&self, id: VertexId) -> bool {
        self.file_sources.contains(&id)
    }

    /// Notes the end of a watch.
    pub(in crate::driver) fn close(&mut self, id: VertexId) {
        self.open.remove(&id);
        self.asked.remove(&id);
        self.unwatched.remove(&id);
        self.polled_sources.remove(&id);
        self.file_sources.remove(&id);
        self.reopened.insert(id);
    }

    /// Forgets a vertex that has left the graph.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.close(id);
        self.reopened.remove(&id);
        self.passing.remove(&id);
        self.exhausted.remove(id);
        self.loss_reported.remove(&id);
    }

    /// Notes an established watch. Returns true if the object may have changed since its last check.
    pub(in crate::driver) fn stands(&mut self, id: VertexId) -> bool {
        self.asked.remove(&id);
        self.unwatched.remove(&id) | self.reopened.contains(&id)
    }

    /// Notes a failed watch. Returns true if the failure must be reported: a closed watch is not, and neither is a
    /// repeated loss.
    pub(in crate::driver) fn fails(&mut self, id: VertexId, now: Instant) -> bool {
        self.asked.remove(&id);
        if !self.open.contains(&id) || !self.unwatched.insert(id) {
            return false;
        }
        let before = self.loss_reported.get(&id);
        let is_news = before.is_none_or(|before| *before + ONE_LOSS <= now);
        if is_news {
            self.loss_reported.insert(id, now);
        }
        is_news
    }

    /// Returns the vertices without a working watch.
    pub(in crate::driver) fn without(&self) -> &BTreeSet<VertexId> {
        &self.unwatched
    }

    /// Notes after a check whether its failure may pass without an event.
    pub(in crate::driver) fn note_verdict(&mut self, id: VertexId, verdict: &CheckResult) {
        if matches!(verdict, CheckResult::Unknown(trouble) if trouble.passes) {
            self.passing.insert(id);
        } else {
            self.passing.remove(&id);
        }
        if matches!(verdict, CheckResult::Same) {
            self.exhausted.remove(id);
        }
    }

    /// Notes the outcome of an apply. Returns the vertices whose failure has probably passed, after a success of one
    /// with such a failure.
    pub(in crate::driver) fn note_outcome(
        &mut self,
        id: VertexId,
        outcome: &Outcome,
    ) -> Vec<VertexId> {
        let had = self.exhausted.remove(id);
        match outcome {
            Outcome::Failed { trouble, .. } if trouble.passes => self.exhausted.put(id),
            Outcome::Changed(_) | Outcome::Unchanged if had => return self.exhausted.take_all(),
            _ => {}
        }
        Vec::new()
    }

    /// Returns the vertices that are polled.
    pub(in crate::driver) fn polled(&self) -> Vec<VertexId> {
        let mut polled: BTreeSet<_> = self.unwatched.union(&self.passing).copied().collect();
        polled.extend(&self.polled_sources);
        polled.extend(self.exhausted.probes());
        polled.into_iter().collect()
    }

    /// Returns the time of the next poll.
    pub(in crate::driver) fn next_look(&self) -> Option<Instant> {
        let any = !(self.unwatched.is_empty()
            && self.passing.is_empty()
            && self.polled_sources.is_empty()
            && self.exhausted.order.is_empty());
        self.sweep.next().filter(|_| any)
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

    /// Returns the next time at which anything is due here.
    pub(in crate::driver) fn next_due(&self) -> Option<Instant> {
        self.due().into_iter().chain(self.next_look()).min()
    }

    /// Returns the time at which the requested watches count as failed.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        (!self.asked.is_empty()).then(|| self.progress.1 + ANSWER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_resources::Failure;

    #[test]
    fn a_hub_that_works_is_waited_for_and_one_that_hangs_is_not() {
        let (mut watches, id) = (WatchStates::new(), VertexId(1));
        watches.ask(id);
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(watches.late(later(4), 1), []);
        assert_eq!(watches.late(later(8), 2), [], "it has come further");
        assert_eq!(watches.late(later(12), 2), []);
        assert_eq!(watches.late(later(13), 2), [id]);
        assert!(watches.fails(id, start) && !watches.fails(id, start));
        assert!(watches.late(later(99), 2).is_empty() && watches.due().is_none());
        assert!(watches.stands(id), "it may have moved meanwhile");
        watches.ask(id);
        watches.forget(id);
        assert!(watches.due().is_none() && watches.without().is_empty());
        assert!(!watches.fails(id, start), "what was under way when it was closed");
        assert!(watches.without().is_empty());
    }

    /// F6: a bus that returns for a moment and goes again is reported once; a later loss is reported again.
    #[test]
    fn a_watch_that_stands_for_a_moment_is_lost_once() {
        let (mut watches, id) = (WatchStates::new(), VertexId(1));
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        watches.ask(id);
        assert!(watches.fails(id, start));
        assert!(watches.stands(id), "it may have moved meanwhile");
        assert!(!watches.fails(id, later(2)), "the same loss is told twice");
        assert_eq!(watches.without().len(), 1, "it is unwatched all the same");
        assert!(watches.stands(id));
        assert!(watches.fails(id, later(11)), "another loss");
        watches.forget(id);
        watches.ask(id);
        assert!(watches.fails(id, later(12)), "another resource");
    }

    /// F4: a flapping service may become quiet without an event.
    #[test]
    fn trouble_that_may_pass_is_looked_at() {
        let (mut watches, id) = (WatchStates::new(), VertexId(1));
        let trouble = Failure::new("flapping");
        watches.note_verdict(id, &CheckResult::Unknown(trouble.clone()));
        assert!(watches.polled().is_empty() && watches.next_look().is_none());
        watches.note_verdict(id, &CheckResult::Unknown(trouble.clone().passing()));
        assert!(watches.polled() == [id] && watches.next_look().is_some());
        watches.note_verdict(id, &CheckResult::Same);
        assert!(watches.polled().is_empty());
        watches.note_verdict(id, &CheckResult::Unknown(trouble.passing()));
        watches.forget(id);
        assert!(watches.polled().is_empty() && watches.next_look().is_none());
    }

    #[test]
    fn a_source_without_events_is_polled_until_its_watch_is_closed() {
        let (mut watches, id) = (WatchStates::new(), VertexId(1));
        watches.poll_too(id);
        watches.ask(id);
        watches.stands(id);
        assert!(watches.polled() == [id] && watches.next_look().is_some());
        assert!(watches.without().is_empty(), "the other sources are watched");
        watches.close(id);
        assert!(watches.polled().is_empty() && watches.next_look().is_none());
    }

    /// R5: of many vertices that failed for a full disk a few are tried at a time, each in its turn; one success frees
    /// all others.
    #[test]
    fn one_success_frees_the_others() {
        let mut watches = WatchStates::new();
        let failed = |passes| {
            let trouble = Failure { passes, ..Failure::new("cannot write f: no space left") };
            Outcome::Failed { trouble, touched: false }
        };
        assert!(watches.note_outcome(VertexId(99), &failed(false)).is_empty());
        assert!(watches.polled().is_empty() && watches.next_look().is_none());
        for number in 0..20 {
            assert!(watches.note_outcome(VertexId(number), &failed(true)).is_empty());
        }
        let first = watches.polled();
        assert_eq!(first.len(), PROBES);
        for id in first {
            watches.note_outcome(id, &failed(true));
        }
        assert!(watches.polled().contains(&VertexId(19)), "each has its turn");
        assert_eq!(watches.note_outcome(VertexId(50), &Outcome::Unchanged), []);
        assert_eq!(watches.note_outcome(VertexId(19), &Outcome::Unchanged).len(), 19);
        assert!(watches.polled().is_empty());
    }
}
