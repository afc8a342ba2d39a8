//! Contention (E-20): a vertex that is undone again and again is recognised, repaired less and less often, and
//! reported.
//!
//! A *repair* is a run that changed something although its definition had converged before and nobody asked for a run;
//! each repair follows a reversal. [`Meta::REVERSALS`] repairs of one vertex within [`Meta::REVERSAL_WINDOW`] are a
//! contention. From then on the repair of drift is delayed, each time twice as long. The vertex counts against
//! convergence and blocks no other vertex.

use crate::action::{Action, Class, Culprit, Notice};
use crate::engine::Engine;
use crate::ids::{Stamp, Tick, VertexId};
use crate::meta::{Check, Conflict, Meta, SlotClass};
use crate::timers::Timer;
use crate::vertex::{Causes, Phase, Place, Run, RunKind, Vertex, Watch};
use std::collections::VecDeque;
use std::time::Duration;

/// The shortest time between two summaries of a contention that lasts.
pub(crate) const SUMMARY: Duration = Duration::from_mins(10);
/// The largest number of our vertices suspected of one reversal.
pub(crate) const SUSPECTS: usize = 4;
/// The largest number of events per repair that are examined although our own runs may have caused them.
const ENOUGH: u8 = 64;
/// Causes that are not drift: a change of the declaration, or a request of our own side.
const ASKED: Causes = Causes::LOAD.and(Causes::OPERATOR).and(Causes::VALUE);

/// One repair, and the observations since the repair before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Repair {
    /// The time at which the repair ended.
    pub(crate) at: Tick,
    /// The vertex itself was writing, or had just written, when it was undone.
    pub(crate) own: bool,
    /// An event came while none of our runs was writing.
    pub(crate) foreign: bool,
    /// An event came that the vertex did not cause itself. Other vertices may have been writing.
    pub(crate) heard: bool,
    /// The other vertices that were writing.
    pub(crate) suspects: Vec<VertexId>,
    /// The number of events examined.
    seen: u8,
}

impl Repair {
    /// Returns true if another event or look adds no information: a foreign writer is known, or enough events were
    /// examined.
    fn says_all(&self, heard: bool) -> bool {
        self.foreign || self.seen >= ENOUGH && (self.heard || !heard)
    }
}

/// The repairs of one vertex, and the contention that they may form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Contention {
    /// The last repairs, oldest first.
    pub(crate) rounds: VecDeque<Repair>,
    /// The round in progress, since the last repair.
    round: Repair,
    /// The stamp of the begin of the last repair.
    pub(crate) begun: Stamp,
    /// The time at which the contention was recognised.
    pub(crate) since: Option<Tick>,
    /// The number of repairs in the whole contention.
    pub(crate) repairs: u32,
    doublings: u8,
    /// The earliest time of the next repair of drift.
    pub(crate) not_before: Tick,
    /// The time at which the contention ends if nothing happens before.
    pub(crate) calm_at: Tick,
    /// The culprit according to the last reversals alone.
    pub(crate) party: Option<Culprit>,
    /// The time of the last notice; none if nothing was reported yet.
    pub(crate) reported: Option<Tick>,
    /// The culprit named in the last notice.
    named: Option<Culprit>,
    /// The reported culprit was already corrected once: later corrections wait until a summary is due.
    renamed: bool,
    /// Events of the vertex are not delivered: the vertex is dirty, and they would add no information.
    deaf: bool,
}

impl Contention {
    fn last_repair(&self) -> Option<Tick> {
        self.rounds.back().map(|round| round.at)
    }

    /// Returns true if the last repairs are enough for a contention within the window.
    fn is_one(&self) -> bool {
        let enough = self.rounds.len() >= Meta::REVERSALS;
        let first = self.rounds.front().map(|round| round.at.after(Meta::REVERSAL_WINDOW));
        enough && first.zip(self.last_repair()).is_some_and(|(end, last)| last <= end)
    }

    /// Returns the reversals by which the culprit is judged, from the reversal of the first repair to that of the last
    /// but one.
    pub(crate) fn judged(&self) -> impl Iterator<Item = &Repair> {
        self.rounds.iter().skip(1)
    }

