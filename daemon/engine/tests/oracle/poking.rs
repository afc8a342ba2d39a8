//! Back-pokes (E-3): who may, and who must, get an attempt because somebody below it became dirty.

use crate::books::{Asked, Books, Phase};
use steadfast_engine::VertexId;

impl Books {
    /// E-3: it was clean until now, so whatever has failed for good above it blocks it.
    pub(super) fn must_back_poke(&mut self, id: VertexId) {
        if self.asked != Asked::Running || self.paused {
            return;
        }
        let above = self.vertices.get(&id).map(|v| v.ancestors.clone()).unwrap_or_default();
        let failed = |a: &VertexId| self.vertices.get(a).is_some_and(|v| v.phase == Phase::Failed);
        let failed: Vec<VertexId> = above.into_iter().filter(failed).collect();
        self.back_poked.extend(failed);
    }

    /// E-3: ancestors that failed for good may get one attempt.
    pub(super) fn back_poke(&mut self, id: VertexId) {
        if self.asked != Asked::Running {
            return;
        }
        let clock = self.clock;
        let above = self.vertices.get(&id).map(|v| v.ancestors.clone()).unwrap_or_default();
        for ancestor in above {
            if let Some(vertex) = self.vertices.get_mut(&ancestor)
                && matches!(vertex.phase, Phase::Failed | Phase::Unsure)
            {
                vertex.may(clock);
            }
        }
    }
}
