//! The commit of a swap in the oracle's records (E-17).

use crate::oracle_log::{Books, Cause, Need, Phase, Vertex, Watched};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_engine::{
    Graph, OnInterrupt, Poll, RestoredState, RunPolicy, Stamp, VertexId, VertexSpec,
};

/// Returns true if the vertex was certainly not dirty before this turn, and had no tick in it.
fn is_clean(vertex: &Vertex, passed: bool) -> bool {
    let ticks = passed && matches!(vertex.declared.meta.poll, Poll::Every(_));
    vertex.need == Need::No && vertex.phase == Phase::Rest && vertex.running.is_none() && !ticks
}

impl Books {
    /// Makes the waiting graph the running one.
    pub(crate) fn load(&mut self) {
        for id in self.order.clone() {
            if self.is_surely_realized_first(id) {
                let detail = format!("{id} is removed, was never right, and could have been");
                self.broken(crate::invariants::E17_REALIZE, &detail);
            }
        }
        self.waits_since = None;
        let Some((swap, _)) = self.pending.take() else {
            self.broken(crate::invariants::E17_SWAP, "loaded although no graph was given");
            return;
        };
        self.loaded = true;
        self.loaded_now = true;
        self.may_repeat = true;
        let mut old = std::mem::take(&mut self.vertices);
        let mut taken = (0, 0, 0, 0);
        // Clean vertices that this swap marks: they send back-pokes along the new edges.
        let mut newly: Vec<VertexId> = Vec::new();
        for declared in swap.graph.vertices() {
            let left = self.leaving.remove(&declared.id);
            let came_back = left.is_some();
            let mut clean = false;
            let (vertex, count) = match old.remove(&declared.id).or(left) {
                None => (self.added(declared, swap.recall.get(&declared.id)), &mut taken.0),
                Some(before) if before.declared.definition == declared.definition && !came_back => {
                    clean = is_clean(&before, self.passed);
                    let freed = before.declared.meta.noop && !declared.meta.noop;
                    let owed = before.owed.is_some() && !before.owed_unsure;
                    if freed && owed && before.phase == Phase::Failed {
                        self.asked_again.insert(declared.id);
                    }
                    (self.kept(before, declared, swap.operator), &mut taken.3)
                }
                Some(before) => {
                    self.was_quiet(&before);
                    clean = is_clean(&before, self.passed);
                    (self.redefined(&before, declared), &mut taken.1)
                }
            };
            if clean && matches!(vertex.need, Need::Must { .. }) {
                newly.push(declared.id);
            }
            *count += 1;
            self.vertices.insert(declared.id, vertex);
        }
        for (id, before) in &old {
            self.debts.remove(id);
            self.drained_first.remove(id);
            self.late_pokes.remove(id);
            self.paused_vertices.remove(id);
            self.was_quiet(before);
            taken.2 += 1;
            if before.running.is_some() {
                let mut before = before.clone();
                if let Some(run) = &mut before.running {
                    run.obsolete = true;
                }
                before.owed = None;
                self.leaving.insert(*id, before);
            }
        }
        // Only the removal of the child ends its owed refreshes, even if a crash has hidden the removal.
        let vertices = &self.vertices;
        self.debts.retain(|id, _| vertices.contains_key(id));
        self.taken = taken;
        if self.counts != self.given {
            // Vertices admitted by the old counts stay admitted; waiting ones queue again.
            for vertex in self.vertices.values_mut() {
                vertex.ticket = (None, None);
            }
        }
        self.counts.clone_from(&self.given);
        self.rewire(&swap.graph, newly);
    }

    /// Takes the edges; failed ancestors of newly marked vertices may get an attempt.
    fn rewire(&mut self, graph: &Arc<Graph>, newly: Vec<VertexId>) {
        let above: BTreeMap<VertexId, Vec<VertexId>> =
            self.vertices.iter().map(|(id, v)| (*id, v.ancestors.clone())).collect();
        self.take_graph(graph);
        self.allow_unknown(|_, _| true);
        for id in newly {
            self.must_back_poke(id);
        }
        let all = self.order.clone();
        if all.iter().any(|id| matches!(self.vertices[id].need, Need::Must { .. })) {
            self.announced = None;
        }
        for id in all {
            let vertex = &self.vertices[&id];
            // A swap alone is no attempt for a failed vertex: only vertices that it marks, or moves below another, send
            // back-pokes.
            let marked = matches!(vertex.need, Need::Must { high, .. } if high == self.clock)
                || matches!(vertex.need, Need::Maybe(low) if low == self.clock);
            let moved = above.get(&id) != Some(&vertex.ancestors) && vertex.need != Need::No;
            if marked || moved {
                self.back_poke(id);
            }
        }
    }

