//! Back-pokes (E-3): who may, and who must, get an attempt because somebody below it became dirty.

use crate::oracle_log::{Asked, Books, Need, Phase, Vertex};
use steadfast_engine::{Poll, VertexId};

impl Books {
    /// E-3: it was clean until now, so whatever has failed for good above it blocks it. In a pause the resume makes up for that.
    pub(super) fn must_back_poke(&mut self, id: VertexId) {
        if self.asked != Asked::Running || self.paused {
            self.late_pokes.insert(id);
            return;
        }
        let above = self.vertices.get(&id).map(|v| v.ancestors.clone()).unwrap_or_default();
        let failed = |a: &VertexId| self.vertices.get(a).is_some_and(|v| v.phase == Phase::Failed);
        let failed: Vec<VertexId> = above.into_iter().filter(failed).collect();
        self.back_poked.extend(failed);
    }

    /// E-3: what became dirty in a pause, and has not run since, back-pokes when that ends.
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
