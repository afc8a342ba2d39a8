//! The named invariants of the rules, checked after every turn.

use crate::oracle::Face;
use crate::oracle_log::{Asked, Books, Need, Phase};
use steadfast_engine::{Action, Event, Mode, Notice, Poll, RunPolicy, VertexId, VertexStatus};

mod convergence;
mod end;
mod liveness;
mod queues;
mod rest;

pub(crate) use end::at_the_end;

pub(crate) const HANDSHAKE: &str = "2: start, checked, begin, begun, apply, ended, end, durable; and \
    nothing that must be durable is announced before it is durable";
pub(crate) const E1_ORDER: &str = "E-1: a vertex is started only when no ancestor blocks it, its \
    watch is established, and it is in the graph";
pub(crate) const E2_POKE: &str = "E-2: nothing in flight and no timer due: no vertex that may \
    start is left unstarted";
pub(crate) const E3_BACK_POKE: &str = "E-3: who becomes dirty back-pokes: every ancestor that had failed \
    for good gets one attempt at once";
pub(crate) const E3_ASKING: &str = "E-3: a failure counts when each settled ancestor was looked at since the failed run \
    started and none differs; one that differs is processed first, and the budget stays untouched";
pub(crate) const E4_EVENT: &str = "E-4: after every event a check starts later than the event";
pub(crate) const E5_COALESCE: &str = "E-5: any number of events before a run starts are one run: its end \
    starts no second one";
pub(crate) const E6_ONCE: &str = "E-6: never twice at once, never more starts than slots, drift before \
    load before looks";
pub(crate) const E7_GRANT: &str = "E-7: who waits in a queue leaves it when it is blocked, paused, stopped or \
    about to be swapped, and is not granted anything";
pub(crate) const E8_COST: &str = "E-8: no clean vertex is started for what happens to another";
pub(crate) const E9_REFRESH: &str = "E-9: what is owed is recorded before the apply, told at the start, \
    paid by a good run up to what it saw, and outlives everything but the child";
pub(crate) const E10_FAILURE: &str = "E-10: retries after the delay up to the budget, then failed; \
    nothing shortens a delay";
pub(crate) const E10_RECOVERED: &str =
    "E-10: who was told as failed and is right again is told as recovered";
pub(crate) const E11_NOOP: &str = "E-11: noop checks once for each cause and rests";
pub(crate) const E11_DOUBT: &str = "E-11: what a plan doubts is unknown until the other, or is asked again: never settled, \
    failed, or known to change";
pub(crate) const E12_LIMIT: &str = "E-12: every start takes a token";
pub(crate) const E13_POLL: &str = "E-13: a tick every interval";
pub(crate) const E14_SEMAPHORE: &str = "E-14: holders and lower tickets stay below the count";
pub(crate) const E15_PAUSE: &str =
    "E-15: a pause starts nothing, ends when nothing runs, and ends by itself";
pub(crate) const E16_STOP: &str = "E-16: a stop starts nothing, cancels what may be cancelled when it is \
    due, closes the watches in order";
pub(crate) const E17_SWAP: &str = "E-17: a swap waits only for what it changes or removes, and that starts \
    nothing";
pub(crate) const E18_CONVERGED: &str = "E-18: converged exactly when all is settled, nothing owed, and all \
    durable";
pub(crate) const E19_GROUPS: &str = "E-19: a group acts for all its members: who was below one is below it, what one would \
    owe it owes, and no member acts for itself";
pub(crate) const E20_CONTENTION: &str = "E-20: what is undone again and again is repaired less and less \
    often and shown; its neighbours and children go on; it ends when it is quiet";

pub(crate) const E20_REMADE: &str = "E-20: a change of what is made of something else is intentional, and that is all: it counts \
    for contentions and the repair limit, and says nothing of other runs";
pub(crate) const E20_NEIGHBOURS: &str = "E-20: who is put off and was right once holds up nobody";
pub(crate) const E20_REPAIR_LIMIT: &str = "E-20: when repairs are undone all over, the repair limit stops what nobody asked for, \
    not sooner and not later, and lets go by itself";
pub(crate) const E20_WINDOW: &str = "E-20: no change begins outside of its window, and what that held is \
    processed when it opens";
pub(crate) const E17_REALIZE: &str = "E-17: what must be right once goes on, with all that it waits for, and is not \
    removed before, as long as it can and a swap may wait";
pub(crate) const E4_VALUE: &str = "E-4, R-12: what has received a value is not settled before a run that \
    started later was well";