    /// Returns the last two rounds and the one in progress.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Repair> {
        self.rounds.iter().rev().take(2).chain([&self.round])
    }

    /// Returns the next notice, if one is due: a new contention, another culprit, or a summary.
    fn next_notice(&mut self, vertex: VertexId, now: Tick) -> Option<Notice> {
        let party = self.party.unwrap_or(Culprit::Unknown);
        let late = self.reported.is_none_or(|told| told.after(SUMMARY) <= now);
        let (newly, is_renamed) = match self.named {
            None | Some(Culprit::Unknown) => (self.named != Some(party), false),
            // A culprit that is no longer known is not reported.
            Some(before) => {
                let other = before != party && party != Culprit::Unknown;
                (other && (late || !self.renamed), other)
            }
        };
        if newly {
            self.renamed |= is_renamed;
            (self.named, self.reported) = (Some(party), Some(now));
            return Some(Notice::Contended { vertex, party, repairs: self.repairs });
        }
        let since = self.since.filter(|_| late)?;
        self.reported = Some(now);
        Some(Notice::StillContended { vertex, repairs: self.repairs, since })
    }

    /// Maps every moment in the future, for the comparison of states (see `ranked`).
    pub(crate) fn map(&mut self, f: impl Fn(Tick) -> Tick) {
        self.since = self.since.map(&f);
        self.not_before = f(self.not_before);
        self.calm_at = f(self.calm_at);
    }

    /// Maps every moment in the past (repairs, and the last notice), for the comparison of states (see `ranked`).
    pub(crate) fn map_past(&mut self, repair: impl Fn(Tick) -> Tick, told: impl Fn(Tick) -> Tick) {
        for round in &mut self.rounds {
            round.at = repair(round.at);
        }
        self.reported = self.reported.map(told);
    }
}

