//! Contention, the repair limit and windows in the oracle's records (E-20).

use crate::invariants::{E4_EVENT, E20_CONTENTION, E20_REPAIR_LIMIT, E20_WINDOW};
use crate::oracle::Face;
use crate::oracle::holding::FREE_REPAIRS;
use crate::oracle_log::{Books, Need, Phase, Running, Vertex};
use std::time::Duration;
use steadfast_engine::{
    Class, Conflict, Culprit, Event, Intent, Meta, Notice, Outcome, Poll, RunPolicy, Tick,
    VertexId, VertexStatus, WindowId,
};

impl Vertex {
    /// Returns true if the vertex is certainly contended: its last waits are known.
    pub(crate) fn is_surely_contended(&self) -> bool {
        self.contention.since.is_some() && self.declared.traits.repeat == RunPolicy::State
    }

    /// Returns true if the changes within any minute are enough for a contention.
    pub(crate) fn is_possibly_contended(&self) -> bool {
        let changes = &self.contention.changes;
        changes.windows(Meta::REVERSALS).any(|some| {
            some.first()
                .zip(some.last())
                .is_some_and(|(first, last)| first.after(Meta::REVERSAL_WINDOW) >= *last)
        })
    }

    /// Returns true if nothing has changed the vertex for longer than it would have waited.
    fn is_quiet(&self, now: Tick) -> bool {
        self.contention.repairs.last().is_some_and(|last| {
            let yields = self.declared.meta.on_conflict == Conflict::Yield;
            let wait = if yields { Duration::ZERO } else { self.wait() };
            now > *last && now >= last.after(wait.max(Meta::REVERSAL_WINDOW))
        })
    }

    /// Returns true if the wait of the vertex may not be over.
    pub(crate) fn still_waits(&self, now: Tick) -> bool {
        self.is_possibly_contended() && self.waits_until().is_some_and(|latest| now < latest)
    }

    /// Returns the number of changes that may have been repairs since the contention was recognised.
    pub(crate) fn contention_repairs(&self) -> usize {
        let before = self.contention.from.max(Meta::REVERSALS - 1);
        self.contention.changes.len().saturating_sub(before)
    }

    /// Returns the latest end of the wait: each change since the vertex was last settled counts as a repair in one
    /// contention.
    fn waits_until(&self) -> Option<Tick> {
        let last = self.contention.changes.last()?;
        let doublings = self.contention_repairs().saturating_sub(1);
        let doublings = u32::try_from(doublings).unwrap_or(u32::MAX);
        let first = match self.declared.meta.on_conflict {
            Conflict::Win => Meta::SHORTEST_BACKOFF,
            Conflict::Backoff | Conflict::Yield => Meta::FIRST_BACKOFF,
        };
        let waits = last.after(self.wait_after(doublings)).max(self.active.after(first));
        // A vertex that yields waits again for each event, and then for a quiet time.
        Some(waits.max(self.contention.turned.unwrap_or(waits)))
    }

    pub(crate) fn forget_contention(&mut self) {
        // Notices wait for durable records, so the possible changes stay.
        (self.contention.repairs, self.contention.since) = (Vec::new(), None);
    }

    /// Returns the whole wait after the last repair, before jitter.
    fn wait(&self) -> Duration {
        let (repairs, since) = (self.contention.repairs.len(), self.contention.since.unwrap_or(0));
        self.wait_after(u32::try_from(repairs.saturating_sub(since)).unwrap_or(u32::MAX))
    }

    fn wait_after(&self, doublings: u32) -> Duration {
        match self.declared.meta.on_conflict {
            Conflict::Win => Meta::SHORTEST_BACKOFF,
            Conflict::Yield => Meta::LONGEST_BACKOFF,
            Conflict::Backoff => Meta::FIRST_BACKOFF
                .saturating_mul(2_u32.saturating_pow(doublings))
                .min(Meta::LONGEST_BACKOFF),
        }
    }
}

