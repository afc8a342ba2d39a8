//! Actions: each is checked against the rules, then recorded.

use crate::invariants::{
    E1_ORDER, E3_ASKING, E4_EVENT, E5_COALESCE, E6_ONCE, E7_GRANT, E8_COST, E9_REFRESH,
    E10_FAILURE, E11_NOOP, E12_LIMIT, E14_SEMAPHORE, E15_PAUSE, E16_STOP, E17_SWAP, HANDSHAKE,
};
use crate::oracle_log::{Asked, Books, Cause, Need, Phase, Running, Watched};
use std::sync::Arc;
use steadfast_engine::{
    Action, Event, Intent, Outcome, Poll, Record, RunId, RunPolicy, Stamp, Start, VertexId,
};

impl Books {
    pub(crate) fn act(&mut self, event: &Event, action: &Action) {
        match action {
            Action::Watch(id) => match self.vertices.get_mut(id) {
                Some(vertex) if !self.one_shot && vertex.declared.meta.poll == Poll::Never => {
                    vertex.watched = Watched::Asked;
                }
                Some(_) | None => self.broken(E1_ORDER, &format!("a watch on {id} is not wanted")),
            },
            Action::Unwatch(id) => {
                if let Some(vertex) = self.vertices.get_mut(id) {
                    vertex.watched = Watched::No;
                }
            }
            Action::Start(start) => self.start(start),
            Action::Begin(intent) => self.begin(event, intent),
            Action::Apply(run, id) => self.apply(event, *run, *id),
            Action::End(record) => self.end(record),
            Action::Cancel(run, id) => {
                let crossed = match event {
                    Event::Checked(r, _)
                    | Event::Begun(r)
                    | Event::Refused(r)
                    | Event::Ended(r, _) => r == run,
                    _ => matches!(event, Event::Swap(_)),
                };
                if !crossed {
                    self.cancel(*run, *id);
                }
            }
            Action::Forget(id, _) => {
                if self.vertices.contains_key(id) {
                    self.broken(E17_SWAP, &format!("{id} is forgotten and still in the graph"));
                }
            }
            Action::Mute(id) => self.mute(*id),
            Action::Unmute(id) => self.unmute(*id),
            Action::SavePause(_) => self.unsaved += 1,
            Action::Notify(notice) => self.hear(event, notice),
        }
    }

    fn start(&mut self, start: &Start) {
        let id = start.vertex;
        if !self.vertices.contains_key(&id) {
            return self.broken(E17_SWAP, &format!("{id} is started and not in the graph"));
        }
        if self.last_run.is_some_and(|last| start.run <= last) {
            self.broken(HANDSHAKE, &format!("run {} of {id} is not a new number", start.run.0));
        }
        self.last_run = Some(start.run);
        if self.vertices[&id].running.is_some() {
            self.broken(E6_ONCE, &format!("{id} is started while it runs"));
        }
        self.may_start_now(id, start.look);
        if start.look {
            self.may_look(id);
        } else {
            self.may_process(start);
        }
        self.book_start(start);
        self.slot_was_free(id);
    }

    /// Checks mode, swap and stop at a start.
    fn may_start_now(&mut self, id: VertexId, look: bool) {
        match self.asked {
            Asked::Running if !self.paused => {}
            Asked::Pausing { drain: true, .. } if self.drainable.contains(&id) && !look => {}
            Asked::Running | Asked::Pausing { .. } => {
                self.broken(E15_PAUSE, &format!("{id} is started in a pause"));
            }
            Asked::Stopping => self.broken(E16_STOP, &format!("{id} is started after the stop")),
        }
        if self.paused_vertices.contains(&id) {
            self.broken(E15_PAUSE, &format!("{id} is started while it is paused"));
        }
        if self.is_suspended(id) && !self.may_be_needed(id) {
            self.broken(E17_SWAP, &format!("{id} is started while a swap waits that changes it"));
        }
    }

    fn may_look(&mut self, id: VertexId) {
        let vertex = &self.vertices[&id];
        if vertex.look.is_none() || vertex.declared.traits.repeat != RunPolicy::State {
            self.broken(E8_COST, &format!("{id} is looked at and nobody asked"));
        }
    }

