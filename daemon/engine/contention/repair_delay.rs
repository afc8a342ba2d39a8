//! The delay of contended repairs (E-20): each repair of drift waits longer than the one before, until the contention
//! ends.

use crate::contention::recognition::ASKED;
use crate::engine::Engine;
use crate::interface::action::{Action, Culprit, Notice};
use crate::interface::ids::{Tick, VertexId};
use crate::interface::metaparams::{Conflict, Meta};
use crate::state::deadlines::Timer;
use crate::state::vertex::{Causes, Phase, Place, Vertex, Watch};
use std::time::Duration;
use steadfast_traits::ExecutorKind;

impl Engine {
    /// Makes the next repair of a vertex wait longer if its repairs are undone again and again. Returns the notice that
    /// is due for that.
    pub(super) fn slow_down_if_contended(
        &mut self,
        id: VertexId,
        party: Option<Culprit>,
    ) -> Option<Notice> {
        let now = self.now;
        let deed = self.vertex(id).is_some_and(|vertex| !vertex.is_checkable());
        let by_ours = matches!(party, Some(Culprit::Itself | Culprit::Ours(_)));
        let contention = self.contentions.get_mut(&id)?;
        // An operation that others trigger is not a contention, however often it runs.
        if contention.since.is_none() && !(contention.is_contention() && (!deed || by_ours)) {
            return None;
        }
        contention.since.get_or_insert(now);
        // An operation that no longer loops is triggered by others.
        contention.party = party.or_else(|| deed.then_some(Culprit::Foreign));
        let notice = contention.next_notice(id, now);
        if deed && !self.is_ours_to_blame(id) {
            self.record_other_cause(id);
        } else {
            self.wait_longer(id);
        }
        notice
    }

    /// Returns the time until which contention or the repair limit delays the repair of drift. Requested runs are not
    /// delayed.
    pub(crate) fn is_delayed(&self, id: VertexId) -> Option<Tick> {
        let vertex = self.vertex(id)?;
        if vertex.causes.has(ASKED.and(Causes::OWED)) {
            return None;
        }
        let suspended = self.suspended_until(id).filter(|_| vertex.causes.has(Causes::LOOK));
        let contention = self.contentions.get(&id).filter(|_| vertex.contended);
        suspended
            .max(contention.map(|contention| contention.not_before))
            .filter(|at| *at > self.now)
    }

    /// Delays a vertex with `on_conflict: yield` until a full period without events has passed (see `backoff_over`). A
    /// pause, a parent or a swap may have outlasted its wait; that time does not count.
    pub(crate) fn must_listen(&mut self, id: VertexId) {
        let until = self.now.after(Meta::REVERSAL_WINDOW);
        let wanted = ASKED.and(Causes::OWED);
        let yields = |vertex: &Vertex| {
            let gives_way = vertex.contended && vertex.meta.on_conflict == Conflict::Yield;
            gives_way && !vertex.causes.has(wanted)
        };
        if !self.vertex(id).is_some_and(yields) || self.is_delayed(id).is_some() {
            return;
        }
        if let Some(contention) = self.contentions.get_mut(&id) {
            contention.not_before = until;
            self.listen(id);
        }
    }

    /// Ends the back-off of a vertex. A vertex that yields may run only after a period in which its events were
    /// delivered and none came.
    pub(crate) fn backoff_over(&mut self, id: VertexId, at: Tick) {
        let now = self.now;
        let Some(vertex) = self.vertex_mut(id).filter(|v| v.place == Place::Backoff(at)) else {
            return;
        };
        vertex.place = Place::Nowhere;
        let yields = vertex.contended && vertex.meta.on_conflict == Conflict::Yield;
        self.touch(id);
        let Some(contention) =
            self.contentions.get_mut(&id).filter(|f| yields && f.not_before <= now)
        else {
            return;
        };
        if contention.muted {
            contention.not_before = now.after(Meta::REVERSAL_WINDOW);
            self.listen(id);
        } else {
            self.end_contention(id);
        }
    }