impl Books {
    /// Records the contentions that the engine shows, before and after this turn.
    pub(super) fn see_contentions(&mut self, face: &impl Face) {
        let now = self.now;
        for (id, vertex) in &mut self.vertices {
            let standing = face.standing(*id);
            vertex.contention.excused = false;
            if vertex.is_quiet(now) && !matches!(standing, Some(VertexStatus::Contended { .. })) {
                // The contention is over, or will be when the run in progress finds no difference.
                vertex.forget_contention();
            }
            vertex.contention.runs = match standing {
                Some(VertexStatus::Running(run, _)) => Some(run),
                _ => None,
            };
            if standing == Some(VertexStatus::Settled) {
                vertex.contention.from = vertex.contention.changes.len();
            }
            vertex.contention.shown = matches!(standing, Some(VertexStatus::Contended { .. }));
            let next = match standing {
                Some(VertexStatus::Contended { next, .. }) => next,
                Some(VertexStatus::WaitingForRepairLimit(at)) => Some(at),
                _ => None,
            };
            vertex.put_off = (vertex.put_off.1, next.filter(|at| *at > now));
            let yields = vertex.declared.meta.on_conflict == Conflict::Yield;
            if yields && vertex.put_off.0.is_none() && vertex.put_off.1.is_some() {
                // The vertex was in another queue, and needs a quiet time first.
                vertex.contention.turned =
                    vertex.contention.turned.max(Some(now.after(Meta::REVERSAL_WINDOW)));
            }
        }
    }

    /// Returns two readings of a delay by contention or the repair limit: certain, and possible, from the statuses
    /// before and after this turn.
    pub(crate) fn is_put_off(&self, vertex: &Vertex) -> (bool, bool) {
        let (before, after) = (vertex.put_off.0.is_some(), vertex.put_off.1.is_some());
        let fails = vertex.failures > 0 && vertex.backoff_sure;
        // Both readings are possible until the swap of an operator, which ends the contention, is committed in the same
        // turn.
        let operator = self.pending.as_ref().is_some_and(|(swap, _)| swap.operator);
        let perhaps = before || after || operator && vertex.still_waits(self.now);
        (after && vertex.failures == 0 && vertex.backoff_sure, perhaps && !fails)
    }

    /// Checks that the drift of a contended vertex starts no run before its wait is over (E-20).
    pub(super) fn may_repair(&mut self, id: VertexId) {
        let vertex = &self.vertices[&id];
        if vertex.asked
            || vertex.owed.is_some()
            || vertex.owed_unsure
            || !vertex.is_surely_contended()
        {
            return;
        }
        let yields = vertex.declared.meta.on_conflict == Conflict::Yield;
        if yields && vertex.contention.unmuted_until.is_some_and(|until| until > self.now) {
            self.broken(
                E20_CONTENTION,
                &format!("{id} gives way and is started before it has listened"),
            );
            return;
        }
        let Some(last) = vertex.contention.repairs.last() else { return };
        let wait = vertex.wait().mul_f64(0.75);
        if self.now < last.after(wait) {
            let detail = format!("{id} is started again within {wait:?} of its last repair");
            self.broken(E20_CONTENTION, &detail);
        }
    }

    /// Records an event of a vertex, or a look that may be due to one.
    pub(super) fn stirs(&mut self, event: &Event) {
        if let Event::Changed(id) | Event::Suspect(id) | Event::Look(id) = event {
            self.stirred_up.insert(*id);
        }
    }

    /// Returns true if the vertex runs only for the changes of the parents that notify it, and all of these were
    /// requested.
    fn follows(&self, id: VertexId) -> bool {
        let Some(vertex) = self.vertices.get(&id) else { return false };
        let alone = !self.stirred_up.contains(&id) && vertex.declared.meta.poll == Poll::Never;
        let by = self.edges.iter().filter(|(_, to, notify)| *to == id && *notify);
        let mut classes = by.filter_map(|(by, ..)| self.changed_as.get(by)).peekable();
        let refresh = vertex.running.as_ref().is_some_and(|run| run.saw.is_some());
        alone && refresh && classes.peek().is_some() && classes.all(|c| *c == Class::Intentional)
    }