impl Engine {
    /// Returns the time until which contention or the brake delays the repair of drift. Requested runs are not delayed.
    pub(crate) fn is_delayed(&self, id: VertexId) -> Option<Tick> {
        let vertex = self.vertex(id)?;
        if vertex.causes.has(ASKED.and(Causes::OWED)) {
            return None;
        }
        let brake = self.brake.until.filter(|_| vertex.causes.has(Causes::LOOK));
        let fight = self.fights.get(&id).filter(|_| vertex.contended);
        brake.max(fight.map(|fight| fight.not_before)).filter(|at| *at > self.now)
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
        if let Some(fight) = self.fights.get_mut(&id) {
            fight.not_before = until;
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
        let Some(fight) = self.fights.get_mut(&id).filter(|f| yields && f.not_before <= now) else {
            return;
        };
        if fight.deaf {
            fight.not_before = now.after(Meta::REVERSAL_WINDOW);
            self.listen(id);
        } else {
            self.end_fight(id);
        }
    }

    /// Examines an event of a vertex, or a look caused by an event that may be our own, for the runs that were writing
    /// then.
    pub(crate) fn witness(&mut self, id: VertexId, heard: bool) {
        let Some(vertex) = self.vertex(id).filter(|v| v.nature.check != Check::Events) else {
            // A poll tick has no culprit.
            return;
        };
        let deed = !vertex.is_checkable();
        match self.fights.get(&id).map(|fight| fight.round.says_all(heard)) {
            Some(true) => return self.delay_repair(id, heard),
            None if !deed => return,
            Some(false) | None => {}
        }
        let (own, suspects) = (self.is_writing(id), self.writers(id));
        let known = self.fights.contains_key(&id);
        if !known && !own && suspects.is_empty() {
            return;
        }
        let round = &mut self.fights.entry(id).or_default().round;
        round.seen = round.seen.saturating_add(1);
        round.own |= own;
        round.heard |= heard && !own;
        round.foreign |= heard && !own && suspects.is_empty();
        round.suspects.extend(suspects);
        round.suspects.sort_unstable();
        round.suspects.dedup();
        round.suspects.truncate(SUSPECTS);
        self.delay_repair(id, heard);
    }

    /// Stops the events of a delayed vertex if enough is known about its culprit: no more events are needed before its
    /// next run.
    fn delay_repair(&mut self, id: VertexId, heard: bool) {
        let now = self.now;
        let Some(vertex) = self.vertex(id).filter(|vertex| vertex.contended) else { return };
        let yields = vertex.meta.on_conflict == Conflict::Yield;
        if yields && !heard {
            // A look does not prove that somebody has touched the vertex.
            return;
        }
        let command = vertex.nature.slot == SlotClass::Command;
        let waits = vertex.run().is_none() && vertex.watch == Watch::Established;
        let later = self.is_delayed(id).is_some() || matches!(vertex.phase, Phase::Delayed(_));
        let waits = waits && vertex.causes.any() && later;
        let Some(fight) = self.fights.get_mut(&id).filter(|f| waits && !f.deaf) else { return };
        // A vertex that is not a command, undone while none of our runs was writing, was undone by somebody else.
        let told = fight.party.is_some() && !command && fight.round.suspects.is_empty();
        if !(fight.round.says_all(true) || yields || told) {
            return;
        }
        fight.deaf = true;
        // A vertex that yields makes no repair, so the next event has to trigger the summary.
        let mut lasts = None;
        if yields {
            fight.not_before = now.after(Meta::LONGEST_BACKOFF);
            if fight.round.foreign {
                fight.party = Some(Culprit::Foreign);
            }
            lasts = fight.next_notice(id, now);
        }
        self.out.push(Action::Deafen(id));
        if let Some(summary) = lasts {
            self.tell_in_turn(id, summary);
        }
        self.touch(id);
    }

    /// Delivers the events of a vertex again.
    pub(crate) fn listen(&mut self, id: VertexId) {
        if let Some(fight) = self.fights.get_mut(&id)
            && std::mem::take(&mut fight.deaf)
        {
            self.out.push(Action::Listen(id));
        }
    }

    /// Returns the class of the change that a run is about to make.
    pub(crate) fn class_of(&self, id: VertexId) -> Class {
        let Some((vertex, run)) = self.vertex(id).and_then(|v| Some((v, v.run()?))) else {
            return Class::Intentional;
        };
        if run.remade {
            return Class::Intentional;
        }
        if vertex.contended {
            return match self.fights.get(&id).and_then(|fight| fight.party) {
                Some(Culprit::Itself | Culprit::Ours(_)) => Class::NotIdempotent,
                Some(Culprit::Foreign | Culprit::Unknown) | None => Class::Contended,
            };
        }
        let moved = run.causes.has(Causes::EVENT.and(Causes::LOOK).and(Causes::POLL));
        let by = vertex.owed_by.and_then(|by| self.vertex(by));
        let wanted = Causes::OPERATOR.and(Causes::VALUE);
        let asked = !vertex.done || run.causes.has(wanted);
        let follows = run.refresh && !moved && by.is_some_and(|by| by.intended);
        if asked || follows {
            return Class::Intentional;
        }
        // A vertex that runs at each start has something to do each time, as declared; so do the vertices that it
        // notifies.
        let at_start = |vertex: &Vertex| vertex.nature.check == Check::EachStart;
        let again = at_start(vertex) && run.causes.has(Causes::LOAD);
        let with = run.refresh && by.is_some_and(at_start);
        if !moved && (again || with) { Class::NotIdempotent } else { Class::Corrective }
    }

    /// Returns true if a run repairs drift: nobody asked for the run, and the vertex had converged under its present
    /// definition. A vertex without a state to check repairs nothing; its runs count only if our own writes triggered
    /// them.
    pub(crate) fn is_repair(&self, id: VertexId) -> bool {
        let Some((vertex, run)) = self.vertex(id).and_then(|v| Some((v, v.run()?))) else {
            return false;
        };
        self.repairs(id, vertex, run)
    }

    fn repairs(&self, id: VertexId, vertex: &Vertex, run: &Run) -> bool {
        let ours = || {
            let round = self.fights.get(&id).map(|fight| &fight.round);
            round.is_some_and(|r| r.own || !r.suspects.is_empty())
        };
        // A vertex that never converged is retried by its failures (E-10), but runs at once for each event.
        let drifts = vertex.done || vertex.failing && run.causes.has(Causes::EVENT);
        let drifts = drifts && !run.refresh && !run.causes.has(ASKED) && !self.one_shot;
        let counts = vertex.is_checkable() || vertex.contended || ours();
        run.kind == RunKind::Process && drifts && counts
    }

    /// Records that a run has applied a change, or found the vertex as declared. Returns the notices of that.
    pub(crate) fn record_outcome(&mut self, id: VertexId, run: &Run, changed: bool) -> Vec<Notice> {
        let Some(vertex) = self.vertex(id) else { return Vec::new() };
        let (contended, is_deed) = (vertex.contended, !vertex.is_checkable());
        let repair = changed && self.repairs(id, vertex, run);
        if repair {
            self.count_repair(id);
        }
        if repair && !run.supplied {
            return self.book_round(id, run.begun);
        }
        if is_deed && changed {
            // The operation was requested, or somebody else triggered it: there is no loop.
            self.drop_rounds(id);
        }
        if contended {
            let (now, floor) = (self.now, self.first_wait(id));
            if let Some(fight) = self.fights.get_mut(&id) {
                fight.not_before = fight.not_before.max(now.after(floor));
            }
            self.calm_down(id);
        }
        Vec::new()
    }

    fn drop_rounds(&mut self, id: VertexId) {
        if self.fights.get(&id).is_some_and(|fight| fight.since.is_none()) {
            self.fights.remove(&id);
        }
    }

    fn first_wait(&self, id: VertexId) -> Duration {
        match self.vertex(id).map(|v| v.meta.on_conflict) {
            Some(Conflict::Win) => Meta::SHORTEST_BACKOFF,
            Some(Conflict::Backoff | Conflict::Yield) | None => Meta::FIRST_BACKOFF,
        }
    }

    /// Adds one repair: recognises a contention, or makes the next repair wait longer.
    fn book_round(&mut self, id: VertexId, begun: Option<Stamp>) -> Vec<Notice> {
        let now = self.now;
        let fight = self.fights.entry(id).or_default();
        fight.begun = begun.unwrap_or(fight.begun);
        let mut round = std::mem::take(&mut fight.round);
        round.at = now;
        fight.rounds.push_back(round);
        if fight.rounds.len() > Meta::REVERSALS {
            fight.rounds.pop_front();
        }
        fight.repairs = fight.repairs.saturating_add(1);
        let party = self.party(id);
        let deed = self.vertex(id).is_some_and(|vertex| !vertex.is_checkable());
        let by_ours = matches!(party, Some(Culprit::Itself | Culprit::Ours(_)));
        let Some(fight) = self.fights.get_mut(&id) else { return Vec::new() };
        // An operation that others trigger is not a contention, however often it runs.
        if fight.since.is_none() && !(fight.is_one() && (!deed || by_ours)) {
            return Vec::new();
        }
        fight.since.get_or_insert(now);
        // An operation that no longer loops is triggered by others.
        fight.party = party.or_else(|| deed.then_some(Culprit::Foreign));
        let notices = fight.next_notice(id, now).into_iter().collect();
        if deed && !self.is_ours_to_blame(id) {
            self.record_other_cause(id);
        } else {
            self.wait_longer(id);
        }
        notices
    }

    /// Returns true if only our own vertices triggered the last run of an operation.
    fn is_ours_to_blame(&self, id: VertexId) -> bool {
        let last = self.fights.get(&id).and_then(|fight| fight.rounds.back());
        last.is_some_and(|round| self.is_by_ours(id, round))
    }

    /// Records that somebody else triggered an operation. The contention ends if that was so for all recent rounds.
    fn record_other_cause(&mut self, id: VertexId) {
        let now = self.now;
        let goes_round =
            |fight: &Contention| fight.judged().any(|round| self.is_by_ours(id, round));
        if !self.fights.get(&id).is_some_and(goes_round) {
            self.end_fight(id);
            return;
        }
        if let Some(fight) = self.fights.get_mut(&id) {
            fight.doublings = 0;
            fight.not_before = now;
        }
        self.calm_after(id, Meta::REVERSAL_WINDOW);
    }

    fn wait_longer(&mut self, id: VertexId) {
        let (now, first) = (self.now, self.first_wait(id));
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.contended = true;
        let (definition, conflict) = (vertex.definition, vertex.meta.on_conflict);
        let Some(fight) = self.fights.get_mut(&id) else { return };
        let doubled =
            first.saturating_mul(1_u32.checked_shl(fight.doublings.into()).unwrap_or(u32::MAX));
        let wait = match conflict {
            Conflict::Win => first,
            Conflict::Backoff => doubled.min(Meta::LONGEST_BACKOFF),
            Conflict::Yield => Meta::LONGEST_BACKOFF,
        };
        fight.doublings = fight.doublings.saturating_add(1);
        let quarter = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX) / 4;
        let jitter =
            scatter(u64::from(id.0) ^ definition ^ u64::from(fight.repairs)) % quarter.max(1);
        let jitter = if conflict == Conflict::Win { 0 } else { jitter };
        fight.not_before = now.after(wait.saturating_sub(Duration::from_nanos(jitter)));
        self.calm_after(id, wait.max(Meta::REVERSAL_WINDOW));
    }