/// Checks everything that is visible at the end of a turn.
pub(crate) fn check(books: &mut Books, event: &Event, actions: &[Action], face: &impl Face) {
    books.handshake_goes_on(event);
    books.announces(event, actions);
    books.watches_close_in_order(actions);
    let timer_due = face.next_wakeup().is_some_and(|tick| tick <= books.now);
    if !books.stopped {
        books.timers_are_set(face);
        books.modes(face);
        books.standings(face);
        books.contentions_are_shown(face);
        books.check_repair_limit(face);
        books.neighbours_go_on(face);
        books.windows_are_heeded(face);
        books.values_are_taken(face);
        books.doubts_are_heeded(event, actions, face);
        books.back_pokes_came(face);
        books.findings_are_known(face);
        books.recoveries_are_told(face);
        books.queues_are_left(face);
        if !timer_due {
            books.nothing_is_forgotten();
            books.priorities(actions);
            books.polls_tick();
            books.deadlines_are_kept();
            books.late_runs_are_stuck();
            books.swaps_are_taken();
            books.graces_end();
            books.rests_come();
        }
        books.drained |= !timer_due && face.mode() != Mode::Draining;
        books.convergence(face);
    }
    books.convergence_is_told();
}

impl Books {
    fn handshake_goes_on(&mut self, event: &Event) {
        match event {
            Event::Checked(run, _) => {
                if let Some(running) = self.running_mut(*run)
                    && running.intent.is_none()
                {
                    self.broken(HANDSHAKE, &format!("run {} differs and does not begin", run.0));
                }
            }
            Event::Begun(run) => {
                if let Some(running) = self.running_mut(*run)
                    && running.cancelled.is_none()
                    && !running.applying
                {
                    self.broken(HANDSHAKE, &format!("run {} has begun and does not apply", run.0));
                }
            }
            _ => {}
        }
    }

    fn announces(&mut self, event: &Event, actions: &[Action]) {
        if let Event::Durable(run) = event
            && let Some((_, id, outcome, true)) = self.durable_now
            && !actions.contains(&Action::Notify(Notice::Ran(id, *run, outcome)))
        {
            self.broken(HANDSHAKE, &format!("the durable run of {id} is not announced"));
        }
        if let Event::Pause(pause) = event
            && !pause.recorded
            && !matches!(self.asked, Asked::Stopping)
            && !actions.contains(&Action::SavePause(Some(pause.until)))
        {
            self.broken(E15_PAUSE, "the pause is not recorded");
        }
        let resumed = actions.contains(&Action::Notify(Notice::Resumed));
        if resumed && (self.unsaved > 0 || matches!(self.asked, Asked::Pausing { .. })) {
            self.broken(E15_PAUSE, "resumed is told before it is durable");
        }
    }

    fn watches_close_in_order(&mut self, actions: &[Action]) {
        if !self.stopped {
            return;
        }
        let place = |id: &VertexId| self.order.iter().position(|other| other == id);
        let closed: Vec<_> = actions
            .iter()
            .filter_map(|action| match action {
                Action::Unwatch(id) => place(id),
                _ => None,
            })
            .collect();
        let edges = |a: usize, b: usize| {
            let (low, high) = (self.order.get(b), self.order.get(a));
            low.zip(high)
                .and_then(|(low, high)| Some(self.vertices.get(low)?.ancestors.contains(high)))
        };
        let wrong = closed.iter().enumerate().any(|(at, below)| {
            closed.iter().skip(at + 1).any(|above| edges(*above, *below) == Some(true))
        });
        if wrong {
            self.broken(E16_STOP, "watches close in another order");
        }
        if self.vertices.values().any(|v| v.watched != crate::oracle_log::Watched::No) {
            self.broken(E16_STOP, "stopped with an open watch");
        }
    }

    fn modes(&mut self, face: &impl Face) {
        let mode = face.mode();
        let fits = match self.asked {
            Asked::Running => mode == Mode::Running,
            Asked::Pausing { .. } if self.paused => mode == Mode::Paused,
            Asked::Pausing { drain: false, .. } => mode == Mode::Pausing,
            // A drain continues while anything runs.
            Asked::Pausing { drain: true, .. } if !self.drained && self.is_anything_running() => {
                mode == Mode::Draining
            }
            Asked::Pausing { drain: true, .. } => {
                matches!(mode, Mode::Draining | Mode::Pausing)
            }
            Asked::Stopping => matches!(mode, Mode::Stopping),
        };
        if !fits {
            self.broken(E15_PAUSE, &format!("asked {:?}, the mode is {mode:?}", self.asked));
        }
    }

    /// Checks that the replies to queries agree with the oracle's records.
    fn standings(&mut self, face: &impl Face) {
        let mut wrong = Vec::new();
        let mut tally = steadfast_engine::Counts::default();
        for id in self.leaving.keys() {
            let Some(standing) = face.standing(*id) else { continue };
            tally.total += 1;
            *count_of(&mut tally, &standing) += 1;
        }
        for (id, vertex) in &self.vertices {
            let Some(standing) = face.standing(*id) else {
                wrong.push(format!("{id} has no standing"));
                continue;
            };
            tally.total += 1;
            *count_of(&mut tally, &standing) += 1;
            if !self.stands(*id, &standing) {
                wrong.push(format!(
                    "{id} stands as {standing:?}: {:?} {:?}",
                    vertex.phase, vertex.need
                ));
            }
        }
        if tally != face.counts() {
            wrong.push(format!("counts {:?}, of standings {tally:?}", face.counts()));
        }
        for detail in wrong {
            self.broken(E4_EVENT, &detail);
        }
    }

