//! Events in the oracle's records.

use crate::oracle_log::{Asked, Books, Cause, Ending, Need, Phase, Running, Vertex, Watched};
use steadfast_engine::{
    Event, Notice, Outcome, Pause, Poll, RunId, RunPolicy, RunVerdict, VertexId,
};

impl Books {
    fn note_silence(&mut self, run: RunId) {
        if let Some(running) = self.running_mut(run) {
            running.is_silent = true;
        }
    }

    pub(crate) fn happen(&mut self, event: &Event) {
        self.stirs(event);
        match event {
            Event::Swap(swap) => {
                if self.asked != Asked::Stopping {
                    self.pending = Some((swap.clone(), self.now));
                    self.waits_since.get_or_insert(self.now);
                    self.await_runs();
                }
            }
            Event::Watching(id) | Event::Unwatched(id) => {
                if let Some(vertex) = self.vertices.get_mut(id) {
                    vertex.watched = Watched::Answered;
                }
            }
            Event::Received(id) => self.receives(*id),
            Event::Remade(run) => self.remakes(*run),
            Event::Supplied(run) => self.supplies(*run),
            Event::Late(run) => self.note_silence(*run),
            Event::Changed(id) => self.mark(*id, Some(Cause::Drift), Some(true)),
            Event::Suspect(id) => {
                if self.check_of(*id) == Some(RunPolicy::State) {
                    // One attempt, without a new budget.
                    self.mark(*id, None, None);
                }
            }
            Event::Doubt { vertex, .. } => self.record_doubt(*vertex),
            Event::Look(id) => self.look(*id),
            Event::RetryNow(id) => self.retry_now(*id),
            Event::Checked(run, _) | Event::Begun(run) | Event::Refused(run)
                if self.is_obsolete(*run) =>
            {
                if matches!(event, Event::Refused(_)) {
                    self.forget_intent(*run);
                }
                self.obsolete(*run, true);
            }
            Event::Ended(run, outcome) if self.is_obsolete(*run) => {
                self.obsolete(*run, !unproven(*outcome));
            }
            Event::Checked(run, verdict) => self.checked(*run, *verdict),
            Event::Begun(run) => {
                let Some(running) = self.running_mut(*run) else { return };
                running.begun = true;
                if running.cancelled.is_some() {
                    self.ended(*run, Outcome::Interrupted);
                }
            }
            Event::Refused(run) => {
                self.asks_nobody(*run);
                self.forget_intent(*run);
                self.ended(*run, Outcome::Failed { touched: false });
            }
            Event::Ended(run, outcome) => self.ended(*run, *outcome),
            Event::Pause(pause) => self.pause(*pause),
            Event::PauseSaved => self.unsaved = self.unsaved.saturating_sub(1),
            Event::Stop { grace } => {
                let due = self.now.after(*grace);
                self.stop_due = Some(self.stop_due.map_or(due, |before| before.min(due)));
                self.asked = Asked::Stopping;
            }
            Event::Durable(run) => {
                let known = self.undurable.remove(run);
                self.durable_now = known.map(|(id, outcome, applied)| (*run, id, outcome, applied));
            }
            Event::Window { window, open } => self.window(*window, *open),
            Event::PauseVertex { vertex, paused } => self.pause_vertex(*vertex, *paused),
            Event::Resume | Event::Wake => {}
        }
        self.allow_what_is_asked();
        self.allow_what_is_known(event);
    }

    fn pause_vertex(&mut self, id: VertexId, paused: bool) {
        if paused {
            self.paused_vertices.insert(id);
        } else {
            self.paused_vertices.remove(&id);
        }
    }

    /// Forgets an intent that was not recorded: there is nothing to end.
    fn forget_intent(&mut self, run: RunId) {
        let all = self.vertices.values_mut().chain(self.leaving.values_mut());
        let running = all.filter_map(|vertex| vertex.running.as_mut());
        for running in running.filter(|running| running.run == run) {
            running.intent = None;
        }
    }

    fn is_obsolete(&self, run: RunId) -> bool {
        let this = |v: &Vertex| v.running.as_ref().is_some_and(|r| r.run == run && r.obsolete);
        self.vertices.values().chain(self.leaving.values()).any(this)
    }

