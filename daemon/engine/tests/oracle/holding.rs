//! Limits on changes other than contention, which must not delay other vertices: the repair limit and windows; and
//! values, which request a run.

use crate::invariants::{E4_VALUE, E20_NEIGHBOURS, E20_REPAIR_LIMIT, E20_WINDOW};
use crate::oracle::Face;
use crate::oracle_log::{Books, Cause, Phase, Running, Vertex};
use std::time::Duration;
use steadfast_engine::{HeldReason, Notice, RunId, Tick, VertexId, VertexStatus};

/// The period over which repairs are counted, and the time for which the repair limit holds.
const MINUTE: Duration = Duration::from_mins(1);

/// The number of repairs of one vertex within a minute that the repair limit does not delay.
pub(super) const FREE_REPAIRS: usize = 3;

impl Books {
    /// Returns the largest possible number of repeated repairs in the last minute, with each change counted as a
    /// repair.
    fn repeated_at_most(&mut self) -> usize {
        let now = self.now;
        self.stirred.retain(|(at, _)| at.after(2 * MINUTE) > now);
        let again = |at: &Tick, id: &VertexId, before: &[(Tick, VertexId)]| {
            before.iter().any(|(earlier, other)| other == id && earlier.after(MINUTE) > *at)
        };
        let (all, mut count) = (&self.stirred, 0);
        for (n, (at, id)) in all.iter().enumerate() {
            count += usize::from(at.after(MINUTE) > now && again(at, id, &all[..n]));
        }
        count
    }

    pub(super) fn note_suspension(&mut self, notice: &Notice) {
        let now = self.now;
        match *notice {
            Notice::RepairsSuspended { repairs, until } => {
                let newly = self.repairs_suspended.replace(until).is_none() && !self.one_shot;
                let (limit, most) = (self.repair_limit, self.repeated_at_most());
                let enough = limit.is_some_and(|limit| repairs > limit);
                self.repeated.clear();
                if !newly || !enough || repairs as usize > most || until != now.after(MINUTE) {
                    let detail = format!("suspended after {repairs} of {limit:?}, {most} at most");
                    self.broken(E20_REPAIR_LIMIT, &detail);
                }
            }
            Notice::RepairsResumed => {
                let early = self.repairs_suspended.take().is_none_or(|until| until > now);
                if early {
                    self.broken(E20_REPAIR_LIMIT, "the repair limit is released too early");
                }
            }
            _ => {}
        }
    }

    /// Checks that the repair limit follows too many repeated repairs, and delays nothing when it is off.
    pub(crate) fn check_repair_limit(&mut self, face: &impl Face) {
        let now = self.now;
        self.repeated.retain(|at| at.after(MINUTE) > now);
        let many = self.repair_limit.is_some_and(|limit| self.repeated.len() > limit as usize);
        if many && self.repairs_suspended.is_none() {
            let detail =
                format!("{} repeated repairs in a minute, no suspension", self.repeated.len());
            self.broken(E20_REPAIR_LIMIT, &detail);
        }
        for id in self.order.clone() {
            let repairs_suspended =
                matches!(face.standing(id), Some(VertexStatus::WaitingForRepairLimit(_)));
            if repairs_suspended && self.repairs_suspended.is_none() {
                self.broken(
                    E20_REPAIR_LIMIT,
                    &format!("{id} waits for a suspension that is not on"),
                );
            }
            let changes = self.vertices.get(&id).map(|vertex| vertex.contention.changes.iter());
            let first = changes.and_then(|mut changes| changes.nth_back(FREE_REPAIRS - 1));
            if repairs_suspended && first.is_none_or(|first| first.after(MINUTE) <= now) {
                let detail = format!("{id} waits and has repairs left within this minute");
                self.broken(E20_REPAIR_LIMIT, &detail);
            }
        }
        if self.repairs_suspended.is_some_and(|until| until.after(MINUTE) < now) {
            self.broken(E20_REPAIR_LIMIT, "the repair limit does not let go");
        }
    }