    fn may_process(&mut self, start: &Start) {
        let id = start.vertex;
        let vertex = &self.vertices[&id];
        let meta = Arc::clone(&vertex.declared.meta);
        let (watched, token) = (self.is_watched(vertex), self.has_token(vertex));
        let (need, phase, owed) = (vertex.need, vertex.phase, vertex.owed.is_some());
        let (lenient, queued) = (vertex.bucket_unsure, vertex.queued);
        let refresh_open = vertex.owed_unsure || meta.noop;
        let tick = need == Need::No || vertex.polled;
        if tick && !self.poll_is_due(id) {
            let own = self.turn_of == Some(id);
            let rule = if own { E5_COALESCE } else { E8_COST };
            self.broken(rule, &format!("{id} is started and was clean"));
        }
        let blocking = self.surely_blocking(id);
        if !blocking.is_empty() {
            let rule = if queued { E7_GRANT } else { E1_ORDER };
            self.broken(rule, &format!("{id} is started while {blocking:?} block it"));
        }
        if phase == Phase::Operator {
            self.broken(E9_REFRESH, &format!("{id} is started and waits for the operator's word"));
        }
        if !watched {
            self.broken(E1_ORDER, &format!("{id} is started before its watch is established"));
        }
        if !token && !lenient {
            self.broken(E12_LIMIT, &format!("{id} is started without a token"));
        }
        if let Phase::Asking { since, .. } = phase
            && !self.may_be_excused(id, since)
        {
            self.broken(E3_ASKING, &format!("{id} is started while it asks its ancestors"));
        }
        if let Phase::Delayed(until) = phase
            && until > self.now
        {
            self.broken(E10_FAILURE, &format!("{id} is started in its delay"));
        }
        if start.refresh != owed && !refresh_open {
            let detail = format!("{id} is started with refresh = {}, owed: {owed}", start.refresh);
            self.broken(E9_REFRESH, &detail);
        }
        if start.noop != meta.noop {
            self.broken(E11_NOOP, &format!("{id} is started with noop = {}", start.noop));
        }
        self.semaphores_allow(id);
        self.may_repair(id);
        if self.vertices[&id].contention.muted {
            self.broken(E4_EVENT, &format!("{id} is started while its events are not delivered"));
        }
    }

    /// Returns true if a poll may be due: one for each whole interval since the load, at most (E-13).
    fn poll_is_due(&mut self, id: VertexId) -> bool {
        let now = self.now;
        let Some(vertex) = self.vertices.get_mut(&id) else { return false };
        let Poll::Every(interval) = vertex.declared.meta.poll else { return false };
        let length = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        let due = (now.0 - vertex.loaded.0) / length > vertex.polls;
        vertex.polls += u64::from(due);
        due
    }

    /// Checks that holders and lower tickets leave room in each semaphore (E-14).
    fn semaphores_allow(&mut self, id: VertexId) {
        let all = self.clearances();
        let mine = self.vertices[&id].ticket.1.unwrap_or(u64::MAX);
        for semaphore in self.vertices[&id].declared.meta.semaphores.clone() {
            let count = self.counts.get(semaphore.0 as usize).copied().unwrap_or(0);
            let holders = self.holders(semaphore.0);
            let lower = self
                .vertices
                .iter()
                .filter(|(other, _)| **other != id)
                .filter(|(_, v)| v.declared.meta.semaphores.contains(&semaphore))
                .filter(|(other, v)| {
                    v.ticket.0.is_some_and(|t| t < mine) && self.is_surely_ready(**other, &all)
                })
                .count();
            if holders as usize + lower >= count as usize {
                let detail = format!(
                    "{id} is started: semaphore {} of {count} has {holders} holders, {lower} earlier tickets",
                    semaphore.0
                );
                self.broken(E14_SEMAPHORE, &detail);
            }
        }
    }