    /// Records the return of a stuck run whose vertex was removed meanwhile: only refreshes for its possible changes
    /// are owed.
    fn obsolete(&mut self, run: RunId, proven: bool) {
        let this = |v: &Vertex| v.running.as_ref().is_some_and(|r| r.run == run);
        let (vertices, leaving) = (self.vertices.iter(), self.leaving.iter());
        let found = vertices.chain(leaving).find(|(_, v)| this(v)).map(|(id, _)| *id);
        let Some(id) = found else { return };
        let left = self.leaving.remove(&id).and_then(|vertex| vertex.running);
        let clock = self.clock;
        let here = self.vertices.get_mut(&id).and_then(|vertex| {
            if vertex.declared.traits.repeat == RunPolicy::State {
                vertex.may(clock);
            }
            vertex.running.take()
        });
        self.back_poke(id);
        let Some(running) = left.or(here) else { return };
        if running.look {
            return;
        }
        let touched = running.applying;
        let touched = touched && !proven;
        if touched {
            self.owe(&running);
        }
        let outcome = Outcome::Interrupted;
        let pays = running.intent.is_none().then_some(false);
        let ending = Ending { running, vertex: id, outcome, pays, touched, recorded: false };
        self.ending = Some(ending);
    }

    fn check_of(&self, id: VertexId) -> Option<RunPolicy> {
        self.vertices.get(&id).map(|vertex| vertex.declared.traits.repeat)
    }

    pub(crate) fn running_mut(&mut self, run: RunId) -> Option<&mut Running> {
        self.vertices.values_mut().find_map(|v| v.running.as_mut().filter(|r| r.run == run))
    }

    /// Marks a vertex to be processed. `refill` gives it a new budget, certainly or only possibly.
    pub(crate) fn mark(&mut self, id: VertexId, cause: Option<Cause>, refill: Option<bool>) {
        let clock = self.clock;
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        if let Some(sure) = refill {
            let sure = sure && !vertex.is_running();
            vertex.refill(sure);
        }
        let newly = vertex.need == Need::No
            && vertex.phase != Phase::Unsure
            && !matches!(vertex.declared.meta.poll, Poll::Every(_));
        if vertex.phase == Phase::Operator {
            vertex.may(clock);
        } else {
            vertex.must(clock, cause);
        }
        if newly {
            self.must_back_poke(id);
        }
        self.back_poke(id);
    }

    fn look(&mut self, id: VertexId) {
        let required = self.asked == Asked::Running && !self.paused;
        let clock = self.clock;
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        if vertex.declared.traits.repeat == RunPolicy::State {
            vertex.look = Some((clock, required));
        } else if matches!(vertex.phase, Phase::Held | Phase::Shut) {
            return;
        }
        match vertex.phase {
            Phase::Failed | Phase::Held | Phase::Shut | Phase::Unsure => {
                vertex.may(clock);
                self.back_poke(id);
            }
            Phase::Rest
            | Phase::Operator
            | Phase::Delayed(_)
            | Phase::Asking { .. }
            | Phase::JustFailed { .. } => {}
        }
    }

