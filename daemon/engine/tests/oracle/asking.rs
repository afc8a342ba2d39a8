//! The oracle's records of ancestors that are asked before a failure counts (E-3, E-10).

use crate::invariants::E3_ASKING;
use crate::oracle_log::{Asked, Books, Need, Phase, Running, Vertex, When};
use steadfast_engine::{Notice, Poll, RunId, RunPolicy, RunVerdict, Start, VertexId, VertexStatus};

/// The number of failures in a row that are excused; the next one counts at once.
const EXCUSES: u8 = 3;

impl Books {
    /// Returns the start of the failed run of a vertex, while its failure does not count.
    fn failed_run(vertex: &Vertex) -> Option<When> {
        match vertex.phase {
            Phase::JustFailed { since, .. } | Phase::Asking { since, .. } => Some(since),
            _ => None,
        }
    }

    /// Allows the consequences of failures that do not count yet: looks at the ancestors, and a run if an ancestor may
    /// differ.
    pub(super) fn allow_what_is_asked(&mut self) {
        let clock = self.clock;
        for id in self.order.clone() {
            let Some(vertex) = self.vertices.get(&id) else { continue };
            let Some(since) = Self::failed_run(vertex) else { continue };
            if self.may_be_excused(id, since) {
                self.excusable.insert(id);
                if let Some(vertex) = self.vertices.get_mut(&id) {
                    vertex.may(clock);
                }
                self.back_poke(id);
            }
            for above in self.vertices[&id].ancestors.clone() {
                let Some(vertex) = self.vertices.get_mut(&above) else { continue };
                let may_rest = matches!(vertex.phase, Phase::Rest | Phase::Unsure)
                    && !matches!(vertex.need, Need::Must { .. });
                if vertex.declared.traits.repeat == RunPolicy::State
                    && may_rest
                    && vertex.seen <= since
                {
                    vertex.look.get_or_insert((clock, false));
                }
            }
        }
    }

    /// Returns true if an ancestor may have been found to differ since `since`, or may block for longer.
    pub(super) fn may_be_excused(&self, id: VertexId, since: When) -> bool {
        let differs = |above: &VertexId| {
            self.paused_vertices.contains(above)
                || self.is_suspended(*above)
                || self.vertices.get(above).is_some_and(|vertex| {
                    let rests = matches!(vertex.phase, Phase::Rest | Phase::Held | Phase::Shut);
                    vertex.moved.1 > since || !rests
                })
        };
        let runs_out = self.vertices[&id].excused.0 >= EXCUSES;
        let above = || self.vertices[&id].ancestors.iter().any(differs);
        !runs_out && (self.excusable.contains(&id) || above())
    }

    /// Returns true if the vertex has failed in this turn, and its ancestors may have excused the failure already.
    pub(crate) fn is_excused_at_once(&self, id: VertexId) -> bool {
        let since = self.vertices.get(&id).and_then(Self::failed_run);
        since.is_some_and(|since| self.may_be_excused(id, since))
    }

    /// Allows both readings while an excuse of the failure is possible.
    pub(super) fn may_be_dirty_since_now(&mut self, id: VertexId) {
        let since = self.since;
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        vertex.excused.1 = vertex.excused.1.saturating_add(1);
        if let Need::Must { high, .. } = &mut vertex.need {
            *high = since.max(*high);
        }
    }

    /// Returns the reason for which the failure must not count: an ancestor certainly differs, or was certainly not
    /// checked since the failed run started.
    fn must_not_count(&self, id: VertexId, since: When) -> Option<String> {
        let vertex = &self.vertices[&id];
        let open = !self.one_shot && self.asked == Asked::Running && !self.paused;
        if !open || vertex.excused.1 >= EXCUSES || self.is_suspended(id) {
            return None;
        }
        let settled = |above: &Vertex| {
            above.need == Need::No
                && above.phase == Phase::Rest
                && above.declared.meta.poll == Poll::Never
                && above.declared.traits.repeat == RunPolicy::State
                && above.running.as_ref().is_none_or(|run| run.look && !run.stuck)
        };
        for above in &vertex.ancestors {
            let Some(this) = self.vertices.get(above) else { continue };
            if this.moved.0 > since {
                return Some(format!("{above} differs"));
            }
            let free = !self.paused_vertices.contains(above) && !self.is_suspended(*above);
            if free && settled(this) && this.seen <= since {
                return Some(format!("{above} was not looked at"));
            }
        }
        None
    }

    /// Expects the consequence of a failure that was recorded in this turn, or earlier without being counted so far.
    pub(super) fn judge_failure(
        &mut self,
        id: VertexId,
        (run, since): (RunId, When),
        standing: Option<&VertexStatus>,
        lenient: bool,
    ) -> bool {
        let counts = matches!(standing, Some(VertexStatus::Delayed(_) | VertexStatus::Failed));
        if counts
            && !lenient
            && let Some(why) = self.must_not_count(id, since)
        {
            self.broken(E3_ASKING, &format!("run {} of {id} counts as failed and {why}", run.0));
        }
        counts
    }

    /// Records that the vertex asks its ancestors from now on.
    pub(super) fn asks(&mut self, id: VertexId, (run, since): (RunId, When), was_failed: bool) {
        if self.one_shot {
            self.broken(E3_ASKING, &format!("{id} asks, and its ancestors have just run"));
        }
        if let Some(vertex) = self.vertices.get_mut(&id) {
            vertex.phase = Phase::Asking { run, since, was_failed };
            vertex.failures = vertex.failures.saturating_sub(1);
        }
    }