    /// Stops the events of a delayed vertex if enough is known about its culprit: no more events are needed before its
    /// next run.
    pub(crate) fn delay_repair(&mut self, id: VertexId, heard: bool) {
        let now = self.now;
        let Some(vertex) = self.vertex(id).filter(|vertex| vertex.contended) else { return };
        let yields = vertex.meta.on_conflict == Conflict::Yield;
        if yields && !heard {
            // A look does not prove that somebody has touched the vertex.
            return;
        }
        let command = vertex.traits.executor == ExecutorKind::Command;
        let waits = vertex.run().is_none() && vertex.watch == Watch::Established;
        let later = self.is_delayed(id).is_some() || matches!(vertex.phase, Phase::Delayed(_));
        let waits = waits && vertex.causes.any() && later;
        let Some(contention) = self.contentions.get_mut(&id).filter(|f| waits && !f.muted) else {
            return;
        };
        // A vertex that is not a command, undone while none of our runs was writing, was undone by somebody else.
        let told = contention.party.is_some() && !command && contention.round.suspects.is_empty();
        if !(contention.round.says_all(true) || yields || told) {
            return;
        }
        contention.muted = true;
        // A vertex that yields makes no repair, so the next event has to trigger the summary.
        let mut lasts = None;
        if yields {
            contention.not_before = now.after(Meta::LONGEST_BACKOFF);
            if contention.round.foreign {
                contention.party = Some(Culprit::Foreign);
            }
            lasts = contention.next_notice(id, now);
        }
        self.out.push(Action::Mute(id));
        if let Some(summary) = lasts {
            self.notify_in_order(id, summary);
        }
        self.touch(id);
    }

    /// Delivers the events of a vertex again.
    pub(crate) fn listen(&mut self, id: VertexId) {
        if let Some(contention) = self.contentions.get_mut(&id)
            && std::mem::take(&mut contention.muted)
        {
            self.out.push(Action::Unmute(id));
        }
    }

    pub(crate) fn first_wait(&self, id: VertexId) -> Duration {
        match self.vertex(id).map(|v| v.meta.on_conflict) {
            Some(Conflict::Win) => Meta::SHORTEST_BACKOFF,
            Some(Conflict::Backoff | Conflict::Yield) | None => Meta::FIRST_BACKOFF,
        }
    }

    fn wait_longer(&mut self, id: VertexId) {
        let (now, first) = (self.now, self.first_wait(id));
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.contended = true;
        let (definition, conflict) = (vertex.definition, vertex.meta.on_conflict);
        let Some(contention) = self.contentions.get_mut(&id) else { return };
        let doubled = first
            .saturating_mul(1_u32.checked_shl(contention.doublings.into()).unwrap_or(u32::MAX));
        let wait = match conflict {
            Conflict::Win => first,
            Conflict::Backoff => doubled.min(Meta::LONGEST_BACKOFF),
            Conflict::Yield => Meta::LONGEST_BACKOFF,
        };
        contention.doublings = contention.doublings.saturating_add(1);
        let quarter = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX) / 4;
        let jitter =
            scatter(u64::from(id.0) ^ definition ^ u64::from(contention.repairs)) % quarter.max(1);
        let jitter = if conflict == Conflict::Win { 0 } else { jitter };
        contention.not_before = now.after(wait.saturating_sub(Duration::from_nanos(jitter)));
        self.end_contention_after(id, wait.max(Meta::REVERSAL_WINDOW));
    }

    /// Sets the time at which the contention ends: later than `quiet` from now.
    pub(crate) fn end_contention_after(&mut self, id: VertexId, quiet: Duration) {
        let ends_at = self.now.after(quiet + Duration::from_nanos(1));
        let Some(contention) = self.contentions.get_mut(&id) else { return };
        let before = std::mem::replace(&mut contention.ends_at, ends_at);
        self.timers.clear(before, id, Timer::ContentionEnd);
        self.timers.set(ends_at, id, Timer::ContentionEnd);
        self.touch(id);
    }

    /// Ends the contention if nothing has changed the vertex for longer than it would have waited.
    pub(crate) fn end_if_quiet(&mut self, id: VertexId) {
        let now = self.now;
        let Some(vertex) = self.vertex(id).filter(|v| v.contended) else { return };
        let rests = vertex.phase == Phase::Resting && !vertex.causes.any() && !vertex.look;
        if rests && self.contentions.get(&id).is_some_and(|contention| contention.ends_at <= now) {
            self.end_contention(id);
        }
    }

    /// Deletes the contention of a vertex, and reports the end if the contention was reported.
    pub(crate) fn end_contention(&mut self, id: VertexId) {
        self.listen(id);
        let Some(contention) = self.contentions.remove(&id) else { return };
        self.timers.clear(contention.ends_at, id, Timer::ContentionEnd);
        let Some(vertex) = self.vertex_mut(id) else { return };
        if std::mem::take(&mut vertex.contended) && contention.reported.is_some() {
            self.notify_in_order(id, Notice::ContentionEnded(id));
        }
        self.touch(id);
    }
}

/// Hashes a number with the finisher of `SplitMix64`. The engine uses no random numbers, so jitter is derived from this
/// hash.
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
