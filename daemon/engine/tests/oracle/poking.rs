//! Back-pokes (E-3): the vertices that may, and those that must, get an attempt after a descendant became dirty.

use crate::oracle_log::{Asked, Books, Need, Phase, Vertex};
use steadfast_engine::{Poll, VertexId};

impl Books {
    /// Expects back-pokes of a vertex that was clean until now: every ancestor that failed for good blocks it (E-3),
    /// unless its failure does not block. In a pause the resume makes up for it.
    pub(super) fn must_back_poke(&mut self, id: VertexId) {
        if self.asked != Asked::Running || self.paused {
            self.late_pokes.insert(id);
            return;
        }
        let above = self.vertices.get(&id).map(|v| v.ancestors.clone()).unwrap_or_default();
        let must = |v: &Vertex| v.phase == Phase::Failed && v.declared.traits.failure_blocks;
        let failed = |a: &VertexId| self.vertices.get(a).is_some_and(must);
        let failed: Vec<VertexId> = above.into_iter().filter(failed).collect();
        self.back_poked.extend(failed);
    }

    /// Expects back-pokes at the end of a pause from vertices that became dirty in it, and have not run since (E-3).
    pub(super) fn make_up_for_pokes(&mut self) {
        for id in std::mem::take(&mut self.late_pokes) {
            let must = |v: &Vertex| matches!(v.need, Need::Must { .. });
            if self.vertices.get(&id).is_some_and(must) {
                self.must_back_poke(id);
            }
        }
        let dirty =
            |v: &&Vertex| v.need != Need::No || matches!(v.declared.meta.poll, Poll::Every(_));
        let ids = self.vertices.values().filter(dirty).map(|v| v.declared.id);
        for id in ids.collect::<Vec<_>>() {
            self.back_poke(id);
        }
    }

    /// Allows one attempt of ancestors that failed for good (E-3).
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