    /// Checks that no vertex waits for a delayed one that has converged once (E-20).
    pub(crate) fn neighbours_go_on(&mut self, face: &impl Face) {
        let mut wrong = Vec::new();
        for id in &self.order {
            let Some(VertexStatus::WaitingFor(above)) = face.standing(*id) else { continue };
            for other in above {
                let put_off = matches!(
                    face.standing(other),
                    Some(
                        VertexStatus::Contended { next: Some(_), .. }
                            | VertexStatus::WaitingForRepairLimit(_)
                    )
                );
                let right = self.vertices.get(&other).is_some_and(|vertex| {
                    vertex.good.0 > 0 && vertex.failures == 0 && vertex.backoff_sure
                });
                if put_off && right {
                    wrong.push(format!("{id} waits for {other}, which is put off"));
                }
            }
        }
        for detail in wrong {
            self.broken(E20_NEIGHBOURS, &detail);
        }
    }

    /// Checks that no vertex is held by an open window, or by another vertex's window.
    pub(crate) fn windows_are_heeded(&mut self, face: &impl Face) {
        for id in self.order.clone() {
            let Some(VertexStatus::Held(HeldReason::Window(window))) = face.standing(id) else {
                continue;
            };
            let own = self.vertices.get(&id).and_then(|vertex| vertex.declared.meta.window);
            let meta = self.vertices.get(&id).map(|vertex| &vertex.declared.meta);
            let only_checked = meta.is_some_and(|meta| meta.noop && !meta.planned);
            if own != Some(window) || self.open.contains(&window) || only_checked {
                self.broken(E20_WINDOW, &format!("{id} is held by {window:?}, and is not shut"));
            }
        }
    }

    /// Records a received value, which counts as a foreign event even during the vertex's own run.
    pub(super) fn receives(&mut self, id: VertexId) {
        let clock = self.clock;
        self.mark(id, Some(Cause::Drift), Some(true));
        if let Some(vertex) = self.vertices.get_mut(&id) {
            vertex.received = Some(clock);
            // The sender has made the vertex differ; nobody undid anything.
            (vertex.asked, vertex.asked_surely) = (true, true);
        }
    }

    /// Records that a run has changed inputs: nobody undid the difference that it finds. The run is bounded like a
    /// repair of drift all the same.
    pub(super) fn remakes(&mut self, run: RunId) {
        if let Some(running) = self.running_mut(run) {
            running.remade = true;
        }
    }

    /// Records that others have changed the source of a copy: its change is no repair, and only those others bound it.
    pub(super) fn supplies(&mut self, run: RunId) {
        if let Some(running) = self.running_mut(run) {
            running.supplied = true;
        }
    }

    /// Checks that a value is not lost by a run that did not receive it, or failed.
    pub(crate) fn values_are_taken(&mut self, face: &impl Face) {
        for id in self.order.clone() {
            let open = self.vertices.get(&id).is_some_and(|vertex| vertex.received.is_some());
            let rests = matches!(
                face.standing(id),
                Some(VertexStatus::Settled | VertexStatus::Contended { next: None, .. })
            );
            if open && rests {
                self.broken(E4_VALUE, &format!("{id} is settled, and its value was not taken"));
            }
        }
    }
}

impl Books {
    /// Records the operator's request, which ends a contention.
    pub(super) fn retry_now(&mut self, id: VertexId) {
        self.forget_contention(id);
        if let Some(vertex) = self.vertices.get_mut(&id) {
            if matches!(vertex.phase, Phase::Operator | Phase::Delayed(_)) {
                vertex.phase = Phase::Rest;
            }
            (vertex.asked, vertex.asked_surely) = (true, true);
        }
        self.mark(id, Some(Cause::Drift), Some(true));
    }
}

impl Vertex {
    /// Records that a run has used the values received before its start.
    pub(super) fn takes_value(&mut self, running: &Running) {
        self.received = self.received.filter(|since| *since >= running.start);
    }

    pub(super) fn is_shut_out(&mut self, running: &Running) {
        self.takes_value(running);
        self.phase = Phase::Shut;
    }
}
