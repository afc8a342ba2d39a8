//! Notices: each is checked against the records, and decides the readings that the rules leave to the engine.

use crate::invariants::{
    E4_EVENT, E6_ONCE, E10_FAILURE, E11_NOOP, E15_PAUSE, E16_STOP, E17_SWAP, E18_CONVERGED,
    HANDSHAKE,
};
use crate::oracle_log::{Asked, Books, Need, Phase, Vertex};
use std::time::Duration;
use steadfast_engine::{Event, HeldReason, Meta, Notice, Outcome, Poll, RunId, Tick, VertexId};

const HOUR: Duration = Duration::from_hours(1);

impl Books {
    pub(crate) fn hear(&mut self, event: &Event, notice: &Notice) {
        match notice {
            Notice::Loaded { added, changed, removed, kept } => {
                if (*added, *changed, *removed, *kept) != self.taken {
                    self.broken(E17_SWAP, &format!("{notice:?}, not {:?}", self.taken));
                }
            }
            Notice::SwapWaits(waits) => self.swap_waits(waits),
            Notice::SwapRefused => {
                if self.asked != Asked::Stopping {
                    self.broken(E17_SWAP, "a swap is refused although nothing stops");
                }
            }
            Notice::Ran(id, run, outcome) => self.ran(event, *id, *run, *outcome),
            Notice::CheckFailed(..) | Notice::Retrying(..) | Notice::Failed(_) => {
                self.told.push(notice.clone());
            }
            // The notice may be outdated by the time at which it is durable.
            Notice::Recovered(id) => {
                if let Some(vertex) = self.vertices.get_mut(id) {
                    vertex.ill = false;
                }
            }
            // The status of the vertex shows this at once; the notice may wait for an end that is not durable.
            Notice::Asking(..) | Notice::Excused(..) => {}
            Notice::Held(id, holding) => self.held(event, *id, *holding),
            Notice::Stuck(id, run) => {
                // The result comes late, in the very turn in which its time is over.
                let answers = matches!(event, Event::Checked(r, _) | Event::Begun(r)
                    | Event::Refused(r) | Event::Ended(r, _) if r == run);
                if !answers {
                    self.stuck(*id, *run);
                } else if let Some(running) = self.running_mut(*run) {
                    running.stuck = true;
                }
            }
            Notice::Contended { .. }
            | Notice::StillContended { .. }
            | Notice::ContentionEnded(_)
            | Notice::RepairsSuspended { .. }
            | Notice::RepairsResumed => self.note_contentions(event, notice),
            Notice::Diverged(id) => {
                if self.announced != Some(true) {
                    self.broken(E18_CONVERGED, &format!("diverged at {id}: was not converged"));
                }
                self.announced = Some(false);
                self.may_repeat = false;
            }
            Notice::Converged => self.converged(),
            Notice::Pausing(_) => {
                if !matches!(self.asked, Asked::Pausing { .. }) {
                    self.broken(E15_PAUSE, "pausing although nobody asked");
                }
            }
            Notice::Paused => self.is_paused(),
            Notice::Resumed => {}
            Notice::PauseEnds(at) => {
                let right = matches!(self.asked, Asked::Pausing { until, .. }
                    if until == *at && self.now.after(HOUR) >= until);
                if !right {
                    self.broken(E15_PAUSE, "the end of the pause is told wrongly");
                }
            }
            Notice::Stopping(_) => {
                if self.asked != Asked::Stopping {
                    self.broken(E16_STOP, "stopping although nobody asked");
                }
            }
            Notice::Stopped(_) => self.has_stopped(),
        }
    }

    fn swap_waits(&mut self, waits: &[VertexId]) {
        let must: Vec<VertexId> = self
            .vertices
            .iter()
            .filter(|(id, v)| v.is_running() && self.is_suspended(**id))
            .filter(|(_, v)| v.running.as_ref().is_some_and(|run| !run.stuck))
            .map(|(id, _)| *id)
            .collect();
        let may = |id: &VertexId| {
            let runs = self.vertices.get(id).is_some_and(|v| v.running.is_some());
            self.is_suspended(*id) && (runs || self.may_realize(*id))
        };
        if !must.iter().all(|id| waits.contains(id)) || !waits.iter().all(may) {
            self.broken(E17_SWAP, &format!("the swap waits for {waits:?}, must for {must:?}"));
        }
    }