    fn stands(&self, id: VertexId, standing: &VertexStatus) -> bool {
        let vertex = &self.vertices[&id];
        let polled = vertex.declared.meta.poll != Poll::Never;
        let must = matches!(vertex.need, Need::Must { .. });
        let resting = !vertex.is_running();
        let unsure = vertex.phase == Phase::Unsure;
        match standing {
            VertexStatus::Paused => {
                self.paused_vertices.contains(&id) && resting && (vertex.need != Need::No || polled)
            }
            VertexStatus::Settled => {
                let debt = !vertex.declared.meta.noop && self.debts.contains_key(&id);
                resting && !must && !debt && matches!(vertex.phase, Phase::Rest | Phase::Unsure)
            }
            VertexStatus::Stuck(run, _) => {
                vertex.running.as_ref().is_some_and(|r| r.run == *run && r.stuck)
            }
            VertexStatus::Running(run, _) => {
                vertex.running.as_ref().is_some_and(|r| r.run == *run && !r.look)
            }
            VertexStatus::Delayed(until) => {
                resting && (vertex.phase == Phase::Delayed(*until) || unsure)
            }
            VertexStatus::Asking(above) => {
                let ancestor = |a: &VertexId| vertex.ancestors.contains(a);
                resting
                    && matches!(vertex.phase, Phase::Asking { .. })
                    && above.iter().all(ancestor)
            }
            VertexStatus::Failed => resting && (vertex.phase == Phase::Failed || unsure),
            VertexStatus::Held(_) => {
                resting
                    && matches!(
                        vertex.phase,
                        Phase::Held | Phase::Shut | Phase::Operator | Phase::Unsure
                    )
            }
            VertexStatus::WaitingFor(above) => {
                let known = self.clearances();
                let open = |a: &VertexId| {
                    vertex.ancestors.contains(a)
                        && known.get(a).is_some_and(|c| c.strict != u64::MAX)
                };
                resting
                    && (vertex.need != Need::No || polled)
                    && above.iter().all(open)
                    && !above.is_empty()
            }
            VertexStatus::Contended { next: None, .. } => {
                resting && !must && matches!(vertex.phase, Phase::Rest | Phase::Unsure)
            }
            VertexStatus::WaitingForWatch
            | VertexStatus::Contended { next: Some(_), .. }
            | VertexStatus::WaitingForRepairLimit(_)
            | VertexStatus::WaitingForLimit(_)
            | VertexStatus::WaitingForSemaphore
            | VertexStatus::WaitingForSlot
            | VertexStatus::Suspended => resting && (vertex.need != Need::No || polled),
        }
    }

    /// Checks that no awaited timer is missing.
    fn timers_are_set(&mut self, face: &impl Face) {
        let wakeup = face.next_wakeup();
        let mut wanted = Vec::new();
        if let Asked::Pausing { until, .. } = self.asked {
            wanted.push((until, "the end of the pause".to_owned()));
        }
        for (id, vertex) in &self.vertices {
            if let Phase::Delayed(until) = vertex.phase
                && self.asked == Asked::Running
                && !vertex.is_running()
                && !self.is_suspended(*id)
                && until > self.now
            {
                wanted.push((until, format!("the retry of {id}")));
            }
            if let Poll::Every(interval) = vertex.declared.meta.poll
                && !self.one_shot
            {
                wanted.push((self.now.after(interval), format!("the next tick of {id}")));
            }
            if let Some(until) = vertex.put_off.1 {
                wanted.push((until, format!("what holds {id} back")));
            }
            if let Some(due) = Self::deadline(vertex)
                && vertex.running.as_ref().is_some_and(|r| r.cancelled.is_none() && !r.look)
                && due > self.now
            {
                wanted.push((due, format!("the deadline of {id}")));
            }
        }
        for (due, what) in wanted {
            if wakeup.is_none_or(|tick| tick > due) {
                self.broken(E10_FAILURE, &format!("nobody wakes the engine for {what}"));
            }
        }
    }

    pub(crate) fn can_be_looked_at(&self, id: VertexId) -> bool {
        self.vertices[&id].declared.traits.repeat == RunPolicy::State
    }
}

fn count_of<'a>(tally: &'a mut steadfast_engine::Counts, standing: &VertexStatus) -> &'a mut u32 {
    match standing {
        VertexStatus::Settled => &mut tally.settled,
        VertexStatus::Running(..) => &mut tally.running,
        VertexStatus::Delayed(_) => &mut tally.delayed,
        VertexStatus::Failed => &mut tally.failed,
        VertexStatus::Held(_) => &mut tally.held,
        VertexStatus::Stuck(..) => &mut tally.stuck,
        VertexStatus::Contended { .. } => &mut tally.contended,
        VertexStatus::WaitingForWatch
        | VertexStatus::WaitingFor(_)
        | VertexStatus::Asking(_)
        | VertexStatus::WaitingForLimit(_)
        | VertexStatus::WaitingForRepairLimit(_)
        | VertexStatus::WaitingForSemaphore
        | VertexStatus::WaitingForSlot
        | VertexStatus::Paused
        | VertexStatus::Suspended => &mut tally.waiting,
    }
}
