//! How it stands with the watch of each vertex: asked for, answered, not to be had.

use super::sweep::{Sweep, UNWATCHED};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_engine::VertexId;
use tokio::time::Instant;

/// How long the hub may do nothing before those who wait for it go on without.
const ANSWER: Duration = Duration::from_secs(5);

/// The standing of all watches.
#[derive(Debug)]
pub(super) struct Watches {
    /// Asked for, and not closed since.
    open: BTreeSet<VertexId>,
    /// Asked for and not answered yet.
    asked: BTreeSet<VertexId>,
    /// There are no events for these.
    unwatched: BTreeSet<VertexId>,
    /// Closed and opened again: an answer may be that of an earlier opening.
    reopened: BTreeSet<VertexId>,
    /// How far the hub had come, and when that was seen first.
    progress: (u64, Instant),
    /// The looks at those for which there are no events.
    pub(super) sweep: Sweep,
}

impl Watches {
    pub(super) fn new() -> Self {
        Self {
            open: BTreeSet::new(),
            asked: BTreeSet::new(),
            unwatched: BTreeSet::new(),
            reopened: BTreeSet::new(),
            progress: (0, Instant::now()),
            sweep: Sweep::new(Some(UNWATCHED)),
        }
    }

    /// A watch is asked for.
    pub(super) fn ask(&mut self, id: VertexId) {
        if self.asked.is_empty() {
            self.progress.1 = Instant::now();
        }
        self.asked.insert(id);
        self.open.insert(id);
    }

    /// A watch is closed.
    pub(super) fn close(&mut self, id: VertexId) {
        self.open.remove(&id);
        self.asked.remove(&id);
        self.unwatched.remove(&id);
        self.reopened.insert(id);
    }

    /// Its vertex has left.
    pub(super) fn forget(&mut self, id: VertexId) {
        self.close(id);
        self.reopened.remove(&id);
    }

    /// It stands. True where its vertex may have moved since it was last looked at.
    pub(super) fn stands(&mut self, id: VertexId) -> bool {
        self.asked.remove(&id);
        self.unwatched.remove(&id) | self.reopened.contains(&id)
    }

    /// It cannot be had. True where that is news; of one that was closed meanwhile nothing is.
    pub(super) fn fails(&mut self, id: VertexId) -> bool {
        self.asked.remove(&id);
        self.open.contains(&id) && self.unwatched.insert(id)
    }

    /// Those for which there are no events.
    pub(super) fn without(&self) -> &BTreeSet<VertexId> {
        &self.unwatched
    }

    /// Those whose wait has been too long: the hub has come no further since.
    pub(super) fn late(&mut self, now: Instant, progress: u64) -> Vec<VertexId> {
        if self.asked.is_empty() {
            return Vec::new();
        }
        if self.progress.0 != progress {
            self.progress = (progress, now);
        }
        let late = self.progress.1 + ANSWER <= now;
        if late { self.asked.iter().copied().collect() } else { Vec::new() }
    }

    /// When to look for those next.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.asked.is_empty()).then(|| self.progress.1 + ANSWER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_works_is_waited_for_and_one_that_hangs_is_not() {
        let (mut watches, id) = (Watches::new(), VertexId(1));
        watches.ask(id);
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(watches.late(later(4), 1), []);
        assert_eq!(watches.late(later(8), 2), [], "it has come further");
        assert_eq!(watches.late(later(12), 2), []);
        assert_eq!(watches.late(later(13), 2), [id]);
        assert!(watches.fails(id) && !watches.fails(id));
        assert!(watches.late(later(99), 2).is_empty() && watches.due().is_none());
        assert!(watches.stands(id), "it may have moved meanwhile");
        watches.ask(id);
        watches.forget(id);
        assert!(watches.due().is_none() && watches.without().is_empty());
        assert!(!watches.fails(id), "what was under way when it was closed");
        assert!(watches.without().is_empty());
    }
}
