//! Fights settle (E-20): what is undone again and again is recognised, repaired less and less often, and said.
//!
//! A *repair* is a run that changed something although its definition had been right before and nobody asked: so each one is a
//! reversal. [`Meta::REVERSALS`] of one vertex within [`Meta::REVERSAL_WINDOW`] are a fight. From then on drift of it waits, each
//! time twice as long; it counts against convergence, and blocks nobody. Nothing is shared: no neighbour waits for it.

use crate::action::{Action, Class, Culprit, Notice};
use crate::engine::Engine;
use crate::ids::{Stamp, Tick, VertexId};
use crate::meta::{Check, Conflict, Meta, SlotClass};
use crate::timers::Timer;
use crate::vertex::{Causes, Phase, Place, Run, RunKind, Vertex, Watch};
use std::collections::VecDeque;
use std::time::Duration;

/// How often a fight that lasts is told again, at most.
pub(crate) const SUMMARY: Duration = Duration::from_mins(10);
/// How many of ours may be suspected of one reversal.
pub(crate) const SUSPECTS: usize = 4;
/// How many events that may be our own doing are looked into, for one repair.
const ENOUGH: u8 = 64;
/// Causes that are no drift: what is declared has changed, or somebody of ours wants it.
const ASKED: Causes = Causes::LOAD.and(Causes::OPERATOR).and(Causes::VALUE);

/// One repair, and what was seen between the one before and it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Repair {
    /// Its end.
    pub(crate) at: Tick,
    /// The vertex itself was writing when it was undone, or had just written.
    pub(crate) own: bool,
    /// An event came while none of ours was writing.
    pub(crate) foreign: bool,
    /// An event came that is not its own doing, whoever else was writing.
    pub(crate) heard: bool,
    /// Who else of ours was writing.
    pub(crate) suspects: Vec<VertexId>,
    /// How many events were looked into.
    seen: u8,
}

impl Repair {
    /// Nothing more is to be learned from an event in it, or from a look: somebody else was heard, or of ours enough.
    fn says_all(&self, heard: bool) -> bool {
        self.foreign || self.seen >= ENOUGH && (self.heard || !heard)
    }
}

/// The repairs of one vertex, and the fight they may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Contention {
    /// The last repairs, oldest first.
    pub(crate) rounds: VecDeque<Repair>,
    /// The round in progress: since the last repair.
    round: Repair,
    /// When the last repair was begun.
    pub(crate) begun: Stamp,
    /// Since when it is recognised as a fight.
    pub(crate) since: Option<Tick>,
    /// Repairs in all of it.
    pub(crate) repairs: u32,
    doublings: u8,
    /// No repair of drift before.
    pub(crate) not_before: Tick,
    /// Quiet until then: it is over.
    pub(crate) calm_at: Tick,
    /// Who undoes it, by the last reversals alone.
    pub(crate) party: Option<Culprit>,
    /// When it was last told of; nothing was told yet where there is none.
    pub(crate) reported: Option<Tick>,
    /// Who was told to undo it.
    named: Option<Culprit>,
    /// Whether another was told to than before: again not before a summary is due.
    renamed: bool,
    /// Its events are not delivered: it is dirty, and they would say nothing new.
    deaf: bool,
}

impl Contention {
    fn last_repair(&self) -> Option<Tick> {
        self.rounds.back().map(|round| round.at)
    }

    /// Whether the last repairs are so many in so short a time.
    fn is_one(&self) -> bool {
        let enough = self.rounds.len() >= Meta::REVERSALS;
        let first = self.rounds.front().map(|round| round.at.after(Meta::REVERSAL_WINDOW));
        enough && first.zip(self.last_repair()).is_some_and(|(end, last)| last <= end)
    }

    /// The reversals that a fight is judged by: what undid the first repair, to what undid the one before the last.
    pub(crate) fn judged(&self) -> impl Iterator<Item = &Repair> {
        self.rounds.iter().skip(1)
    }