    /// Sets the time at which the contention ends: later than `quiet` from now.
    fn calm_after(&mut self, id: VertexId, quiet: Duration) {
        let calm_at = self.now.after(quiet + Duration::from_nanos(1));
        let Some(fight) = self.fights.get_mut(&id) else { return };
        let before = std::mem::replace(&mut fight.calm_at, calm_at);
        self.timers.clear(before, id, Timer::Calm);
        self.timers.set(calm_at, id, Timer::Calm);
        self.touch(id);
    }

    /// Ends the contention if nothing has changed the vertex for longer than it would have waited.
    pub(crate) fn calm_down(&mut self, id: VertexId) {
        let now = self.now;
        let Some(vertex) = self.vertex(id).filter(|v| v.contended) else { return };
        let rests = vertex.phase == Phase::Resting && !vertex.causes.any() && !vertex.look;
        if rests && self.fights.get(&id).is_some_and(|fight| fight.calm_at <= now) {
            self.end_fight(id);
        }
    }

    /// Deletes the contention of a vertex, and reports the end if the contention was reported.
    pub(crate) fn end_fight(&mut self, id: VertexId) {
        self.listen(id);
        let Some(fight) = self.fights.remove(&id) else { return };
        self.timers.clear(fight.calm_at, id, Timer::Calm);
        let Some(vertex) = self.vertex_mut(id) else { return };
        if std::mem::take(&mut vertex.contended) && fight.reported.is_some() {
            self.tell_in_turn(id, Notice::Calm(id));
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