    fn ran(&mut self, event: &Event, id: VertexId, run: RunId, outcome: Outcome) {
        let right = *event == Event::Durable(run)
            && self.durable_now.is_some_and(|(r, v, was, _)| r == run && v == id && was == outcome);
        if !right {
            self.broken(HANDSHAKE, &format!("the run of {id} is announced before it is durable"));
        }
    }

    pub(super) fn retrying(&mut self, id: VertexId, at: Tick) {
        let (now, clock) = (self.now, self.since);
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let just = matches!(vertex.phase, Phase::JustFailed { .. });
        let meta = &vertex.declared.meta;
        // An event, a look or a tick during the run is no new budget, and yet a check must follow it.
        let ticks = matches!(meta.poll, Poll::Every(_));
        let asked = vertex.need != Need::No || vertex.look.is_some() || ticks;
        let none_left = vertex.budget.1 == 0 && !asked;
        let first = meta.delay.max(Meta::SHORTEST_DELAY);
        let most = meta.delay_max.max(first);
        let doubled = 2_u32.saturating_pow(vertex.failures.saturating_sub(1).min(30));
        let longest = first.saturating_mul(doubled).min(most);
        // An earlier failure that was excused at once has not extended the wait.
        let (surely, perhaps) = vertex.excused;
        if surely < perhaps && perhaps < u8::MAX && at < now.after(longest) {
            vertex.backoff_sure = false;
        }
        let shortest = if vertex.backoff_sure { longest } else { first.min(most) };
        let in_time = at >= now.after(shortest) && at <= now.after(longest);
        let left = |n: u32| if n == u32::MAX { n } else { n.saturating_sub(1) };
        vertex.budget = (left(vertex.budget.0), left(vertex.budget.1));
        vertex.ill = true;
        vertex.excused = (0, 0);
        vertex.phase = Phase::Delayed(at);
        let low = match vertex.need {
            _ if ticks => 0,
            Need::No => clock,
            Need::Maybe(low) | Need::Must { low, .. } => low,
        };
        vertex.need = Need::Must { low, high: u64::MAX };
        vertex.cause = None;
        let failures = vertex.failures;
        self.back_poke(id);
        if !just {
            self.broken(E10_FAILURE, &format!("{id} is tried again and has not failed"));
        }
        if none_left {
            self.broken(E10_FAILURE, &format!("{id} is tried again and has no retries left"));
        }
        if !in_time {
            let wait = Duration::from_nanos(at.0.saturating_sub(now.0));
            let detail = format!(
                "{id} waits {wait:?} after failure {failures}: {shortest:?} to {longest:?}"
            );
            self.broken(E10_FAILURE, &detail);
        }
    }

    pub(super) fn failed_for_good(&mut self, id: VertexId) {
        let (clock, one_shot) = (self.clock, self.one_shot);
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let just = matches!(vertex.phase, Phase::JustFailed { .. });
        // A plan (one-shot, in noop) has no retries.
        let plans = one_shot && vertex.declared.meta.noop;
        let left = if plans { 0 } else { vertex.budget.0 };
        let forgotten = just && matches!(vertex.look.take(), Some((_, true)));
        vertex.budget = (0, 0);
        vertex.ill = true;
        vertex.excused = (0, 0);
        vertex.failed(clock);
        if !just || left > 0 {
            self.broken(E10_FAILURE, &format!("{id} failed for good with {left} retries left"));
        }
        if forgotten {
            self.broken(
                E4_EVENT,
                &format!("{id} failed for good, and the look at it is forgotten"),
            );
        }
    }

