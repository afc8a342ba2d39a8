//! E-13, E-15, E-16, E-17: requests are carried out.

use super::{E6_ONCE, E10_RECOVERED, E13_POLL, E15_PAUSE, E16_STOP, E17_SWAP};
use crate::oracle::Face;
use crate::oracle_log::{Asked, Books, Need, Phase, Running, Vertex};
use std::time::Duration;
use steadfast_engine::{Poll, VertexId, VertexStatus};

impl Books {
    pub(crate) fn is_anything_running(&self) -> bool {
        self.vertices.values().chain(self.leaving.values()).any(|v| v.running.is_some())
    }

    /// Returns true if each run in progress was cancelled and has exceeded its time to return.
    pub(crate) fn is_nobody_in_time(&self) -> bool {
        let all = self.vertices.values().chain(self.leaving.values());
        all.filter_map(|vertex| vertex.running.as_ref()).all(|run| run.is_late(self.now))
    }

    /// Checks that a converged vertex that was reported as failed is reported as recovered, once all earlier ends are
    /// durable.
    pub(super) fn recoveries_are_told(&mut self, face: &impl Face) {
        let silent = |(id, vertex): (&VertexId, &Vertex)| {
            let standing = face.standing(*id);
            let right = matches!(
                standing,
                Some(VertexStatus::Settled | VertexStatus::Contended { next: None, .. })
            );
            let told = !vertex.ill || self.last_undurable(*id).is_some();
            // A look, or a run that a swap has cut off, leaves the outcome open.
            (right && !told && vertex.running.is_none()).then_some(*id)
        };
        let silent: Vec<VertexId> = self.vertices.iter().filter_map(silent).collect();
        for id in silent {
            self.broken(E10_RECOVERED, &format!("{id} had failed and is right"));
        }
    }

    /// Checks that a run that does not return from its cancel in time is shown as stuck (E-6).
    pub(super) fn late_runs_are_stuck(&mut self) {
        let late =
            |v: &Vertex| v.running.as_ref().is_some_and(|run| run.is_late(self.now) && !run.stuck);
        let all = self.vertices.values().filter(|vertex| late(vertex));
        for id in all.map(|vertex| vertex.declared.id).collect::<Vec<_>>() {
            self.broken(E6_ONCE, &format!("{id} does not return from its cancel and is not stuck"));
        }
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
                && !self.paused_vertices.contains(id)
                && vertex.phase == Phase::Rest
                && vertex.need == Need::No
                && vertex.declared.meta.pace.is_none()
                && vertex.declared.meta.semaphores.is_empty()
                && self.occupied(vertex.declared.traits.executor).0
                    < self.slots_of(vertex.declared.traits.executor)
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

    /// Checks that a run that a swap waits for is cancelled 30 s after the first graph that changes or removes its
    /// vertex (E-17).
    pub(super) fn graces_end(&mut self) {
        if self.pending.is_none() || self.asked == Asked::Stopping {
            return;
        }
        let grace = Duration::from_secs(30);
        let over = |v: &Vertex| v.awaited.is_some_and(|since| since.after(grace) <= self.now);
        let runs =
            |v: &Vertex| v.running.as_ref().is_some_and(|run| is_to_cancel(run) && !run.stuck);
        let late = self.vertices.values().filter(|v| over(v) && runs(v)).map(|v| v.declared.id);
        for id in late.collect::<Vec<_>>() {
            if self.is_suspended(id) {
                self.broken(E17_SWAP, &format!("{id} is waited for longer than 30 s"));
            }
        }
    }

    /// Checks that the swap is committed as soon as the vertices that it changes are at rest.
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
                let due = self.stop_due.is_some_and(|due| due <= self.now);
                let given_up = due && self.is_nobody_in_time();
                let over = !running && self.undurable.is_empty() || given_up;
                if over && !self.stopped {
                    self.broken(E16_STOP, "nothing runs, and stopped is not told");
                }
                self.cancels_came();
            }
        }
    }

    /// Checks that a drain finishes the vertices that were dirty at the request.
    fn drain_goes_on(&mut self) {
        let asked = std::mem::replace(&mut self.asked, Asked::Running);
        let all = self.clearances();
        // A vertex that became dirty since the request waits for no limiter, and may block others.
        let rests = |id: &VertexId| {
            let dirty = self.vertices.get(id).is_some_and(|vertex| vertex.need != Need::No);
            dirty && !self.drainable.contains(id)
        };
        let left: Vec<VertexId> = self
            .drained_first
            .iter()
            .copied()
            .filter(|id| self.vertices.contains_key(id))
            // During a drain no vertex needs to converge before a swap removes it.
            .filter(|id| !self.is_suspended(*id))
            .filter(|id| !self.vertices[id].ancestors.iter().any(rests))
            .filter(|id| {
                let vertex = &self.vertices[id];
                let slot = vertex.declared.traits.executor;
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

/// Returns true if a run may be cancelled, and was not yet.
fn is_to_cancel(run: &Running) -> bool {
    run.cancellable && run.cancelled.is_none()
}
