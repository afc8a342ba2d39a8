//! One write of a file is several events: whoever runs a command for each waits a moment for the rest of them.

use crate::driver::Driver;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_engine::{Event, VertexId};
use tokio::time::Instant;

/// How long events of one write may lie apart.
const MOMENT: Duration = Duration::from_millis(50);

/// Events that are told when their moment is over.
#[derive(Debug, Default)]
pub(in crate::driver) struct Debounce(BTreeMap<VertexId, Instant>);

impl Debounce {
    /// The first of them begins the moment; the others fall into it.
    pub(in crate::driver) fn put(&mut self, id: VertexId, now: Instant) {
        self.0.entry(id).or_insert(now + MOMENT);
    }

    /// When the next is over.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }

    /// Those that are over.
    pub(in crate::driver) fn take(&mut self, now: Instant) -> Vec<VertexId> {
        self.0.extract_if(.., |_, at| *at <= now).map(|(id, _)| id).collect()
    }

    /// Its watch is closed.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.0.remove(&id);
    }
}

impl Driver {
    /// Tells of those whose moment is over.
    pub(in crate::driver) fn tell_settled(&mut self, now: Instant) {
        for id in self.settling.take(now) {
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