    /// Checks the class of a change, its window, and the repair limit.
    pub(super) fn may_change(&mut self, intent: &Intent) {
        let id = intent.vertex;
        let Some(vertex) = self.vertices.get(&id) else { return };
        let Some(running) = vertex.running.as_ref() else { return };
        let (asked, state) =
            (running.asked || running.refresh, vertex.declared.traits.repeat == RunPolicy::State);
        let window = vertex.declared.meta.window;
        // The class identifies a run with changed inputs; such runs are bounded like the others.
        let remade = running.remade;
        let repairs = intent.class != Class::Intentional;
        // A vertex that runs at each start, and those that it notifies, have something to do each time: no contention.
        let each_start = vertex.declared.traits.repeat == RunPolicy::EachStart || running.refresh;
        let contentions =
            intent.class == Class::Contended || intent.class == Class::NotIdempotent && !each_start;
        let wrong = [
            (
                repairs && !contentions && vertex.good.1 == 0 && !vertex.done,
                "is called a repair and was never right",
            ),
            (
                !repairs && vertex.done && !asked && state && !remade,
                "repairs drift and is called intentional",
            ),
            (repairs && self.follows(id), "follows from what was asked for and is called a repair"),
            (repairs && remade, "was undone by nobody and is called a repair"),
            (
                contentions && !vertex.is_possibly_contended(),
                "is called a contention and was not undone so often",
            ),
            (
                vertex.is_surely_contended() && !contentions && !asked && !remade,
                "is contended and not called so",
            ),
        ];
        let shut = window.is_some_and(|w| !self.open.contains(&w));
        let first = vertex.contention.repairs.iter().nth_back(FREE_REPAIRS - 1);
        let is_again = first.is_some_and(|first| first.after(Meta::REVERSAL_WINDOW) > self.now);
        let repairs_suspended =
            self.repairs_suspended.is_some() && is_again && !asked && vertex.done && state;
        if let Some(running) = self.running_mut(intent.run) {
            running.class = Some(intent.class);
        }
        for (_, what) in wrong.iter().filter(|(wrong, _)| *wrong) {
            self.broken(E20_CONTENTION, &format!("{id} {what}: {:?}", intent.class));
        }
        if shut {
            self.broken(E20_WINDOW, &format!("{id} is changed and its window is closed"));
        }
        if repairs_suspended {
            self.broken(E20_REPAIR_LIMIT, &format!("{id} is repaired under the repair limit"));
        }
    }

    /// Records the good end of a run.
    pub(super) fn went(&mut self, id: VertexId, running: &Running, outcome: Outcome, sure: bool) {
        let (now, one_shot) = (self.now, self.one_shot);
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let was_done = vertex.done;
        vertex.done |= sure;
        if outcome != Outcome::Changed {
            return;
        }
        vertex.contention.changes.push(now);
        self.stirred.push((now, id));
        let drift = !running.asked && !running.refresh && !running.supplied;
        let repairs = sure && was_done && drift && !one_shot;
        if repairs && vertex.declared.traits.repeat == RunPolicy::State {
            let contention = &mut vertex.contention;
            let again = contention
                .repairs
                .last()
                .is_some_and(|last| last.after(Meta::REVERSAL_WINDOW) > now);
            if again {
                self.repeated.push(now);
            }
            contention.repairs.push(now);
            let count = contention.repairs.len();
            let first =
                count.checked_sub(Meta::REVERSALS).and_then(|at| contention.repairs.get(at));
            if first.is_some_and(|first| first.after(Meta::REVERSAL_WINDOW) >= now) {
                contention.since.get_or_insert(count);
            }
        }
    }

    /// Ends the contention of a vertex that is redefined, or that the operator wants tried again.
    pub(crate) fn forget_contention(&mut self, id: VertexId) {
        if let Some(vertex) = self.vertices.get_mut(&id) {
            vertex.forget_contention();
        }
    }

    pub(super) fn note_contention(&mut self, id: VertexId, party: Culprit, repairs: u32) {
        // The culprit of so many reversals has begun an apply for each of them.
        let known = |other: &VertexId| {
            let begun = self.begun.get(other).is_some_and(|begun| *begun >= Meta::REVERSALS - 1);
            self.vertices.contains_key(other) && begun
        };
        let ours =
            if let Culprit::Ours(other) = &party { known(other) && *other != id } else { true };
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        vertex.contention.told = true;
        if !ours
            || !vertex.is_possibly_contended()
            || (repairs as usize) > vertex.contention.changes.len()
        {
            let detail = format!("{id} is called contended by {party:?} after {repairs} repairs");
            self.broken(E20_CONTENTION, &detail);
        }
    }

    /// Checks the end of a contention: only after a quiet time longer than its wait, or on request.
    pub(super) fn contention_ends(&mut self, event: &Event, id: VertexId) {
        let now = self.now;
        let asked = *event == Event::RetryNow(id)
            || self.pending.as_ref().is_some_and(|(swap, _)| swap.operator)
            || matches!(event, Event::Swap(_));
        let Some(vertex) = self.vertices.get(&id) else { return };
        let quiet = vertex.contention.repairs.is_empty() || vertex.is_quiet(now);
        let sure = vertex.is_surely_contended();
        let must_rest = vertex.contention.unmuted_until.is_some_and(|until| until > now);
        self.forget_contention(id);
        if must_rest && !asked && !self.loaded_now {
            self.broken(E20_CONTENTION, &format!("{id} is called calm before it has listened"));
        }
        if sure && !asked && !quiet && !self.loaded_now {
            self.broken(E20_CONTENTION, &format!("{id} is called calm and was not quiet"));
        }
    }

