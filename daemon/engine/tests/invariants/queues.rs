//! E-3, E-7: a failed ancestor gets its attempt, and a vertex that may not start leaves its queue.

use super::{E3_BACK_POKE, E7_GRANT};
use crate::oracle::Face;
use crate::oracle_log::{Asked, Books};
use steadfast_engine::{VertexId, VertexStatus};

impl Books {
    /// Checks that a vertex that was back-poked in this turn is no longer failed for good.
    pub(super) fn back_pokes_came(&mut self, face: &impl Face) {
        for id in std::mem::take(&mut self.back_poked) {
            if face.standing(id) == Some(VertexStatus::Failed) {
                self.broken(E3_BACK_POKE, &format!("{id} is back-poked and gets no attempt"));
            }
        }
    }

    /// Checks that no vertex is queued that may certainly not start.
    pub(super) fn queues_are_left(&mut self, face: &impl Face) {
        let drains = matches!(self.asked, Asked::Pausing { drain: true, .. }) && !self.paused;
        let rests = self.asked != Asked::Running && !drains;
        let mut wrong = Vec::new();
        for id in self.order.clone() {
            let standing = face.standing(id);
            let waits = matches!(
                standing,
                Some(
                    VertexStatus::WaitingForSlot
                        | VertexStatus::WaitingForSemaphore
                        | VertexStatus::WaitingForLimit(_)
                )
            );
            let suspended = self.is_suspended(id) && !self.may_be_needed(id);
            let Some(vertex) = self.vertices.get_mut(&id) else { continue };
            vertex.queued = waits;
            // Looks have a queue of their own, in which no vertex is blocked.
            if !waits || vertex.look.is_some() {
                continue;
            }
            if rests || suspended || self.paused_vertices.contains(&id) {
                wrong.push(format!("{id} waits in a queue, and may not: {standing:?}"));
            }
            let blocking: Vec<VertexId> = self.surely_blocking(id);
            if !blocking.is_empty() {
                wrong.push(format!("{id} waits in a queue while {blocking:?} block it"));
            }
        }
        for detail in wrong {
            self.broken(E7_GRANT, &detail);
        }
    }
}