    fn checked(&mut self, run: RunId, verdict: RunVerdict) {
        let Some(id) = self.vertex_of(run) else { return };
        let stopping = self.asked == Asked::Stopping;
        let clock = self.clock;
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let Some(running) = vertex.running.take() else { return };
        vertex.active = self.now;
        self.was_checked(id, &running, verdict);
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        if running.look {
            if matches!(vertex.phase, Phase::Held | Phase::Shut) {
                // The difference still exists, or somebody else has removed it.
                vertex.phase = Phase::Unsure;
            } else if running.cancelled.is_some() {
                vertex.may(clock);
                self.back_poke(id);
            } else if verdict != RunVerdict::Same {
                vertex.repairs_suspended = true;
                self.mark(id, Some(Cause::Drift), None);
            }
            return;
        }
        if running.cancelled.is_some() {
            self.cancelled_check(id, running, verdict);
            return;
        }
        let mut running = running;
        if running.noop != vertex.declared.meta.noop {
            self.back_poke(id);
        }
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        if running.noop != vertex.declared.meta.noop {
            // A swap has changed noop meanwhile: the strictest value wins.
            running.noop = true;
            vertex.owed_unsure |= vertex.owed.is_some();
            vertex.may(clock);
        }
        let shut = vertex.declared.meta.window.is_some_and(|window| !self.open.contains(&window));
        match verdict {
            RunVerdict::Same => {
                let sure = running.noop || !vertex.owed_unsure;
                let pays = sure.then_some(running.saw.is_some() && !running.noop);
                let before = vertex.good.0;
                vertex.went_well(&running);
                if running.noop && (running.refresh || running.saw.is_some()) {
                    // The vertex would be refreshed: settled for the order while it rests, and no more.
                    vertex.good.0 = before;
                }
                self.paid(id, &running);
                let held = running.noop && (running.refresh || running.saw.is_some());
                self.went(id, &running, Outcome::Unchanged, !held);
                self.ends(id, running, Outcome::Unchanged, pays);
            }
            RunVerdict::Differs if running.noop => vertex.would_change(&running),
            RunVerdict::Differs if shut => vertex.is_shut_out(&running),
            RunVerdict::Differs => self.begins_or_suspends(id, running),
            RunVerdict::Unknown => {
                let (due, surely) = (self.last_undurable(id), !running.noop);
                self.expected.push((due, Notice::CheckFailed(id, run), surely));
                let Some(vertex) = self.vertices.get_mut(&id) else { return };
                if running.noop {
                    self.unchecked = vertex.declared.meta.noop.then_some(id);
                    vertex.fails_perhaps(&running);
                    vertex.good.1 = running.start;
                    self.back_poke(id);
                } else {
                    vertex.fails(&running, stopping);
                    self.back_poke(id);
                }
                self.ends(id, running, Outcome::Failed { touched: false }, Some(false));
            }
        }
    }

    /// Records a check that ended just before its cancel arrived: the rules leave the result open.
    fn cancelled_check(&mut self, id: VertexId, running: Running, verdict: RunVerdict) {
        let clock = self.clock;
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        vertex.may(clock);
        vertex.fails_perhaps(&running);
        if verdict == RunVerdict::Same {
            vertex.good.1 = running.start;
            vertex.owed_unsure |= running.saw.is_some();
        }
        self.ends(id, running, Outcome::Interrupted, None);
        self.back_poke(id);
    }

    pub(crate) fn vertex_of(&self, run: RunId) -> Option<VertexId> {
        self.vertices
            .iter()
            .find(|(_, v)| v.running.as_ref().is_some_and(|r| r.run == run))
            .map(|(id, _)| *id)
    }

    fn ended(&mut self, run: RunId, outcome: Outcome) {
        let Some(id) = self.vertex_of(run) else { return };
        let stopping = self.asked == Asked::Stopping;
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let Some(running) = vertex.running.take() else { return };
        vertex.active = self.now;
        if running.look {
            let clock = self.clock;
            vertex.may(clock);
            self.has_moved(id, false);
            self.back_poke(id);
            return;
        }
        let clock = self.clock;
        let well = matches!(outcome, Outcome::Unchanged | Outcome::Changed);
        let touched = running.applying && unproven(outcome);
        if touched {
            self.owe(&running);
        }
        if well {
            self.was_seen(id, running.start);
        }
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let over = running.deadline.is_some_and(|due| due <= self.now);
        let pays = if well && running.cancelled.is_some() && over {
            vertex.fails_perhaps(&running);
            vertex.good.1 = running.start;
            vertex.owed_unsure |= running.saw.is_some();
            vertex.takes_value(&running);
            self.went(id, &running, outcome, false);
            None
        } else if well {
            let pays = (!vertex.owed_unsure).then_some(running.saw.is_some());
            vertex.went_well(&running);
            self.paid(id, &running);
            self.went(id, &running, outcome, true);
            pays
        } else {
            if running.cancelled.is_some() {
                // The run was cut off for a swap that was dropped, and is repeated at once.
                vertex.may(clock);
            }
            vertex.fails(&running, stopping || running.cancelled.is_some());
            vertex.contention.changes.push(self.now);
            self.stirred.push((self.now, id));
            self.back_poke(id);
            Some(false)
        };
        if outcome == Outcome::Changed {
            self.parent_changed(id);
        }
        let ending = Ending { running, vertex: id, outcome, pays, touched, recorded: false };
        self.ending = Some(ending);
    }

    fn ends(&mut self, vertex: VertexId, running: Running, outcome: Outcome, pays: Option<bool>) {
        self.ending =
            Some(Ending { running, vertex, outcome, pays, touched: false, recorded: false });
    }

