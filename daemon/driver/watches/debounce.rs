//! Debouncing: one write of a file makes several events, and a command should run once for them.

use crate::driver::Driver;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_engine::{Event, VertexId};
use tokio::time::Instant;

/// The time for which events after the first one are collected.
const MOMENT: Duration = Duration::from_millis(50);

/// Events that are delivered when their time is over.
#[derive(Debug, Default)]
pub(in crate::driver) struct Debounce(BTreeMap<VertexId, Instant>);

impl Debounce {
    /// Adds an event; the first one of a vertex starts the time.
    pub(in crate::driver) fn put(&mut self, id: VertexId, now: Instant) {
        self.0.entry(id).or_insert(now + MOMENT);
    }

    /// Returns the time at which the next event is due.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }

    /// Takes the vertices whose time is over.
    pub(in crate::driver) fn take(&mut self, now: Instant) -> Vec<VertexId> {
        self.0.extract_if(.., |_, at| *at <= now).map(|(id, _)| id).collect()
    }

    /// Drops the event of a vertex whose watch is closed.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.0.remove(&id);
    }
}

impl Driver {
    /// Delivers the events whose time is over.
    pub(in crate::driver) fn deliver_settled_events(&mut self, now: Instant) {
        for id in self.watches.debounce.take(now) {
            self.turn(Event::Changed(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_in_a_moment_are_one_and_none_waits_longer() {
        let (mut settling, id, now) = (Debounce::default(), VertexId(1), Instant::now());
        settling.put(id, now);
        settling.put(id, now + MOMENT / 2);
        settling.put(VertexId(2), now + MOMENT / 2);
        assert_eq!(settling.due(), Some(now + MOMENT));
        assert_eq!(settling.take(now + MOMENT / 2), []);
        assert_eq!(settling.take(now + MOMENT), [id]);
        settling.forget(VertexId(2));
        assert_eq!((settling.due(), settling.take(now + MOMENT * 9)), (None, Vec::new()));
    }
}