    /// Handles a vertex whose failure did not count before this turn.
    pub(super) fn still_asks(&mut self, id: VertexId, standing: Option<VertexStatus>) {
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        let Phase::Asking { run, since, was_failed } = vertex.phase else { return };
        if matches!(standing, Some(VertexStatus::Asking(_))) {
            return;
        }
        let lenient = self.asked != Asked::Running;
        if self.judge_failure(id, (run, since), standing.as_ref(), lenient) {
            let now = self.now;
            if let Some(vertex) = self.vertices.get_mut(&id) {
                vertex.failures += 1;
                vertex.phase = Phase::JustFailed { run, since, was_failed, maybe_good: false };
                // If the failed apply counts now, its change was undone now.
                vertex.contention.changes.push(now);
            }
            self.stirred.push((now, id));
            // The notice comes after the pending notices of earlier runs.
            let later = self.last_undurable(id);
            self.after_failure(id, standing, false, (later, was_failed));
            return;
        }
        if !self.may_be_excused(id, since) {
            let detail = format!("{id} stands as {standing:?}, and no ancestor differs");
            self.broken(E3_ASKING, &detail);
        }
        self.excused(id, true);
    }

    /// Records that the failure does not count: the vertex must be processed, from this turn on.
    pub(super) fn excused(&mut self, id: VertexId, sure: bool) {
        let since = self.since;
        let Some(vertex) = self.vertices.get_mut(&id) else { return };
        vertex.excused = (vertex.excused.0 + u8::from(sure), vertex.excused.1.saturating_add(1));
        vertex.phase = Phase::Rest;
        let low = match vertex.need {
            Need::No => since,
            Need::Maybe(low) | Need::Must { low, .. } => low.min(since),
        };
        vertex.need = Need::Must { low, high: since };
        vertex.cause = None;
    }

    /// Records that a failed intent asks no ancestors, which have no part in it.
    pub(super) fn asks_nobody(&mut self, run: RunId) {
        let id = self.vertex_of(run);
        if let Some(vertex) = id.and_then(|id| self.vertices.get_mut(&id)) {
            vertex.excused.1 = u8::MAX;
        }
    }

    /// Allows a notice for a failure that counts just before a load that removes its vertex or gives it another
    /// attempt.
    pub(crate) fn allow_counted_failures(&mut self) {
        let asks = |id: &VertexId| {
            self.vertices.get(id).is_some_and(|v| matches!(v.phase, Phase::Asking { .. }))
        };
        let counted = |notice: &&Notice| match notice {
            Notice::Failed(id) | Notice::Retrying(id, _) => asks(id),
            _ => false,
        };
        let told: Vec<Notice> = self.told.iter().filter(counted).cloned().collect();
        self.expected.extend(told.into_iter().map(|notice| (None, notice, false)));
    }

    /// Records a start while the failure did not count: the failure was excused.
    pub(super) fn starts_again(&mut self, start: &Start) {
        let Some(vertex) = self.vertices.get_mut(&start.vertex).filter(|_| !start.look) else {
            return;
        };
        let (sure, most) = vertex.excused;
        match vertex.phase {
            Phase::Asking { .. } => vertex.excused = (sure + 1, most.saturating_add(1)),
            Phase::JustFailed { .. } => vertex.excused.1 = most.saturating_add(1),
            _ => {}
        }
    }

    /// Records the end of a check: the vertex is as declared, or differs.
    pub(super) fn was_checked(&mut self, id: VertexId, running: &Running, verdict: RunVerdict) {
        let rests = self.vertices.get(&id).is_some_and(|vertex| vertex.phase == Phase::Rest);
        let in_time = running.cancelled.is_none();
        if verdict == RunVerdict::Same && in_time {
            self.was_seen(id, running.start);
        } else {
            let counts = if running.look { rests } else { !running.noop };
            self.has_moved(id, in_time && counts);
        }
    }

    /// Records the vertices that ask at a load: their failures may have been judged just before, in the same turn.
    pub(super) fn note_who_asks(&mut self) {
        for id in self.order.clone() {
            if self.vertices.get(&id).is_some_and(|vertex| Self::failed_run(vertex).is_some()) {
                self.judged_before_load.push((self.last_undurable(id), id));
            }
        }
    }

    /// Returns true if the failure may have counted before the load of this turn.
    pub(super) fn was_judged_before_load(&self, notice: &Notice, durable: Option<RunId>) -> bool {
        let (Notice::Failed(id) | Notice::Retrying(id, _)) = notice else { return false };
        let judged = &self.judged_before_load;
        judged.iter().any(|(run, other)| other == id && (run.is_none() || *run == durable))
    }

    /// Records that a check started at `start` has found the vertex as declared.
    pub(super) fn was_seen(&mut self, id: VertexId, start: When) {
        if let Some(vertex) = self.vertices.get_mut(&id) {
            vertex.seen = vertex.seen.max(start);
        }
    }

    /// Records that a check has, certainly or possibly, found a difference, or could not decide.
    pub(super) fn has_moved(&mut self, id: VertexId, sure: bool) {
        let clock = self.clock;
        if let Some(vertex) = self.vertices.get_mut(&id) {
            vertex.moved.1 = clock;
            if sure {
                vertex.moved.0 = clock;
            }
        }
    }
}
