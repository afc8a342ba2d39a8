//! E-13, E-15, E-16, E-17: what is asked for comes about.

use super::{E13_POLL, E15_PAUSE, E16_STOP, E17_SWAP};
use crate::books::{Asked, Books, Need, Phase, Running};
use std::time::Duration;
use steadfast_engine::{Poll, VertexId};

impl Books {
    pub(crate) fn is_anything_running(&self) -> bool {
        self.vertices.values().chain(self.leaving.values()).any(|v| v.running.is_some())
    }

    pub(super) fn polls_tick(&mut self) {
        if self.one_shot || self.asked != Asked::Running || self.paused || self.pending.is_some() {
            return;
        }
        let all = self.clearances();
        let mut late = Vec::new();
        for (id, vertex) in &self.vertices {
            let Poll::Every(interval) = vertex.declared.meta.poll else { continue };
            let free = vertex.running.is_none()
                && !self.parked.contains(id)
                && vertex.phase == Phase::Rest
                && vertex.need == Need::No
                && vertex.declared.meta.pace.is_none()
                && vertex.declared.meta.semaphores.is_empty()
                && self.occupied(vertex.declared.nature.slot).0
                    < self.slots_of(vertex.declared.nature.slot)
                && vertex
                    .ancestors
                    .iter()
                    .all(|a| all.get(a).is_some_and(|c| c.strict == u64::MAX));
            if free && vertex.active.after(interval) <= self.now {
                late.push(*id);
            }
        }
        for id in late {
            self.broken(E13_POLL, &format!("{id} is not polled"));
        }
    }

    pub(super) fn deadlines_are_kept(&mut self) {
        let late: Vec<VertexId> = self
            .vertices
            .iter()
            .filter(|(_, v)| v.running.as_ref().is_some_and(|r| is_to_cancel(r) && !r.look))
            .filter(|(_, v)| Self::deadline(v).is_some_and(|due| due <= self.now))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            self.broken(E16_STOP, &format!("{id} is over its deadline and not cancelled"));
        }
    }

    /// The swap is taken as soon as what it changes is quiet.
    pub(super) fn swaps_are_taken(&mut self) {
        if self.pending.is_none() || self.asked == Asked::Stopping {
            return;
        }
        let quiet = |id: &VertexId| {
            !self.is_suspended(*id)
                || !self.may_realize(*id)
                    && self.vertices[id].running.as_ref().is_none_or(|run| run.stuck)
                    && !self.undurable.values().any(|(other, ..)| other == id)
        };
        if self.order.iter().all(quiet) {
            self.broken(E17_SWAP, "the swap waits for nobody");
        }
    }

    pub(super) fn rests_come(&mut self) {
        let running = self.is_anything_running();
        match self.asked {
            Asked::Running => {}
            Asked::Pausing { until, drain } => {
                if until <= self.now {
                    self.broken(E15_PAUSE, "the pause does not end by itself");
                }
                let drains = drain && self.drainable.iter().any(|id| self.is_possibly_ready(*id));
                let durable = self.unsaved == 0 && self.undurable.is_empty();
                if !running && !drains && !self.paused && durable {
                    self.broken(E15_PAUSE, "nothing runs, and paused is not told");
                }
                if drain && !self.drained {
                    self.drain_goes_on();
                }
            }
            Asked::Stopping => {
                let all = self.vertices.values().chain(self.leaving.values());
                let fixed = all.filter_map(|v| v.running.as_ref()).any(|run| !run.cancellable);
                let second = Duration::from_secs(1);
                let given_up = self.cancel_asked.is_some_and(|at| at.after(second) <= self.now);
                let over = !running && self.undurable.is_empty() || given_up && !fixed;
                if over && !self.stopped {
                    self.broken(E16_STOP, "nothing runs, and stopped is not told");
                }
                self.cancels_came();
            }
        }
    }

    /// A drain lets end what was dirty when it was asked for.
    fn drain_goes_on(&mut self) {
        let asked = std::mem::replace(&mut self.asked, Asked::Running);
        let all = self.clearances();
        // Who became dirty since the request waits for no limiter, and may be in the way.
        let rests = |id: &VertexId| {
            let dirty = self.vertices.get(id).is_some_and(|vertex| vertex.need != Need::No);
            dirty && !self.drainable.contains(id)
        };
        let left: Vec<VertexId> = self
            .drained_first
            .iter()
            .copied()
            .filter(|id| self.vertices.contains_key(id))
            // While it drains nothing needs to be right before a swap removes it.
            .filter(|id| !self.is_suspended(*id))
            .filter(|id| !self.vertices[id].ancestors.iter().any(rests))
            .filter(|id| {
                let vertex = &self.vertices[id];
                let slot = vertex.declared.nature.slot;
                vertex.declared.meta.semaphores.is_empty()
                    && !matches!(vertex.phase, Phase::Delayed(_) | Phase::Failed)
                    && self.is_surely_ready(*id, &all)
                    && self.occupied(slot).0 < self.slots_of(slot)
            })
            .collect();
        self.asked = asked;
        for id in left {
            self.broken(E15_PAUSE, &format!("{id} was dirty at the request and is not drained"));
        }
    }

    fn cancels_came(&mut self) {
        if self.stop_due.is_none_or(|due| due > self.now) {
            return;
        }
        let left: Vec<VertexId> = self
            .vertices
            .iter()
            .filter(|(_, v)| v.running.as_ref().is_some_and(is_to_cancel))
            .map(|(id, _)| *id)
            .collect();
        for id in left {
            self.broken(E16_STOP, &format!("{id} is not cancelled although the grace is over"));
        }
    }
}

/// It may be cancelled, and was not yet.
fn is_to_cancel(run: &Running) -> bool {
    run.cancellable && run.cancelled.is_none()
}
