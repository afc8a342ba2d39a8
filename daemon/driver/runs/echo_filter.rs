//! Own writes are not drift: events that may be the echo of our own apply only make us look again.
//!
//! A look checks and disturbs nothing: it finds a foreign change that fell into the same moment, and an echo costs one check.
//! Level, not edge: an event never says more than *look again*.

use std::collections::HashMap;
use std::time::Duration;
use steadfast_engine::VertexId;
use tokio::time::Instant;

/// How long after an apply its events may still be under way.
const REACH: Duration = Duration::from_millis(100);

/// Who wrote lately.
#[derive(Debug, Default)]
pub(crate) struct EchoFilter {
    /// `None` while the apply is in progress.
    wrote: HashMap<VertexId, Option<Instant>>,
    /// When the table is cleaned next.
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

    /// Whether an event of this vertex may be our own doing.
    pub(crate) fn covers(&self, id: VertexId) -> bool {
        self.wrote.get(&id).is_some_and(|at| at.is_none_or(|at| at.elapsed() < REACH))
    }
}
