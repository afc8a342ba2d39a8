//! The state of the watch of each vertex: requested, established or failed. `polled` decides that a vertex is polled.

use super::polled::Polled;
use super::sweep::{Sweep, UNWATCHED};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;
use tokio::time::Instant;

/// The time without progress of the hub after which requested watches count as failed.
pub(super) const ANSWER: Duration = Duration::from_secs(5);

/// The states of all watches.
#[derive(Debug)]
pub(in crate::driver) struct WatchStates {
    /// Watches that were requested and not closed since.
    pub(super) open: BTreeSet<VertexId>,
    /// Watches that were requested and not answered yet.
    pub(super) asked: BTreeSet<VertexId>,
    /// The time at which the loss of a watch was last reported.
    pub(super) loss_reported: HashMap<VertexId, Instant>,
    /// The vertices that are polled.
    pub(in crate::driver) polled: Polled,
    /// Vertices whose watch includes files.
    file_sources: BTreeSet<VertexId>,
    /// Watches that were closed and reopened: an answer may belong to the earlier request.
    reopened: BTreeSet<VertexId>,
    /// The last progress counter of the hub, and the time at which it was first seen.
    pub(super) progress: (u64, Instant),
    /// The sweep over polled vertices.
    pub(in crate::driver) sweep: Sweep,
}

impl WatchStates {
    pub(in crate::driver) fn new() -> Self {
        Self {
            open: BTreeSet::new(),
            asked: BTreeSet::new(),
            loss_reported: HashMap::new(),
            polled: Polled::default(),
            file_sources: BTreeSet::new(),
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
        self.polled.close(id);
        self.file_sources.remove(&id);
        self.reopened.insert(id);
    }

    /// Forgets a vertex that has left the graph.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.close(id);
        self.reopened.remove(&id);
        self.polled.forget(id);
        self.loss_reported.remove(&id);
    }

    /// Notes an established watch. Returns true if the object may have changed since its last check.
    pub(in crate::driver) fn note_established(&mut self, id: VertexId) -> bool {
        self.asked.remove(&id);
        self.polled.end_polling(id) | self.reopened.contains(&id)
    }

    /// Returns the time of the next poll; none if nothing is polled.
    pub(in crate::driver) fn next_poll(&self) -> Option<Instant> {
        self.sweep.next().filter(|_| !self.polled.is_empty())
    }

    /// Returns the next time at which anything is due here.
    pub(in crate::driver) fn next_due(&self) -> Option<Instant> {
        self.due().into_iter().chain(self.next_poll()).min()
    }

    /// Returns the time at which the requested watches count as failed.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        (!self.asked.is_empty()).then(|| self.progress.1 + ANSWER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(
            watches.poll_instead_of_watch(id, start) && !watches.poll_instead_of_watch(id, start)
        );
        assert!(watches.late(later(99), 2).is_empty() && watches.due().is_none());
        assert!(watches.note_established(id), "it may have moved meanwhile");
        watches.ask(id);
        watches.forget(id);
        assert!(watches.due().is_none() && watches.polled.unwatched().is_empty());
        assert!(!watches.poll_instead_of_watch(id, start), "what was under way when it was closed");
        assert!(watches.polled.unwatched().is_empty());
    }

    /// F6: a bus that returns for a moment and goes again is reported once; a later loss is reported again.
    #[test]
    fn a_watch_that_stands_for_a_moment_is_lost_once() {
        let (mut watches, id) = (WatchStates::new(), VertexId(1));
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        watches.ask(id);
        assert!(watches.poll_instead_of_watch(id, start) && watches.next_poll().is_some());
        assert!(watches.note_established(id), "it may have moved meanwhile");
        assert!(!watches.poll_instead_of_watch(id, later(2)), "the same loss is told twice");
        assert_eq!(watches.polled.unwatched().len(), 1, "it is unwatched all the same");
        assert!(watches.note_established(id));
        assert!(watches.poll_instead_of_watch(id, later(11)), "another loss");
        watches.forget(id);
        watches.ask(id);
        assert!(watches.poll_instead_of_watch(id, later(12)), "another resource");
    }
}
