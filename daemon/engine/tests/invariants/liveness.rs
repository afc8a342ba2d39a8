//! E-2, E-4, E-6, E-14: every vertex that may start is started.

use super::{E2_POKE, E4_EVENT, E6_ONCE};
use crate::oracle_log::{Asked, Books, Need, Phase};
use steadfast_engine::{Action, Notice, VertexId};

impl Books {
    /// Checks, with nothing in flight and no timer due, that no vertex that may start is left unstarted.
    pub(super) fn nothing_is_forgotten(&mut self) {
        let all = self.clearances();
        let forgotten: Vec<VertexId> = self
            .order
            .iter()
            .copied()
            .filter(|id| {
                self.is_surely_ready(*id, &all) && self.gets_semaphores(*id) && self.has_slot(*id)
            })
            .collect();
        for id in forgotten {
            let vertex = &self.vertices[&id];
            let detail = format!("{id} may start: {:?} {:?}", vertex.phase, vertex.need);
            self.broken(E2_POKE, &detail);
        }
        for id in self.order.clone() {
            if self.is_look_forgotten(id) {
                self.broken(E4_EVENT, &format!("{id} is not looked at"));
            }
        }
    }

    fn is_look_forgotten(&self, id: VertexId) -> bool {
        let vertex = &self.vertices[&id];
        vertex.look.is_some_and(|(_, required)| required)
            && vertex.need == Need::No
            && vertex.phase == Phase::Rest
            && vertex.running.is_none()
            && self.asked == Asked::Running
            && !self.paused
            && self.is_watched(vertex)
            && !self.is_suspended(id)
            && !self.paused_vertices.contains(&id)
            && self.can_be_looked_at(id)
            && self.has_slot(id)
    }

    /// Returns true if holders and all tickets that may be lower leave room in each semaphore.
    fn gets_semaphores(&self, id: VertexId) -> bool {
        let mine = self.vertices[&id].ticket.0.unwrap_or(u64::MAX);
        self.vertices[&id].declared.meta.semaphores.iter().all(|semaphore| {
            let lower = self.vertices.iter().filter(|(other, vertex)| {
                **other != id
                    && vertex.declared.meta.semaphores.contains(semaphore)
                    && self.is_possibly_ready(**other)
                    && vertex.ticket.1.is_none_or(|ticket| ticket <= mine)
            });
            let count = self.counts.get(semaphore.0 as usize).copied().unwrap_or(0);
            self.holders(semaphore.0) as usize + lower.count() < count as usize
        })
    }

    /// Returns true if a slot is free, including one that replaces a slot held too long.
    fn has_slot(&self, id: VertexId) -> bool {
        let class = self.vertices[&id].declared.traits.executor;
        let (occupied, written_off) = self.occupied(class);
        occupied - written_off < self.slots_of(class)
    }

    /// Checks the order of starts (E-6): drift and requests before loads, loads before looks.
    pub(super) fn priorities(&mut self, actions: &[Action]) {
        let loads = |a: &Action| matches!(a, Action::Notify(Notice::Loaded { .. }));
        if actions.iter().any(loads) {
            // Starts before the commit of the new graph follow the order of the old one.
            return;
        }
        let all = self.clearances();
        let mut wrong = Vec::new();
        for action in actions {
            let Action::Start(start) = action else { continue };
            let Some(this) = self.vertices.get(&start.vertex) else { continue };
            let Some(rank) = self.started_as.get(&start.vertex).copied() else { continue };
            let class = this.declared.traits.executor;
            let passed = self.order.iter().find(|id| {
                let other = &self.vertices[id];
                other.declared.traits.executor == class
                    && other.declared.meta.semaphores.is_empty()
                    && other.cause.is_some_and(|cause| rank < cause)
                    && self.is_surely_ready(**id, &all)
            });
            if let Some(passed) = passed {
                wrong.push(format!("{} is started before {passed}", start.vertex));
            }
        }
        for detail in wrong {
            self.broken(E6_ONCE, &detail);
        }
    }
}