    fn was_quiet(&mut self, before: &Vertex) {
        if let Phase::JustFailed { run, .. } = before.phase {
            // The notice comes with the last end that is not durable.
            let told_with = self.last_undurable(before.declared.id).unwrap_or(run);
            self.history.insert(told_with);
        }
        if before.running.as_ref().is_some_and(|run| !run.stuck) {
            let detail = format!("{} is taken away while it runs", before.declared.id);
            self.broken(crate::invariants::E17_SWAP, &detail);
        }
    }

    fn added(&mut self, declared: &VertexSpec, recall: Option<&RestoredState>) -> Vertex {
        let mut vertex = Vertex::new(declared, self.now);
        let recall = recall.cloned().unwrap_or_default();
        let traits = declared.traits;
        // A skipped run counts as done, with the refreshes that it was doing (E-9).
        let is_skipped = recall.interrupted
            && traits.repeat != RunPolicy::State
            && traits.on_interrupt == OnInterrupt::Skip;
        let owed = recall.owed.filter(|(stamp, _)| !(is_skipped && *stamp <= recall.pays));
        let cut = self.cut_debts.remove(&declared.id).filter(|_| is_skipped);
        if cut.is_some() && self.debts.get(&declared.id) == cut.as_ref() {
            self.debts.remove(&declared.id);
        }
        vertex.owed = owed.map(|_| self.clock);
        vertex.owed_stamp = owed.map_or(Stamp::NEVER, |(stamp, _)| stamp);
        let ran = recall.done == Some(declared.definition);
        vertex.done = ran;
        let runs = match traits.repeat {
            RunPolicy::State => true,
            RunPolicy::Once | RunPolicy::EachStart if recall.interrupted => {
                match traits.on_interrupt {
                    OnInterrupt::Again => true,
                    // Counted as done, and yet due at each start: both readings are valid.
                    OnInterrupt::Skip if traits.repeat == RunPolicy::EachStart => {
                        vertex.phase = Phase::Unsure;
                        vertex.may(self.clock);
                        false
                    }
                    OnInterrupt::Skip => false,
                    OnInterrupt::Wait => {
                        vertex.phase = Phase::Operator;
                        false
                    }
                }
            }
            RunPolicy::EachStart => true,
            RunPolicy::Once => !ran,
            RunPolicy::Events if recall.interrupted && traits.on_interrupt == OnInterrupt::Wait => {
                vertex.phase = Phase::Operator;
                false
            }
            RunPolicy::Events => {
                if recall.interrupted {
                    vertex.may(self.clock);
                }
                false
            }
        };
        if !runs {
            // The vertex converged before this daemon began.
            let right = vertex.phase == Phase::Rest;
            vertex.good = (u64::from(right), 1);
            vertex.done = true;
            // A converged vertex has no request.
            vertex.asked = recall.interrupted || vertex.owed.is_some();
            vertex.asked_surely = false;
        }
        if runs {
            vertex.must(self.clock, Some(Cause::Load));
        } else if vertex.phase == Phase::Operator || declared.meta.noop {
            vertex.may(self.clock);
        } else if vertex.owed.is_some() {
            vertex.must(self.clock, None);
        }
        if recall.interrupted || vertex.owed.is_some() {
            vertex.cause = None;
        }
        vertex
    }