    /// Records the refreshes owed to the children, for any outcome (E-9).
    fn owe(&mut self, running: &Running) {
        let Some(intent) = &running.intent else { return };
        self.changed_as.insert(intent.vertex, intent.class);
        let now = self.notified(intent.vertex);
        for child in now.iter().filter(|child| !intent.owes.contains(child)) {
            if let Some(vertex) = self.vertices.get_mut(child) {
                vertex.owed_unsure = true;
                vertex.asked = true;
                vertex.cause = None;
                vertex.refill(false);
                let clock = self.clock;
                vertex.may(clock);
            }
            self.drainable.insert(*child);
            self.back_poke(*child);
        }
        for child in intent.owes.clone() {
            let clock = self.clock;
            let Some(vertex) = self.vertices.get_mut(&child) else { continue };
            vertex.owed = Some(clock);
            vertex.asked = true;
            // A draining vertex has poked the child.
            self.drainable.insert(child);
            if matches!(self.asked, Asked::Pausing { drain: true, .. }) && !self.drained {
                self.drained_first.insert(child);
            }
            self.debts.insert(child, clock);
            if self.vertices[&child].declared.meta.noop {
                if let Some(vertex) = self.vertices.get_mut(&child) {
                    vertex.may(clock);
                }
                self.back_poke(child);
            } else {
                let running = self.vertices[&child].is_running();
                self.mark(child, None, Some(!running));
            }
        }
    }

    /// Records that a good run has completed the refreshes owed at its start.
    pub(super) fn paid(&mut self, id: VertexId, running: &Running) {
        if running.noop {
            return;
        }
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        if vertex.owed == running.saw {
            vertex.owed = None;
        }
        if running.refresh && self.debts.get(&id).is_some_and(|since| *since < running.start) {
            self.debts.remove(&id);
        }
    }

    /// Gives a failed child a new budget, and allows an attempt (E-10).
    fn parent_changed(&mut self, id: VertexId) {
        let clock = self.clock;
        let children: Vec<VertexId> = self.children(id).map(|(child, _)| child).collect();
        for child in children {
            let Some(vertex) = self.vertices.get_mut(&child) else { continue };
            let sure = !vertex.is_running();
            vertex.refill(sure);
            if matches!(vertex.phase, Phase::Failed | Phase::Unsure) {
                vertex.may(clock);
                self.back_poke(child);
            }
        }
    }

    fn pause(&mut self, pause: Pause) {
        let until = pause.until;
        match self.asked {
            Asked::Stopping => {}
            Asked::Running => {
                self.drained = false;
                self.drained_first.clear();
                self.drainable.clear();
                if pause.drain {
                    self.drain();
                }
                self.asked = Asked::Pausing { until, drain: pause.drain };
            }
            Asked::Pausing { drain, .. } => {
                let drain = drain && pause.drain;
                self.paused = false;
                self.asked = Asked::Pausing { until, drain };
            }
        }
    }

    /// Allows one start of each dirty vertex; vertices that it owes a refresh are added at that start.
    fn drain(&mut self) {
        let dirty = |v: &&Vertex| matches!(v.need, Need::Must { .. });
        let ticks = |v: &Vertex| matches!(v.declared.meta.poll, Poll::Every(_));
        let unsure = |v: &Vertex| v.owed_unsure || v.phase == Phase::Unsure;
        let perhaps = |v: &&Vertex| v.need != Need::No || unsure(v) || ticks(v);
        let id = |v: &Vertex| v.declared.id;
        self.drained_first = self.vertices.values().filter(dirty).map(id).collect();
        self.drainable = self.vertices.values().filter(perhaps).map(id).collect();
    }

    pub(crate) fn resumed(&mut self, event: &Event) {
        let due = matches!(self.asked, Asked::Pausing { until, .. } if until <= self.now);
        if *event != Event::Resume && !due {
            self.broken(crate::invariants::E15_PAUSE, "resumed although nobody asked");
        }
        if matches!(self.asked, Asked::Pausing { .. }) {
            self.asked = Asked::Running;
        }
        self.paused = false;
        self.may_repeat = true;
        self.make_up_for_pokes();
        let now = self.now;
        for vertex in self.vertices.values_mut() {
            vertex.active = now;
        }
    }
}

fn unproven(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Unchanged | Outcome::Failed { touched: false })
}