    fn held(&mut self, event: &Event, id: VertexId, holding: HeldReason) {
        let above = |a: VertexId, phase: Phase| {
            self.vertices.get(&id).is_some_and(|v| v.ancestors.contains(&a))
                && self
                    .vertices
                    .get(&a)
                    .is_some_and(|v| v.phase == phase || v.phase == Phase::Unsure)
        };
        let noop = self.vertices.get(&id).is_some_and(|v| v.declared.meta.noop);
        let (right, phase) = match holding {
            HeldReason::WouldChange | HeldReason::WouldRefresh => (noop, Phase::Held),
            HeldReason::UnknownUntil(until) if *event == (Event::Doubt { vertex: id, until }) => {
                (noop, Phase::Held)
            }
            HeldReason::UnknownUntil(a) if noop => (above(a, Phase::Held), Phase::Held),
            HeldReason::UnknownUntil(a) => (above(a, Phase::Held), Phase::Unsure),
            HeldReason::Operator => (true, Phase::Operator),
            HeldReason::Window(_) => (self.is_shut(id), Phase::Shut),
        };
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let operator = holding == HeldReason::Operator && vertex.phase != Phase::Operator;
        if !operator {
            vertex.phase = phase;
        }
        vertex.unknown_until = match holding {
            HeldReason::UnknownUntil(other) => Some(other),
            HeldReason::WouldChange
            | HeldReason::WouldRefresh
            | HeldReason::Operator
            | HeldReason::Window(_) => None,
        };
        // A window does not prove that the vertex would converge.
        vertex.ill &= phase == Phase::Shut;
        if !right || operator {
            self.broken(E11_NOOP, &format!("{id} must not be held as {holding:?}"));
        }
        if phase != Phase::Shut {
            self.would_refresh_below(id);
        }
        if holding == HeldReason::WouldChange {
            self.must_ask_below(id);
        }
    }

    /// Expects checks of the vertices that would be refreshed, also after a failure for good.
    fn must_ask_below(&mut self, id: VertexId) {
        let planned =
            |id: &VertexId| self.vertices.get(id).is_some_and(|v| v.declared.meta.planned);
        let (above, children) = (planned(&id), self.notified(id));
        let failed = |child: &VertexId| {
            let noop = |v: &Vertex| v.declared.meta.noop && v.phase == Phase::Failed;
            self.vertices.get(child).is_some_and(noop) && (above || !planned(child))
        };
        let failed: Vec<VertexId> = children.into_iter().filter(failed).collect();
        self.asked_again.extend(failed);
    }

    /// Allows checks of the vertices that would be refreshed.
    fn would_refresh_below(&mut self, id: VertexId) {
        let clock = self.clock;
        for child in self.notified(id) {
            if let Some(vertex) = self.vertices.get_mut(&child)
                && vertex.declared.meta.noop
            {
                vertex.may(clock);
                self.back_poke(child);
            }
        }
    }

    fn stuck(&mut self, id: VertexId, run: RunId) {
        let right = self.vertices.get(&id).is_some_and(|vertex| {
            let this = vertex.running.as_ref().is_some_and(|r| r.run == run);
            let late = vertex.running.as_ref().is_some_and(|r| r.is_late(self.now));
            let asked = vertex.running.as_ref().and_then(|r| r.cancelled);
            let fixed = vertex.running.as_ref().is_some_and(|r| !r.cancellable);
            let over = Self::deadline(vertex).is_some_and(|due| due <= self.now);
            let silent = vertex.running.as_ref().is_some_and(|r| r.is_silent);
            this && match asked {
                Some(_) => late || silent,
                None => (over && fixed) || silent,
            }
        });
        if let Some(running) = self.running_mut(run) {
            running.stuck = true;
        }
        if !right {
            self.broken(E6_ONCE, &format!("{id} is called stuck and has time left"));
        }
    }

    fn converged(&mut self) {
        if self.announced == Some(true) && !self.may_repeat {
            self.broken(E18_CONVERGED, "converged is told twice");
        }
        if self.pending.is_some() {
            self.broken(E18_CONVERGED, "converged is told while a swap waits");
        }
        if !self.undurable.is_empty() {
            self.broken(E18_CONVERGED, "converged is told before all is durable");
        }
        if let Some(id) = self.surely_unsettled() {
            self.broken(E18_CONVERGED, &format!("converged is told although {id} is not settled"));
        }
        self.announced = Some(true);
        self.may_repeat = false;
    }

    fn is_paused(&mut self) {
        let asked = matches!(self.asked, Asked::Pausing { .. });
        let running = self.is_anything_running();
        if !asked || running || self.paused || self.unsaved > 0 {
            let detail = format!("asked {asked}, running {running}, unsaved {}", self.unsaved);
            self.broken(E15_PAUSE, &format!("paused is told wrongly: {detail}"));
        }
        self.paused = true;
    }

    fn has_stopped(&mut self) {
        let running = self.is_anything_running();
        let due = self.stop_due.is_some_and(|due| due <= self.now);
        let given_up = due && self.is_nobody_in_time();
        if self.asked != Asked::Stopping || self.stopped || (running && !given_up) {
            self.broken(E16_STOP, "stopped is told too early, or twice");
        }
        self.stopped = true;
    }
}