    /// The last two, and the one in progress.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Repair> {
        self.rounds.iter().rev().take(2).chain([&self.round])
    }

    /// What is to be told: that it is a fight and with whom, that it is with another, or that it lasts.
    fn next_notice(&mut self, vertex: VertexId, now: Tick) -> Option<Notice> {
        let party = self.party.unwrap_or(Culprit::Unknown);
        let late = self.reported.is_none_or(|told| told.after(SUMMARY) <= now);
        let (newly, is_renamed) = match self.named {
            None | Some(Culprit::Unknown) => (self.named != Some(party), false),
            // That it is not known any more is nothing to tell.
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

    /// Moves every moment that may be to come, for comparison of states (see `ranked`).
    pub(crate) fn map(&mut self, f: impl Fn(Tick) -> Tick) {
        self.since = self.since.map(&f);
        self.not_before = f(self.not_before);
        self.calm_at = f(self.calm_at);
    }

    /// The same for what is over: repairs, and when it was told of.
    pub(crate) fn map_past(&mut self, repair: impl Fn(Tick) -> Tick, told: impl Fn(Tick) -> Tick) {
        for round in &mut self.rounds {
            round.at = repair(round.at);
        }
        self.reported = self.reported.map(told);
    }
}

impl Engine {
    /// Until when drift of this vertex has to wait, by its fight or by the brake. What is asked for otherwise does not.
    pub(crate) fn is_delayed(&self, id: VertexId) -> Option<Tick> {
        let vertex = self.vertex(id)?;
        if vertex.causes.has(ASKED.and(Causes::OWED)) {
            return None;
        }
        let brake = self.brake.until.filter(|_| vertex.causes.has(Causes::LOOK));
        let fight = self.fights.get(&id).filter(|_| vertex.contended);
        brake.max(fight.map(|fight| fight.not_before)).filter(|at| *at > self.now)
    }

    /// A vertex that gives way is let in by the end of its listening alone (see `backoff_over`). A pause, a parent or a swap may have
    /// outlasted its wait meanwhile: that was no listening.
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

    /// The time of a vertex that was held back is over. One that gives way is let in only after it has listened, and heard nothing.
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

    /// An event of a vertex, or a look at what may be our own doing: who of ours was writing then?
    pub(crate) fn witness(&mut self, id: VertexId, heard: bool) {
        let Some(vertex) = self.vertex(id).filter(|v| v.nature.check != Check::Events) else {
            // Nobody causes a tick.
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

    /// A vertex that is held back, and of whose other party enough is known, needs no more events before its next run.
    fn delay_repair(&mut self, id: VertexId, heard: bool) {
        let now = self.now;
        let Some(vertex) = self.vertex(id).filter(|vertex| vertex.contended) else { return };
        let yields = vertex.meta.on_conflict == Conflict::Yield;
        if yields && !heard {
            // A look says nothing of whether anybody has touched it.
            return;
        }
        let command = vertex.nature.slot == SlotClass::Command;
        let waits = vertex.run().is_none() && vertex.watch == Watch::Established;
        let later = self.is_delayed(id).is_some() || matches!(vertex.phase, Phase::Delayed(_));
        let waits = waits && vertex.causes.any() && later;
        let Some(fight) = self.fights.get_mut(&id).filter(|f| waits && !f.deaf) else { return };
        // What is no command, and was undone while none of ours was writing, was undone by somebody else.
        let told = fight.party.is_some() && !command && fight.round.suspects.is_empty();
        if !(fight.round.says_all(true) || yields || told) {
            return;
        }
        fight.deaf = true;
        // Who gives way repairs nothing that a summary could come with: what is heard again says that it lasts.
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

    /// Its events are wanted again.
    pub(crate) fn listen(&mut self, id: VertexId) {
        if let Some(fight) = self.fights.get_mut(&id)
            && std::mem::take(&mut fight.deaf)
        {
            self.out.push(Action::Listen(id));
        }
    }

    /// What sort of change a run is about to make.
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
        // A deed of each start finds something to do each time, by what is declared; so does what it notifies.
        let at_start = |vertex: &Vertex| vertex.nature.check == Check::EachStart;
        let again = at_start(vertex) && run.causes.has(Causes::LOAD);
        let with = run.refresh && by.is_some_and(at_start);
        if !moved && (again || with) { Class::NotIdempotent } else { Class::Corrective }
    }

    /// Whether a run repairs drift: nobody asked for it, and it had been right under its present definition. A deed repairs nothing:
    /// of those only the ones count whose cause are our own writes.
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
        // What was never right is tried again by its failures (E-10), but for each event at once.
        let drifts = vertex.done || vertex.failing && run.causes.has(Causes::EVENT);
        let drifts = drifts && !run.refresh && !run.causes.has(ASKED) && !self.one_shot;
        let counts = vertex.is_checkable() || vertex.contended || ours();
        run.kind == RunKind::Process && drifts && counts
    }

    /// A run has applied something, or found all right. Answers what is to be told.
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
            // It was asked for, or another has caused it: nothing goes round.
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

    /// One more repair: recognises the fight, or lets the next one wait longer.
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
        // A deed that others cause is no fight, however often it runs.
        if fight.since.is_none() && !(fight.is_one() && (!deed || by_ours)) {
            return Vec::new();
        }
        fight.since.get_or_insert(now);
        // A deed that goes round no more is set off by others.
        fight.party = party.or_else(|| deed.then_some(Culprit::Foreign));
        let notices = fight.next_notice(id, now).into_iter().collect();
        if deed && !self.is_ours_to_blame(id) {
            self.record_other_cause(id);
        } else {
            self.wait_longer(id);
        }
        notices
    }

    /// The last time a deed was set off by nobody but ours.
    fn is_ours_to_blame(&self, id: VertexId) -> bool {
        let last = self.fights.get(&id).and_then(|fight| fight.rounds.back());
        last.is_some_and(|round| self.is_by_ours(id, round))
    }

    /// A deed that somebody else sets off is done as ever; where that was so each time lately, nothing goes round any more.
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

    /// It is over after a quiet longer than that.
    fn calm_after(&mut self, id: VertexId, quiet: Duration) {
        let calm_at = self.now.after(quiet + Duration::from_nanos(1));
        let Some(fight) = self.fights.get_mut(&id) else { return };
        let before = std::mem::replace(&mut fight.calm_at, calm_at);
        self.timers.clear(before, id, Timer::Calm);
        self.timers.set(calm_at, id, Timer::Calm);
        self.touch(id);
    }

    /// Nothing has moved it for longer than it would have waited: it is over.
    pub(crate) fn calm_down(&mut self, id: VertexId) {
        let now = self.now;
        let Some(vertex) = self.vertex(id).filter(|v| v.contended) else { return };
        let rests = vertex.phase == Phase::Resting && !vertex.causes.any() && !vertex.look;
        if rests && self.fights.get(&id).is_some_and(|fight| fight.calm_at <= now) {
            self.end_fight(id);
        }
    }

    /// Forgets the fight of a vertex, and says so where it was told of.
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

/// A number that looks like chance and is always the same (the finisher of SplitMix64): the engine has no chance.
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