    pub(super) fn mute(&mut self, id: VertexId) {
        let now = self.now;
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        vertex.contention.muted = true;
        if vertex.declared.meta.on_conflict == Conflict::Yield {
            vertex.contention.turned = Some(now.after(Meta::LONGEST_BACKOFF));
        }
        if vertex.need == Need::No && vertex.phase != Phase::Unsure {
            self.broken(E4_EVENT, &format!("{id} is not listened to, and nothing will check it"));
        }
    }

    pub(super) fn unmute(&mut self, id: VertexId) {
        let now = self.now;
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        vertex.contention.muted = false;
        if vertex.declared.meta.on_conflict == Conflict::Yield {
            let until = now.after(Meta::REVERSAL_WINDOW);
            // A check may follow at once, which proves more than a quiet time.
            let must = vertex.running.is_none() && !vertex.contention.excused;
            vertex.contention.unmuted_until = must.then_some(until);
            vertex.contention.turned = Some(until);
        }
    }

    /// Records that a window opens or closes.
    pub(super) fn window(&mut self, window: WindowId, open: bool) {
        if !open {
            self.open.remove(&window);
            return;
        }
        self.open.insert(window);
        let clock = self.clock;
        for id in self.order.clone() {
            let Some(vertex) = self.vertices.get_mut(&id) else { continue };
            if vertex.declared.meta.window != Some(window) {
                continue;
            }
            match vertex.phase {
                Phase::Shut => {
                    vertex.phase = Phase::Rest;
                    vertex.must(clock, None);
                }
                Phase::Unsure => vertex.may(clock),
                _ => continue,
            }
            self.back_poke(id);
        }
    }

    /// Checks that contentions are shown, and nothing is delayed for ever (E-20).
    pub(crate) fn contentions_are_shown(&mut self, face: &impl Face) {
        let mut wrong = Vec::new();
        for (id, vertex) in &self.vertices {
            match face.standing(*id) {
                Some(VertexStatus::Contended { next, .. }) => {
                    // A tick has no culprit.
                    let ticks = vertex.declared.traits.repeat == RunPolicy::Events;
                    if ticks || !vertex.is_possibly_contended() {
                        wrong.push(format!(
                            "{id} is shown as contended and was not undone so often"
                        ));
                    }
                    let latest = vertex.waits_until().max(self.repairs_suspended);
                    if next > latest {
                        wrong.push(format!("{id} is put off until {next:?}, after {latest:?}"));
                    }
                }
                Some(VertexStatus::Settled) if vertex.is_surely_contended() => {
                    wrong.push(format!("{id} is contended and shown as settled"));
                }
                _ => {}
            }
            if vertex.contention.muted && vertex.need == Need::No && vertex.phase == Phase::Rest {
                wrong.push(format!("{id} is clean, and its events are not delivered"));
            }
        }
        for detail in wrong {
            self.broken(E20_CONTENTION, &detail);
        }
    }
}

impl Books {
    pub(super) fn is_shut(&self, id: VertexId) -> bool {
        let window = self.vertices.get(&id).and_then(|vertex| vertex.declared.meta.window);
        window.is_some_and(|window| !self.open.contains(&window))
    }

    /// Records a difference: the run goes on, or waits for the end of the repair limit.
    pub(super) fn begins_or_suspends(&mut self, id: VertexId, running: Running) {
        let (clock, repairs_suspended) =
            (self.clock, self.repairs_suspended.is_some_and(|until| until > self.now));
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let drift = !running.asked_surely && !running.refresh && !running.noop;
        if repairs_suspended && drift && vertex.contention.runs != Some(running.run) {
            vertex.must(clock, None);
            vertex.repairs_suspended = true;
            self.back_poke(id);
        } else {
            vertex.running = Some(running);
        }
    }
}

impl Books {
    fn must(&mut self, right: bool, detail: &str) {
        if !right {
            self.broken(E20_CONTENTION, detail);
        }
    }

    pub(super) fn note_contentions(&mut self, event: &Event, notice: &Notice) {
        match notice {
            Notice::Contended { vertex, party, repairs } => {
                self.note_contention(*vertex, *party, *repairs);
            }
            Notice::StillContended { vertex, .. } => {
                let told = self.vertices.get(vertex).is_some_and(|v| v.contention.told);
                self.must(told, &format!("{vertex} is still contended, and since when?"));
            }
            Notice::ContentionEnded(id) => self.contention_ends(event, *id),
            Notice::RepairsSuspended { .. } | Notice::RepairsResumed => {
                self.note_suspension(notice);
            }
            _ => {}
        }
    }
}
