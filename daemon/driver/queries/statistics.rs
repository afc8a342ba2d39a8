//! Statistics of each vertex: the last check, change and event, and the cause of the last change. Seventeen bytes per
//! vertex.

use crate::driver::RunRef;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_engine::{Class, VertexId};
use tokio::time::Instant;

/// A kind of event whose time is recorded per vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Moment {
    /// The end of a check.
    Checked = 0,
    /// A change.
    Changed = 1,
    /// An event of a watch source.
    Heard = 2,
}

/// Statistics of all vertices. Times are in seconds since the start, plus one; zero means never.
#[derive(Debug)]
pub(in crate::driver) struct ResourceStatistics {
    began: Instant,
    each: Vec<[u32; 3]>,
    /// The number of changes per vertex.
    changes: Vec<u32>,
    /// The cause of the last change per vertex.
    classes: Vec<Option<Class>>,
    /// The number of changes per cause.
    totals: [u32; 4],
    last_at: [u32; 3],
    /// The times since which interrupted resources have waited for the operator.
    undecided: BTreeMap<VertexId, Instant>,
    /// The last run of each failing vertex.
    failing: BTreeMap<VertexId, RunRef>,
    /// The time of convergence, if the host is converged.
    pub(in crate::driver) converged: Option<Instant>,
}

impl ResourceStatistics {
    pub(in crate::driver) fn new(began: Instant) -> Self {
        Self {
            began,
            each: Vec::new(),
            changes: Vec::new(),
            classes: Vec::new(),
            totals: [0; 4],
            last_at: [0; 3],
            undecided: BTreeMap::new(),
            failing: BTreeMap::new(),
            converged: None,
        }
    }

    pub(in crate::driver) fn note(&mut self, id: VertexId, moment: Moment) {
        let at = id.0 as usize;
        if at >= self.each.len() {
            self.each.resize(at + 1, [0; 3]);
            self.changes.resize(at + 1, 0);
            self.classes.resize(at + 1, None);
        }
        let seconds = u32::try_from(self.began.elapsed().as_secs()).unwrap_or(u32::MAX - 1) + 1;
        self.each[at][moment as usize] = seconds;
        self.last_at[moment as usize] = seconds;
    }

    /// Records a change and its cause.
    pub(in crate::driver) fn note_change(&mut self, id: VertexId, class: Class) {
        self.note(id, Moment::Changed);
        let at = id.0 as usize;
        self.changes[at] = self.changes[at].saturating_add(1);
        self.classes[at] = Some(class);
        let total = &mut self.totals[class as usize];
        *total = total.saturating_add(1);
    }

    /// Records a run that has failed.
    pub(in crate::driver) fn note_failing(&mut self, id: VertexId, run: RunRef) {
        self.failing.insert(id, run);
    }

    /// Records that a vertex is as declared again.
    pub(in crate::driver) fn note_right(&mut self, id: VertexId) {
        self.failing.remove(&id);
    }

    /// Returns the last run of a failing vertex.
    pub(in crate::driver) fn failing(&self, id: VertexId) -> Option<RunRef> {
        self.failing.get(&id).copied()
    }

    /// Records that a vertex waits for the operator; the first call counts.
    pub(in crate::driver) fn note_undecided(&mut self, id: VertexId) {
        self.undecided.entry(id).or_insert_with(Instant::now);
    }

    /// Returns the seconds since the vertex began to wait for the operator; meaningless if the vertex no longer waits.
    pub(in crate::driver) fn undecided(&self, id: VertexId) -> Option<u64> {
        self.undecided.get(&id).map(|since| since.elapsed().as_secs())
    }

    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.undecided.remove(&id);
        self.failing.remove(&id);
        if let Some(times) = self.each.get_mut(id.0 as usize) {
            *times = [0; 3];
            self.changes[id.0 as usize] = 0;
            self.classes[id.0 as usize] = None;
        }
    }

    /// Returns the number of changes since the start.
    pub(in crate::driver) fn changes(&self, id: VertexId) -> u32 {
        self.changes.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// Returns the cause of the last change.
    pub(in crate::driver) fn class(&self, id: VertexId) -> Option<Class> {
        self.classes.get(id.0 as usize).copied().flatten()
    }

    /// Returns the number of changes with this cause since the start, including vertices that have left the graph.
    pub(in crate::driver) fn total(&self, class: Class) -> u32 {
        self.totals[class as usize]
    }

    /// Returns the seconds since the last such event of a vertex; `None` if there was none.
    pub(in crate::driver) fn age(&self, id: VertexId, moment: Moment) -> Option<u64> {
        self.ago(self.each.get(id.0 as usize)?[moment as usize])
    }

    /// Returns the seconds since the last such event of any vertex.
    pub(in crate::driver) fn youngest(&self, moment: Moment) -> Option<u64> {
        self.ago(self.last_at[moment as usize])
    }

    fn ago(&self, seconds: u32) -> Option<u64> {
        let at = Duration::from_secs(u64::from(seconds.checked_sub(1)?));
        Some(self.began.elapsed().saturating_sub(at).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_event_has_no_age() {
        let began =
            Instant::now().checked_sub(Duration::from_secs(100)).unwrap_or_else(Instant::now);
        let mut times = ResourceStatistics::new(began);
        let (one, other) = (VertexId(3), VertexId(4));
        times.note(one, Moment::Checked);
        assert_eq!(times.age(one, Moment::Checked), Some(0));
        assert_eq!(times.age(one, Moment::Changed), None);
        assert_eq!(times.age(other, Moment::Checked), None);
        assert_eq!(times.youngest(Moment::Checked), Some(0));
        times.note_change(one, Class::Intentional);
        times.note_change(one, Class::Corrective);
        assert_eq!((times.changes(one), times.changes(other)), (2, 0));
        assert_eq!((times.class(one), times.class(other)), (Some(Class::Corrective), None));
        times.forget(one);
        assert_eq!((times.changes(one), times.class(one)), (0, None));
        let totals =
            [Class::Intentional, Class::Corrective, Class::NotIdempotent, Class::Contended];
        assert_eq!(totals.map(|class| times.total(class)), [1, 1, 0, 0]);
        assert_eq!(times.age(one, Moment::Checked), None);
    }
}
