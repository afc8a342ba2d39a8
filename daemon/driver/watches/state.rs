//! How it stands with the watch of each vertex: asked for, answered, not to be had.

use super::sweep::{Sweep, UNWATCHED};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::CheckResult;
use tokio::time::Instant;

/// How long the hub may do nothing before those who wait for it go on without.
const ANSWER: Duration = Duration::from_secs(5);

/// A watch that stands for less than this and is lost again (a bus that comes and goes while it is restarted) is one loss.
const ONE_LOSS: Duration = Duration::from_secs(10);

/// The standing of all watches.
#[derive(Debug)]
pub(in crate::driver) struct WatchStates {
    /// Asked for, and not closed since.
    open: BTreeSet<VertexId>,
    /// Asked for and not answered yet.
    asked: BTreeSet<VertexId>,
    /// There are no events for these.
    unwatched: BTreeSet<VertexId>,
    /// The time at which the loss of a watch was told.
    loss_reported: HashMap<VertexId, Instant>,
    /// The trouble of these may pass without an event.
    passing: BTreeSet<VertexId>,
    /// Closed and opened again: an answer may be that of an earlier opening.
    reopened: BTreeSet<VertexId>,
    /// How far the hub had come, and when that was seen first.
    progress: (u64, Instant),
    /// The looks at those that are polled.
    pub(in crate::driver) sweep: Sweep,
}

impl WatchStates {
    pub(in crate::driver) fn new() -> Self {
        Self {
            open: BTreeSet::new(),
            asked: BTreeSet::new(),
            unwatched: BTreeSet::new(),
            loss_reported: HashMap::new(),
            passing: BTreeSet::new(),
            reopened: BTreeSet::new(),
            progress: (0, Instant::now()),
            sweep: Sweep::new(Some(UNWATCHED)),
        }
    }

    /// A watch is asked for.
    pub(in crate::driver) fn ask(&mut self, id: VertexId) {
        if self.asked.is_empty() {
            self.progress.1 = Instant::now();
        }
        self.asked.insert(id);
        self.open.insert(id);
    }

    /// A watch is closed.
    pub(in crate::driver) fn close(&mut self, id: VertexId) {
        self.open.remove(&id);
        self.asked.remove(&id);
        self.unwatched.remove(&id);
        self.reopened.insert(id);
    }

    /// Its vertex has left.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.close(id);
        self.reopened.remove(&id);
        self.passing.remove(&id);
        self.loss_reported.remove(&id);
    }

    /// It stands. True where its vertex may have moved since it was last looked at.
    pub(in crate::driver) fn stands(&mut self, id: VertexId) -> bool {
        self.asked.remove(&id);
        self.unwatched.remove(&id) | self.reopened.contains(&id)
    }

    /// Notes that a watch cannot be had, and answers whether that is news: of a watch that was closed meanwhile nothing is, and a
    /// watch that was lost a moment ago is lost once.
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

    /// Those for which there are no events.
    pub(in crate::driver) fn without(&self) -> &BTreeSet<VertexId> {
        &self.unwatched
    }

    /// Notes after each check whether it has found trouble that may pass without an event.
    pub(in crate::driver) fn note_verdict(&mut self, id: VertexId, verdict: &CheckResult) {
        if matches!(verdict, CheckResult::Unknown(trouble) if trouble.passes) {
            self.passing.insert(id);
        } else {
            self.passing.remove(&id);
        }
    }

    /// Those that are looked at often, whether there are events or not.
    pub(in crate::driver) fn polled(&self) -> Vec<VertexId> {
        self.unwatched.union(&self.passing).copied().collect()
    }

    /// The next time at which some of them are checked.
    pub(in crate::driver) fn next_look(&self) -> Option<Instant> {
        let any = !self.unwatched.is_empty() || !self.passing.is_empty();
        self.sweep.next().filter(|_| any)
    }

    /// Those whose wait has been too long: the hub has come no further since.
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

    /// The next time at which anything is due here.
    pub(in crate::driver) fn next_due(&self) -> Option<Instant> {
        self.due().into_iter().chain(self.next_look()).min()
    }

    /// When to look for those next.
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

    /// F6: a bus that comes back for a moment and goes again is told once, and a later loss once more.
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

    /// F4: a flapping service is quiet one day, and no event says so.
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
}
