//! The echo filter: events that the daemon's own apply may have caused are not drift, and only cause a check.
//!
//! A check changes nothing. It finds a foreign change that happened at the same time, and an echo costs one check only:
//! an event never means more than *check again*.

use std::collections::HashMap;
use std::time::Duration;
use steadfast_engine::VertexId;
use tokio::time::Instant;

/// The time after an apply during which its events may still arrive.
const REACH: Duration = Duration::from_millis(100);

/// Vertices with a recent apply.
#[derive(Debug, Default)]
pub(crate) struct EchoFilter {
    /// The end of the last apply; `None` while it is in progress.
    wrote: HashMap<VertexId, Option<Instant>>,
    /// The time of the next cleanup of `wrote`.
    clean_at: Option<Instant>,
}

impl EchoFilter {
    pub(crate) fn applying(&mut self, id: VertexId) {
        self.wrote.insert(id, None);
    }

    pub(crate) fn applied(&mut self, id: VertexId) {
        let now = Instant::now();
        if let Some(slot) = self.wrote.get_mut(&id) {
            *slot = Some(now);
        }
        if self.clean_at.is_none_or(|at| at <= now) {
            self.clean_at = Some(now + REACH);
            self.wrote.retain(|_, at| at.is_none_or(|at| at + REACH > now));
        }
    }

    /// Returns true if an event of this vertex may be an echo of its own apply.
    pub(crate) fn covers(&self, id: VertexId) -> bool {
        self.wrote.get(&id).is_some_and(|at| at.is_none_or(|at| at.elapsed() < REACH))
    }
}