    fn kept(&self, mut vertex: Vertex, declared: &VertexSpec, operator: bool) -> Vertex {
        let before = std::mem::replace(&mut vertex.declared, declared.clone());
        let (old, new) = (before.meta, &declared.meta);
        vertex.bucket_unsure |= old.pace != new.pace;
        if old.semaphores != new.semaphores {
            // A run in progress holds the semaphores that a start would take now; waiting vertices queue again.
            vertex.ticket = (None, None);
            if let Some(run) = vertex.running.as_mut().filter(|run| !run.look) {
                run.semaphores.clone_from(&new.semaphores);
            }
        }
        if old.retry != new.retry {
            vertex.budget = (0, new.retry.unwrap_or(u32::MAX).max(vertex.budget.1));
        }
        vertex.asked |= old != *new;
        if operator || old.on_conflict != new.on_conflict || new.noop {
            vertex.forget_contention();
            (vertex.contention.unmuted_until, vertex.contention.excused) = (None, true);
        }
        let otherwise = old.window != new.window || old.noop != new.noop;
        if otherwise && matches!(vertex.phase, Phase::Shut | Phase::Unsure) {
            vertex.phase = Phase::Unsure;
            vertex.may(self.clock);
        }
        if operator {
            vertex.refill(!vertex.is_running());
            if matches!(vertex.phase, Phase::Failed | Phase::Unsure) {
                vertex.may(self.clock);
            }
        }
        if old.noop && !new.noop {
            // The finding in noop may not be valid for real runs.
            vertex.good.0 = 0;
        }
        if old.noop != new.noop {
            if vertex.phase == Phase::Held && !new.noop {
                vertex.phase = Phase::Rest;
                vertex.must(self.clock, None);
            } else {
                let keeps = matches!(vertex.phase, Phase::Rest | Phase::Asking { .. });
                vertex.phase = if keeps { vertex.phase } else { Phase::Unsure };
                vertex.need = match vertex.need {
                    Need::Must { low, .. } => Need::Maybe(low),
                    Need::No if vertex.owed.is_some() => Need::Maybe(self.clock),
                    need @ (Need::No | Need::Maybe(_)) => need,
                };
            }
        }
        if old.poll != new.poll {
            vertex.watched = Watched::No;
            vertex.loaded = self.now;
            vertex.active = self.now;
            vertex.polls = 0;
            if new.poll == Poll::Never
                && !self.one_shot
                && declared.traits.repeat == RunPolicy::State
            {
                // Changes between the last tick and the watch were not observed.
                vertex.refill(false);
                vertex.must(self.clock, None);
            }
        }
        if new.poll == Poll::Once {
            vertex.may(self.clock);
        }
        vertex
    }

    /// Returns the redefined vertex: owed refreshes and failures persist, convergence does not.
    fn redefined(&self, before: &Vertex, declared: &VertexSpec) -> Vertex {
        let mut vertex = Vertex::new(declared, self.now);
        // An operation may be done already, or run for events only.
        vertex.asked_surely = declared.traits.repeat == RunPolicy::State;
        vertex.owed = before.owed;
        vertex.owed_stamp = before.owed_stamp;
        vertex.owed_unsure = before.owed_unsure;
        vertex.running.clone_from(&before.running);
        if let Some(run) = &mut vertex.running {
            run.obsolete = true;
        }
        if before.declared.meta.poll == declared.meta.poll {
            (vertex.loaded, vertex.polls) = (before.loaded, before.polls);
        }
        vertex.contention.clone_from(&before.contention);
        vertex.forget_contention();
        // A run of a descendant may have failed since this vertex differed under the old definition.
        vertex.moved.1 = before.moved.1;
        vertex.failures = before.failures;
        vertex.backoff_sure = before.failures == 0;
        vertex.full_at = before.full_at;
        vertex.bucket_unsure =
            before.bucket_unsure || before.declared.meta.pace != declared.meta.pace;
        vertex.budget.0 = if declared.meta.reset { vertex.budget.0 } else { 0 };
        if let Phase::Delayed(until) = before.phase
            && !declared.meta.reset
        {
            vertex.phase = Phase::Delayed(until);
        }
        if matches!(before.phase, Phase::JustFailed { .. }) {
            // The delay may continue under the new definition.
            vertex.phase = Phase::Unsure;
        }
        if declared.traits.repeat == RunPolicy::Events {
            // The vertex is settled from the load on.
            (vertex.good, vertex.done) = ((1, 1), true);
        }
        // An operation for events does not run at a load.
        let loads = before.cause == Some(Cause::Load) && !before.owed_unsure;
        if declared.traits.repeat != RunPolicy::Events {
            vertex.must(self.clock, Some(Cause::Load));
        } else if before.owed.is_some() {
            vertex.must(self.clock, None);
        } else if !loads {
            vertex.may(self.clock);
        }
        if let (Need::Maybe(low) | Need::Must { low, .. }, Need::Must { high, .. }) =
            (before.need, vertex.need)
        {
            vertex.need = Need::Must { low, high };
            vertex.cause = None;
        }
        if let (Need::Maybe(low) | Need::Must { low, .. }, Need::Maybe(_)) =
            (before.need, vertex.need)
        {
            vertex.need = Need::Maybe(low);
        }
        if before.owed.is_some() || before.owed_unsure {
            vertex.cause = None;
        }
        vertex
    }
}