    fn book_start(&mut self, start: &Start) {
        self.starts_again(start);
        let (clock, now) = (self.clock, self.now);
        let Some(vertex) = self.vertices.get_mut(&start.vertex) else { return };
        let was_failed = vertex.phase == Phase::Failed;
        let ticks = matches!(vertex.declared.meta.poll, Poll::Every(_));
        let cause = match start.look {
            true => Some(Cause::Look),
            false if ticks => None,
            false => vertex.cause,
        };
        vertex.look = None;
        self.drained_first.remove(&start.vertex);
        if !start.look {
            self.late_pokes.remove(&start.vertex);
            if matches!(self.asked, Asked::Pausing { .. }) {
                // Later marks wait for the resume.
                self.drainable.remove(&start.vertex);
            }
            if vertex.owed_unsure && !start.noop {
                // The start shows the reading of the engine.
                vertex.owed_unsure = false;
                vertex.owed = start.refresh.then_some(vertex.owed.unwrap_or(clock));
            }
            vertex.need = Need::No;
            vertex.polled = false;
            vertex.repairs_suspended = false;
            vertex.contention.unmuted_until = None;
            vertex.cause = None;
            vertex.phase = Phase::Rest;
            vertex.unknown_until = None;
            vertex.ticket = (None, None);
            if let Some(pace) = vertex.declared.meta.pace {
                vertex.full_at = vertex.full_at.max(now.0) + pace.period_ns;
            }
        }
        if let Some(cause) = cause {
            self.started_as.insert(start.vertex, cause);
        }
        let timeout = vertex.declared.meta.timeout.or(vertex.declared.traits.timeout);
        let asked = (vertex.asked, vertex.asked_surely);
        if !start.look {
            (vertex.asked, vertex.asked_surely) = (false, false);
        }
        vertex.running = Some(Running {
            asked: asked.0,
            asked_surely: asked.1,
            remade: false,
            supplied: false,
            class: None,
            run: start.run,
            definition: vertex.declared.definition,
            executor: vertex.declared.traits.executor,
            start: clock,
            at: now,
            deadline: timeout.map(|length| now.after(length)),
            cancellable: vertex.declared.traits.cancellable,
            look: start.look,
            noop: start.noop,
            refresh: start.refresh,
            saw: vertex.owed,
            saw_stamp: if vertex.owed.is_some() { vertex.owed_stamp } else { Stamp::NEVER },
            semaphores: vertex.declared.meta.semaphores.clone(),
            intent: None,
            begun: false,
            applying: false,
            is_silent: false,
            cancelled: None,
            was_failed,
            stuck: false,
            obsolete: false,
        });
    }

    fn slot_was_free(&mut self, id: VertexId) {
        let class = self.vertices[&id].declared.traits.executor;
        let (occupied, written_off) = self.occupied(class);
        if occupied > self.slots_of(class) + written_off {
            self.broken(E6_ONCE, &format!("{id} is started and no {class:?} slot is free"));
        }
    }

    fn begin(&mut self, event: &Event, intent: &Intent) {
        let notified: Vec<VertexId> = self.notified(intent.vertex).into_iter().collect();
        let mut owes = intent.owes.clone();
        owes.sort_unstable();
        if owes != notified {
            let detail = format!("{} intends to owe {owes:?}, not {notified:?}", intent.vertex);
            self.broken(E9_REFRESH, &detail);
        }
        let follows = matches!(event, Event::Checked(run, _) if *run == intent.run);
        let definition = self.vertices.get(&intent.vertex).map(|v| v.declared.definition);
        let Some(running) = self.running_mut(intent.run) else {
            return self.broken(HANDSHAKE, &format!("{} begins and does not run", intent.vertex));
        };
        let right = follows
            && !running.look
            && !running.noop
            && running.cancelled.is_none()
            && running.intent.is_none()
            && running.saw_stamp < intent.stamp
            && definition == Some(intent.definition);
        running.intent = Some(intent.clone());
        if !right {
            self.broken(HANDSHAKE, &format!("{} must not begin like that", intent.vertex));
        }
        self.may_change(intent);
    }

    fn apply(&mut self, event: &Event, run: RunId, id: VertexId) {
        *self.begun.entry(id).or_default() += 1;
        let right = *event == Event::Begun(run)
            && self.running_mut(run).is_some_and(|running| {
                let once = !running.applying && running.cancelled.is_none();
                running.applying = true;
                once && running.begun && running.intent.is_some()
            });
        if !right {
            self.broken(HANDSHAKE, &format!("{id} must not apply: no begin of it is durable"));
        }
    }

