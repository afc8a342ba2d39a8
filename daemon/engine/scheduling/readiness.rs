//! Readiness (E-1, E-2, E-3, E-8): the vertices that block others, maintained with each change.
//!
//! The *clearance* of a vertex is a stamp: descendants that became dirty before it are not blocked by this vertex or
//! its ancestors. The clearance is unbounded if the vertex is settled, else it is the start of its last good run. A
//! vertex may start if the smallest clearance of its parents is later than the moment at which it became dirty. A poke
//! is a rising clearance: the rise passes through clean vertices and ends at the first unchanged one. Therefore waves
//! cannot loop, and cost only the part of the graph whose readiness changes.

use crate::engine::Engine;
use crate::interface::ids::{Stamp, VertexId};
use crate::interface::query_replies::Mode;
use crate::state::vertex::{Causes, Class, Phase, Place, Watch};

impl Engine {
    /// Marks a vertex to be settled again before this turn ends.
    pub(crate) fn touch(&mut self, id: VertexId) {
        if let Some(vertex) = self.vertex_mut(id)
            && !vertex.stale
        {
            vertex.stale = true;
            self.stale.push(id);
        }
    }

    /// Derives all consequences of the changes so far.
    pub(crate) fn settle(&mut self) {
        while let Some(id) = self.stale.pop() {
            let Some(vertex) = self.vertices.get_mut(id.0 as usize).and_then(Option::as_mut) else {
                continue;
            };
            vertex.stale = false;
            let class = (vertex.class, vertex.classify());
            vertex.class = class.1;
            let disturbs = (vertex.disturbs, vertex.is_disturbing());
            vertex.disturbs = disturbs.1;
            let clearance = vertex.joined_clearance();
            let before = std::mem::replace(&mut vertex.clearance, clearance);
            self.recount(class, disturbs);
            self.pass_poke(id, before, clearance);
            self.consider(id);
        }
    }

    fn recount(&mut self, class: (Class, Class), disturbs: (bool, bool)) {
        if class.0 != class.1 {
            *self.count_of(class.0) -= 1;
            *self.count_of(class.1) += 1;
        }
        match disturbs {
            (false, true) => self.disturbing += 1,
            (true, false) => self.disturbing -= 1,
            (true, true) | (false, false) => {}
        }
    }

    pub(crate) fn count_of(&mut self, class: Class) -> &mut u32 {
        match class {
            Class::Settled => &mut self.counts.settled,
            Class::Waiting => &mut self.counts.waiting,
            Class::Running => &mut self.counts.running,
            Class::Delayed => &mut self.counts.delayed,
            Class::Failed => &mut self.counts.failed,
            Class::Held => &mut self.counts.held,
            Class::Stuck => &mut self.counts.stuck,
            Class::Contended => &mut self.counts.contended,
        }
    }

    /// Queues a vertex if it may start, and withdraws it if it may not (E-7).
    fn consider(&mut self, id: VertexId) {
        let mode = self.mode;
        let Some(vertex) = self.vertex(id) else { return };
        if vertex.run().is_some() {
            return;
        }
        if matches!(&vertex.phase, Phase::Asking(asking) if asking.awaited.is_empty()) {
            self.unjudged.push(id);
            return;
        }
        let may = !vertex.frozen && vertex.watch != Watch::Asked;
        let may = may && !self.paused_vertices.contains(&id);
        let run = may && vertex.wants_run() && vertex.gate.least > vertex.dirty_since;
        let look = may && !run && vertex.wants_look();
        let open = match mode {
            Mode::Running => true,
            Mode::Draining => vertex.drains && !look,
            Mode::Pausing | Mode::Paused | Mode::Stopping | Mode::Stopped => false,
        };
        match vertex.place {
            // The vertex was shelved for a look, or before a drain owed it a refresh.
            Place::Shelf if run && open => {
                self.withdraw(id);
                self.enter(id, run, look, open);
            }
            Place::Shelf => {}
            Place::Nowhere => self.enter(id, run, look, open),
            Place::Look(_) if look && open => {}
            Place::Limit(_) | Place::Semaphores | Place::Slot(_) if run && open => {}
            Place::Backoff(at) if run && open && self.is_delayed(id) == Some(at) => {}
            Place::Look(_)
            | Place::Limit(_)
            | Place::Backoff(_)
            | Place::Semaphores
            | Place::Slot(_) => {
                self.withdraw(id);
                self.enter(id, run, look, open);
            }
        }
    }

    fn enter(&mut self, id: VertexId, run: bool, look: bool, open: bool) {
        match (run || look, open) {
            (false, _) => {}
            (true, false) => {
                if let Some(vertex) = self.vertex_mut(id) {
                    vertex.place = Place::Shelf;
                    self.shelf.push(id);
                }
            }
            (true, true) if run => self.enqueue(id),
            (true, true) => self.enqueue_look(id),
        }
    }

    /// Marks a vertex dirty. If an ancestor blocks it, the vertex sends a back-poke (E-3).
    pub(crate) fn mark(&mut self, id: VertexId, cause: Causes) {
        let stamp = Stamp(self.stamp.0 + 1);
        let Some(vertex) = self.vertex_mut(id) else { return };
        let newly = !vertex.causes.any();
        let waited = vertex.causes.can_wait();
        vertex.causes.add(cause);
        let overtakes = waited && !vertex.causes.can_wait();
        let queued = matches!(vertex.place, Place::Slot(_));
        if newly {
            vertex.dirty_since = stamp;
            self.stamp = stamp;
            self.back_poke(id);
        }
        if overtakes && queued {
            // The vertex waits for a slot among loaded ones, and now has a higher priority.
            self.push_slot(id);
        }
        self.touch(id);
    }

    /// Gives a vertex that had failed for good one attempt, with its budget unchanged (E-10). The vertex sends a
    /// back-poke as well.
    pub(crate) fn attempt(&mut self, id: VertexId) {
        if self.revive(id) {
            self.back_poke(id);
        }
    }

    pub(crate) fn revive(&mut self, id: VertexId) -> bool {
        let stamp = Stamp(self.stamp.0 + 1);
        let Some(vertex) = self.vertex_mut(id) else { return false };
        if !matches!(vertex.phase, Phase::Failed { .. }) {
            return false;
        }
        vertex.phase = Phase::Resting;
        vertex.causes.add(Causes::AGAIN);
        vertex.dirty_since = stamp;
        self.stamp = stamp;
        self.touch(id);
        true
    }
}
