//! E-18: convergence is reported if and only if all has converged.

use super::E18_CONVERGED;
use crate::oracle::Face;
use crate::oracle_log::{Asked, Books, Need, Phase, Vertex};
use steadfast_engine::{Poll, VertexId};

impl Books {
    /// Returns a vertex that is not settled by any reading.
    pub(crate) fn surely_unsettled(&self) -> Option<VertexId> {
        let open = |(id, vertex): (&VertexId, &Vertex)| {
            let polled = vertex.declared.meta.poll != Poll::Never;
            let dirty = matches!(vertex.need, Need::Must { .. }) || vertex.is_running();
            let rests = matches!(vertex.phase, Phase::Rest | Phase::Unsure);
            let stuck = vertex.running.as_ref().is_some_and(|run| run.stuck);
            (dirty && !polled || stuck || !rests || self.debts.contains_key(id)).then_some(*id)
        };
        self.vertices.iter().find_map(open)
    }

    /// Returns true if all vertices are settled by every reading, and no refresh is owed.
    pub(crate) fn is_surely_converged(&self) -> bool {
        self.loaded
            && !self.vertices.is_empty()
            && self.asked == Asked::Running
            && !self.paused
            && self.pending.is_none()
            && self.vertices.values().all(|vertex| {
                vertex.need == Need::No
                    && vertex.phase == Phase::Rest
                    && vertex.owed.is_none()
                    && !vertex.owed_unsure
                    && vertex.running.as_ref().is_none_or(|run| run.look && !run.stuck)
            })
    }

    pub(super) fn convergence(&mut self, face: &impl Face) {
        if self.asked == Asked::Stopping {
            return;
        }
        let said = face.is_converged();
        if said
            && self.loaded
            && let Some(id) = self.surely_unsettled()
        {
            self.broken(E18_CONVERGED, &format!("is_converged, and {id} is not settled"));
        }
        if said && self.loaded && self.pending.is_some() {
            self.broken(E18_CONVERGED, "is_converged, and a swap waits");
        }
        if !said && self.undurable.is_empty() && self.is_surely_converged() {
            self.broken(E18_CONVERGED, "not is_converged, and all is settled");
        }
        if face.is_at_rest() {
            let busy = self.vertices.values().any(|v| {
                let stuck = self.one_shot && v.running.as_ref().is_some_and(|run| run.stuck);
                v.is_running() && !stuck
                    || matches!(v.phase, Phase::Delayed(_)) && self.asked == Asked::Running
            });
            if busy || !self.undurable.is_empty() {
                self.broken(E18_CONVERGED, "is_at_rest although something is to come");
            }
        }
    }

    /// Checks that convergence is reported at the first moment at which all is settled and durable.
    pub(crate) fn convergence_is_told(&mut self) {
        let open = match self.announced {
            Some(announced) => !announced,
            None => self.last_run.is_some(),
        };
        if open && self.undurable.is_empty() && self.is_surely_converged() {
            self.broken(E18_CONVERGED, "all is settled and durable, and converged is not told");
        }
    }
}