    fn end(&mut self, record: &Record) {
        let Some(mut ending) = self.ending.take() else {
            return self.broken(HANDSHAKE, &format!("{} has no run that ends", record.vertex));
        };
        let running = &ending.running;
        let begun = running.intent.is_some();
        if running.run != record.run || ending.recorded {
            self.broken(HANDSHAKE, &format!("{} is not the run that ends", record.vertex));
        }
        if running.intent.as_ref().map(|intent| intent.stamp) != record.begun {
            self.broken(HANDSHAKE, &format!("{} ends another begin", record.vertex));
        }
        if running.definition != record.definition {
            let wrong = record.definition;
            self.broken(HANDSHAKE, &format!("{} did not run definition {wrong}", record.vertex));
        }
        if !begun && ending.pays == Some(false) {
            self.broken(HANDSHAKE, &format!("{} has nothing to record", record.vertex));
        }
        let sure = running.cancelled.is_none() && !running.obsolete;
        if begun && ending.outcome != record.outcome && sure {
            self.broken(HANDSHAKE, &format!("{} ended as {:?}", record.vertex, ending.outcome));
        }
        let intended = running.intent.as_ref().map(|i| i.owes.clone()).unwrap_or_default();
        let must: Vec<VertexId> = intended
            .iter()
            .copied()
            .filter(|child| ending.touched && self.vertices.contains_key(child))
            .collect();
        let now = self.notified(record.vertex);
        let may = |c: &VertexId| ending.touched && (must.contains(c) || now.contains(c));
        if !must.iter().all(|c| record.owes.contains(c)) || !record.owes.iter().all(may) {
            let detail = format!("{} owes {:?}, must {must:?}", record.vertex, record.owes);
            self.broken(E9_REFRESH, &detail);
        }
        self.pays(&ending, record);
        if ending.pays.is_none() && record.paid.is_some() {
            // The rules leave open if the run was good; the record says that it was.
            self.paid(ending.vertex, &ending.running);
        }
        ending.recorded = true;
        let entry = (record.vertex, record.outcome, ending.running.applying);
        self.undurable.insert(record.run, entry);
        self.ending = Some(ending);
    }

    /// Checks that the record completes the refreshes owed at the start, and no later ones.
    fn pays(&mut self, ending: &crate::oracle_log::Ending, record: &Record) {
        let owed = self.vertices.get(&ending.vertex).filter(|vertex| vertex.owed.is_some());
        let still = owed.map(|vertex| vertex.owed_stamp);
        let right = match (ending.pays, record.paid) {
            (None, _) | (Some(false), None) => true,
            (Some(true), None) => false,
            (Some(true), Some(paid)) => {
                ending.running.saw_stamp <= paid && still.is_none_or(|owed| paid < owed)
            }
            (Some(false), Some(paid)) => {
                matches!(ending.outcome, Outcome::Changed | Outcome::Unchanged)
                    && still.is_none_or(|owed| paid < owed)
            }
        };
        if !right {
            let detail = format!("{} pays {:?}, is owed {still:?}", ending.vertex, record.paid);
            self.broken(E9_REFRESH, &detail);
        }
    }

    pub(super) fn cancel(&mut self, run: RunId, id: VertexId) {
        let now = self.now;
        let suspended = self.is_suspended(id);
        let stop = self.stop_due.is_some_and(|due| due <= now);
        let Some(vertex) = self.vertices.get_mut(&id) else {
            return self.broken(HANDSHAKE, &format!("{id} is cancelled and not in the graph"));
        };
        let due = Self::deadline(vertex).is_some_and(|due| due <= now);
        let cancellable = vertex.running.as_ref().is_some_and(|running| running.cancellable);
        let known = match vertex.running.as_mut().filter(|running| running.run == run) {
            Some(running) => {
                let first = running.cancelled.is_none();
                running.cancelled.get_or_insert(now);
                first
            }
            None => false,
        };
        if !known || !(due || stop || suspended) {
            self.broken(E16_STOP, &format!("{id} is cancelled without a reason"));
        }
        if !cancellable {
            self.broken(E16_STOP, &format!("{id} is cancelled and its kind forbids it"));
        }
    }
}
