//! Contention (E-20): a vertex that is undone again and again is recognised, repaired less and less often, and
//! reported.
//!
//! A *repair* is a run that changed something although its definition had converged before and nobody asked for a run;
//! each repair follows a reversal. [`Meta::REVERSALS`] repairs of one vertex within [`Meta::REVERSAL_WINDOW`] are a
//! contention. From then on the repair of drift is delayed, each time twice as long. The vertex counts against
//! convergence and blocks no other vertex.

use crate::contention::record::{Contention, SUSPECTS};
use crate::engine::Engine;
use crate::interface::action::{Class, Culprit, Notice};
use crate::interface::ids::{Stamp, VertexId};
use crate::interface::metaparams::Meta;
use crate::state::vertex::{Causes, Run, RunKind, Vertex};
use steadfast_traits::{ExecutorKind, RunPolicy};

/// Causes that are not drift: a change of the declaration, or a request of our own side.
pub(crate) const ASKED: Causes = Causes::LOAD.and(Causes::OPERATOR).and(Causes::VALUE);

impl Engine {
    /// Examines an event of a vertex, or a look caused by an event that may be our own, for the runs that were writing
    /// then.
    pub(crate) fn witness(&mut self, id: VertexId, heard: bool) {
        let Some(vertex) = self.vertex(id).filter(|v| v.traits.repeat != RunPolicy::Events) else {
            // A poll tick has no culprit.
            return;
        };
        let deed = !vertex.is_checkable();
        match self.contentions.get(&id).map(|contention| contention.round.says_all(heard)) {
            Some(true) => return self.delay_repair(id, heard),
            None if !deed => return,
            Some(false) | None => {}
        }
        let (own, suspects) = (self.is_writing(id), self.writers(id));
        let known = self.contentions.contains_key(&id);
        if !known && !own && suspects.is_empty() {
            return;
        }
        let round = &mut self.contentions.entry(id).or_default().round;
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

    /// Returns the class of the change that a run is about to make.
    pub(crate) fn class_of(&self, id: VertexId) -> Class {
        let Some((vertex, run)) = self.vertex(id).and_then(|v| Some((v, v.run()?))) else {
            return Class::Intentional;
        };
        if run.remade {
            return Class::Intentional;
        }
        if vertex.contended {
            return match self.contentions.get(&id).and_then(|contention| contention.party) {
                Some(Culprit::Itself | Culprit::Ours(_)) => Class::NotIdempotent,
                Some(Culprit::Foreign | Culprit::Unknown) | None => Class::Contended,
            };
        }
        let moved = run.causes.has(Causes::EVENT.and(Causes::LOOK).and(Causes::POLL));
        let by = vertex.owed_by.and_then(|by| self.vertex(by));
        let wanted = Causes::OPERATOR.and(Causes::VALUE);
        let asked = !vertex.done || run.causes.has(wanted);
        let follows = run.refresh && !moved && by.is_some_and(|by| by.intended);
        // A vertex for events alone (a timer) does what is declared, unless our own writes trigger it.
        let ticks = vertex.traits.repeat == RunPolicy::Events && !run.refresh;
        let ticks = ticks && !self.repairs(id, vertex, run);
        if asked || follows || ticks {
            return Class::Intentional;
        }
        // A vertex that runs at each start has something to do each time, as declared; so do the vertices that it
        // notifies.
        let at_start = |vertex: &Vertex| vertex.traits.repeat == RunPolicy::EachStart;
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
            let round = self.contentions.get(&id).map(|contention| &contention.round);
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
            if let Some(contention) = self.contentions.get_mut(&id) {
                contention.not_before = contention.not_before.max(now.after(floor));
            }
            self.end_if_quiet(id);
        }
        Vec::new()
    }

    /// Returns true if all events since the last repair of a command came while the command itself was running.
    pub(crate) fn is_own_echo(&self, id: VertexId) -> bool {
        let is_command =
            self.vertex(id).is_some_and(|it| it.traits.executor == ExecutorKind::Command);
        let round = self.contentions.get(&id).map(|contention| &contention.round);
        is_command && round.is_some_and(|it| it.own && !it.foreign && it.suspects.is_empty())
    }

    fn drop_rounds(&mut self, id: VertexId) {
        if self.contentions.get(&id).is_some_and(|contention| contention.since.is_none()) {
            self.contentions.remove(&id);
        }
    }

    /// Adds one repair to the rounds of a vertex.
    fn book_round(&mut self, id: VertexId, begun: Option<Stamp>) -> Vec<Notice> {
        let now = self.now;
        let contention = self.contentions.entry(id).or_default();
        contention.begun = begun.unwrap_or(contention.begun);
        let mut round = std::mem::take(&mut contention.round);
        round.at = now;
        contention.rounds.push_back(round);
        if contention.rounds.len() > Meta::REVERSALS {
            contention.rounds.pop_front();
        }
        contention.repairs = contention.repairs.saturating_add(1);
        let party = self.party(id);
        self.slow_down_if_contended(id, party).into_iter().collect()
    }

    /// Returns true if only our own vertices triggered the last run of an operation.
    pub(super) fn is_ours_to_blame(&self, id: VertexId) -> bool {
        let last = self.contentions.get(&id).and_then(|contention| contention.rounds.back());
        last.is_some_and(|round| self.is_by_ours(id, round))
    }

    /// Records that somebody else triggered an operation. The contention ends if that was so for all recent rounds.
    pub(super) fn record_other_cause(&mut self, id: VertexId) {
        let now = self.now;
        let goes_round =
            |contention: &Contention| contention.judged().any(|round| self.is_by_ours(id, round));
        if !self.contentions.get(&id).is_some_and(goes_round) {
            self.end_contention(id);
            return;
        }
        if let Some(contention) = self.contentions.get_mut(&id) {
            contention.doublings = 0;
            contention.not_before = now;
        }
        self.end_contention_after(id, Meta::REVERSAL_WINDOW);
    }
}
