//! Swaps (E-17): a new graph replaces the running one. The graphs are compared, differing vertices come to rest, and
//! the replacement is one step.

use crate::engine::Engine;
use crate::interface::action::{Action, HeldReason, Notice};
use crate::interface::event::Swap;
use crate::interface::graph::{Graph, RestoredState, VertexSpec};
use crate::interface::ids::{SemaphoreId, Stamp, VertexId};
use crate::interface::metaparams::Poll;
use crate::interface::query_replies::Mode;
use crate::state::deadlines::Timer;
use crate::state::topology::Topology;
use crate::state::vertex::{Causes, Phase, Place, RunKind, Vertex, Watch};
use crate::swaps::comparison::Difference;
use crate::swaps::stored_state::AtLoad;
use crate::swaps::waiting_graph::{GRACE, Pending};
use std::sync::Arc;

/// The stamp of a vertex that a load finds settled: earlier than every stamp of this engine's runs.
const SETTLED: Stamp = Stamp(1);

impl Engine {
    pub(crate) fn swap(&mut self, swap: Swap) {
        if matches!(self.mode, Mode::Stopping | Mode::Stopped) {
            self.notify(Notice::SwapRefused);
            return;
        }
        let until = self.pending.as_ref().map(|p| p.cancel_at.unwrap_or(self.now));
        let waited = self.waited_for();
        self.thaw();
        let Difference { changed, removed, differs } = self.difference(&swap.graph);
        let cancel_at = Some(self.now.after(GRACE));
        let realizes =
            removed.iter().any(|id| self.vertex(*id).is_some_and(|vertex| vertex.meta.realize));
        self.pending = Some(Pending { swap, changed, removed, differs, cancel_at, realizes });
        self.freeze();
        // A newer graph gives no additional time to vertices for which the older one has waited already.
        let again = self.waits_for().iter().any(|id| waited.contains(id));
        if let (Some(pending), Some(until), true) = (&mut self.pending, until, again) {
            pending.cancel_at = pending.cancel_at.min(Some(until));
        }
        self.fire_swap();
        let waits = self.waits_for();
        if !waits.is_empty() {
            self.notify(Notice::SwapWaits(waits));
        }
    }

    /// Replaces the graph as soon as none of the changed vertices runs. Returns true if that was done.
    pub(crate) fn commit_when_quiet(&mut self) -> bool {
        if self.pending.is_none() || !self.waits_for().is_empty() {
            return false;
        }
        let Some(pending) = self.pending.take() else { return false };
        let Pending { swap, changed, removed, differs, .. } = pending;
        let stamp = self.stamp;
        // Vertices marked here send back-pokes along the new edges.
        self.rewires = true;
        for id in &removed {
            self.remove(*id);
        }
        self.drop_gone_ids(&removed);
        self.semaphores.resize(&swap.graph.semaphores);
        for id in &changed {
            if let Some(new) = swap.graph.get(*id) {
                self.redefine(*id, new, swap.recall.get(id));
            }
        }
        let gone = u32::try_from(removed.len()).unwrap_or(u32::MAX);
        // A vertex that was leaving may have gone while its graph waited: it is added as a new one.
        let still = changed.iter().filter(|id| self.vertex(**id).is_some()).count();
        let differ = u32::try_from(still).unwrap_or(u32::MAX);
        let added = self.adopt(&swap, &differs);
        self.rewire(&swap.graph, stamp);
        self.judge_all();
        if swap.operator {
            self.encourage_all();
        }
        self.said_converged = false;
        // Not derived from the total before, which includes removed vertices that are stuck.
        let all = u32::try_from(swap.graph.len()).unwrap_or(u32::MAX);
        let kept = all.saturating_sub(added).saturating_sub(differ);
        self.notify(Notice::Loaded { added, changed: differ, removed: gone, kept });
        true
    }

    /// Removes vertices that are gone from the lists of runs in progress: their numbers may be given to others.
    fn drop_gone_ids(&mut self, gone: &[VertexId]) {
        if gone.is_empty() {
            return;
        }
        for id in self.running() {
            if let Some(run) = self.vertex_mut(id).and_then(Vertex::run_mut) {
                run.owes.retain(|child| gone.binary_search(child).is_err());
            }
        }
    }

    fn remove(&mut self, id: VertexId) {
        self.paused_vertices.remove(&id);
        self.withdraw(id);
        self.stop_asking(id);
        self.forget_timers(id);
        self.forget_contention(id);
        if self.vertex(id).is_some_and(|v| v.run().is_some()) {
            self.start_leaving(id);
            return;
        }
        let Some(vertex) = self.vertices.get_mut(id.0 as usize).and_then(Option::take) else {
            return;
        };
        *self.count_of(vertex.class) -= 1;
        self.counts.total -= 1;
        self.disturbing -= u32::from(vertex.disturbs);
        if vertex.watch != Watch::None {
            self.out.push(Action::Unwatch(id));
        }
        self.out.push(Action::Forget(id, vertex.recall()));
    }

    /// Marks a removed vertex with a stuck run: it stays until the run returns, without edges, watch or causes (E-6:
    /// never two runs at once).
    fn start_leaving(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.leaving = true;
        vertex.causes = Causes::default();
        vertex.look = false;
        vertex.owed = Stamp::NEVER;
        vertex.gate = crate::state::vertex::Gate::open();
        if let Some(run) = vertex.run_mut() {
            run.obsolete = true;
        }
        if std::mem::replace(&mut vertex.watch, Watch::None) != Watch::None {
            self.out.push(Action::Unwatch(id));
        }
        self.touch(id);
    }

    /// Removes a vertex whose stuck run has returned, if it was marked as leaving.
    pub(crate) fn leave(&mut self, id: VertexId) {
        if self.vertex(id).is_some_and(|v| v.leaving) {
            self.remove(id);
            self.drop_gone_ids(&[id]);
        }
    }

    fn forget_timers(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        let poll = vertex.poll_at.take();
        let retry = if let Phase::Delayed(at) = vertex.phase { Some(at) } else { None };
        for (at, timer) in
            poll.map(|at| (at, Timer::Poll)).into_iter().chain(retry.map(|at| (at, Timer::Retry)))
        {
            self.timers.clear(at, id, timer);
        }
    }

    /// Deletes the contention of a vertex that is removed or redefined, without a notice: the new graph is reported
    /// already.
    fn forget_contention(&mut self, id: VertexId) {
        if let Some(contention) = self.contentions.get_mut(&id) {
            contention.reported = None;
            self.end_contention(id);
        }
    }

    /// Gives a vertex another definition. The vertex is no longer converged; owed refreshes stay owed. If the stored
    /// state shows the new definition as done, the vertex was only renamed, and stays done.
    fn redefine(&mut self, id: VertexId, new: &VertexSpec, recall: Option<&RestoredState>) {
        self.forget_contention(id);
        self.stop_asking(id);
        let before = self.vertex(id).map(|v| Arc::clone(&v.meta));
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.done &= recall.is_some_and(|recall| recall.done == Some(new.definition));
        let done = vertex.done.then_some(new.definition);
        vertex.definition = new.definition;
        let was = std::mem::replace(&mut vertex.traits, new.traits).repeat;
        // An operation is not repeated for a look at its former definition.
        vertex.look &= vertex.is_checkable();
        vertex.frozen = false;
        let came_back = std::mem::take(&mut vertex.leaving);
        if let Some(run) = vertex.run_mut() {
            run.obsolete = true;
        }
        vertex.excused = 0;
        vertex.right = Stamp::NEVER;
        vertex.retries = 0;
        if new.meta.reset {
            vertex.doublings = 0;
        }
        match vertex.phase {
            Phase::Delayed(at) if new.meta.reset => {
                vertex.phase = Phase::Resting;
                self.timers.clear(at, id, Timer::Retry);
            }
            Phase::Failed { .. } | Phase::Held(_) => vertex.phase = Phase::Resting,
            Phase::Resting | Phase::Running(_) | Phase::Delayed(_) | Phase::Asking(_) => {}
        }
        let settled = self.vertex(id).map(|v| v.at_load(done, false)) == Some(AtLoad::Settled);
        if settled && was != new.traits.repeat {
            self.forget_what_it_was(id);
        }
        if settled && let Some(vertex) = self.vertex_mut(id) {
            // The state of a vertex that a load finds settled.
            (vertex.right, vertex.done, vertex.failing) = (SETTLED, true, false);
        }
        if let Some(before) = before {
            self.change_meta(id, &before, new);
        }
        if came_back {
            // Its poll was cleared at the removal, and its metaparams may be unchanged.
            self.set_poll(id);
        }
        self.rewatch(id);
        if !settled {
            self.mark(id, Causes::LOAD);
            self.renew_dirt(id);
        }
        if self.vertex(id).is_some_and(|v| v.owed > Stamp::NEVER) {
            self.mark(id, Causes::OWED);
        }
    }

    /// Sets the moment at which a redefined vertex became dirty to now: an ancestor that converged for the old
    /// definition may block it.
    fn renew_dirt(&mut self, id: VertexId) {
        let stamp = self.tick_stamp();
        if let Some(vertex) = self.vertex_mut(id) {
            vertex.dirty_since = stamp;
        }
    }

    /// Applies the metaparams of an unchanged or redefined vertex.
    fn change_meta(&mut self, id: VertexId, before: &crate::Meta, new: &VertexSpec) {
        if *before == *new.meta {
            return;
        }
        let Some(vertex) = self.vertex_mut(id) else { return };
        let queued = !matches!(vertex.place, Place::Nowhere | Place::Shelf);
        let running = vertex.run().is_some_and(|r| r.kind == RunKind::Process);
        if queued && (before.semaphores != new.meta.semaphores || before.pace != new.meta.pace) {
            self.withdraw(id);
        }
        if running && before.semaphores != new.meta.semaphores {
            // A run in progress holds the semaphores that a start would take now; new starts are limited accordingly.
            self.semaphores.release(&before.semaphores);
            self.semaphores.take_over(&new.meta.semaphores);
            self.admit_waiting(&before.semaphores);
        }
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.meta = Arc::clone(&new.meta);
        if before.pace != new.meta.pace {
            vertex.pace = None;
        }
        let freed = before.noop && !new.meta.noop;
        let held = vertex.held_by().is_some_and(|holding| holding != HeldReason::Operator);
        let waits = matches!(vertex.held_by(), Some(HeldReason::Window(_)));
        let contends_otherwise = before.on_conflict != new.meta.on_conflict || new.meta.noop;
        if freed {
            // The finding in noop is not valid for real runs.
            vertex.right = Stamp::NEVER;
        }
        if freed && held {
            match vertex.run_mut() {
                Some(look) => look.kind = RunKind::Look(None),
                None => vertex.phase = Phase::Resting,
            }
        }
        if freed && (held || vertex.owed > Stamp::NEVER) {
            // An owed refresh is a reason to run from now on, also if the check has failed for good.
            self.attempt(id);
            self.mark(id, Causes::LOAD);
        }
        // In noop the vertex is checked for possible changes.
        if waits && (before.window != new.meta.window || new.meta.noop) {
            self.let_in(id);
        }
        if contends_otherwise {
            self.forget_contention(id);
        }
        if before.poll != new.meta.poll {
            self.set_poll(id);
            self.rewatch(id);
            if new.meta.poll == Poll::Never && !self.one_shot {
                // Changes between the last poll and the new watch were not observed.
                self.suspect(id);
            }
        }
        self.touch(id);
    }

    /// Closes the watch of a vertex and opens the one that it needs now.
    fn rewatch(&mut self, id: VertexId) {
        let one_shot = self.one_shot;
        let Some(vertex) = self.vertex_mut(id) else { return };
        let wants = vertex.wants_watch() && !one_shot;
        let next = if wants { Watch::Asked } else { Watch::None };
        let before = std::mem::replace(&mut vertex.watch, next);
        if before != Watch::None {
            self.out.push(Action::Unwatch(id));
        }
        if wants {
            self.out.push(Action::Watch(id));
        }
        self.touch(id);
    }

    /// Adds new vertices, and gives unchanged ones their new metaparams. Returns the number of new vertices.
    fn adopt(&mut self, swap: &Swap, differs: &[VertexId]) -> u32 {
        let none = RestoredState::default();
        let mut added = 0;
        for id in differs {
            let Some(new) = swap.graph.get(*id) else { continue };
            if let Some(vertex) = self.vertex(*id) {
                let before = Arc::clone(&vertex.meta);
                self.change_meta(*id, &before, new);
                continue;
            }
            self.add(new, swap.recall.get(id).unwrap_or(&none));
            added += 1;
        }
        added
    }

    fn add(&mut self, new: &VertexSpec, recall: &RestoredState) {
        let (id, at) = (new.id, new.id.0 as usize);
        let mut vertex = Vertex::new(new);
        let load = vertex.at_load(recall.done, recall.interrupted);
        vertex.done = recall.done == Some(new.definition);
        if let Some((stamp, _)) = recall.owed {
            self.stamp = self.stamp.max(stamp);
        }
        if let Some((stamp, by)) = vertex.owed_at_load(recall) {
            (vertex.owed, vertex.owed_by) = (stamp, by);
        }
        match load {
            AtLoad::Process => {}
            // The vertex converged before this daemon began.
            AtLoad::Settled => (vertex.right, vertex.done) = (SETTLED, true),
            AtLoad::WaitForOperator => vertex.phase = Phase::Held(HeldReason::Operator),
        }
        let owed = vertex.owed > Stamp::NEVER;
        if at >= self.vertices.len() {
            self.vertices.resize_with(at + 1, || None);
        }
        self.vertices[at] = Some(vertex);
        self.counts.total += 1;
        self.counts.settled += 1;
        self.set_poll(id);
        self.rewatch(id);
        if load == AtLoad::Process {
            self.mark(id, Causes::LOAD);
            if recall.interrupted {
                // The state is unknown since the last start: looked at before vertices that were never touched (B-8).
                self.mark(id, Causes::AGAIN);
            }
        }
        if load == AtLoad::WaitForOperator {
            self.notify(Notice::Held(id, HeldReason::Operator));
        }
        if owed {
            self.mark(id, Causes::OWED);
        }
    }

    /// Installs the new edges.
    fn rewire(&mut self, graph: &Graph, before: Stamp) {
        let edges = Arc::clone(&self.topology);
        self.rewires = false;
        // Most graphs differ in a few resources and in no edge.
        if !edges.is_of(graph) {
            self.topology = Arc::new(Topology::new(graph, self.vertices.len()));
        }
        self.rebuild_gates(&edges);
        let semaphores: Vec<SemaphoreId> = (0..graph.semaphores.len())
            .filter_map(|n| u32::try_from(n).ok())
            .map(SemaphoreId)
            .collect();
        self.admit_waiting(&semaphores);
        if self.counts.failed > 0 {
            // Vertices that were dirty before have sent their back-pokes before: a swap alone is no attempt (E-10).
            let newly = |v: &Vertex| v.causes.any() && v.dirty_since > before;
            let touched = self.stale.iter();
            let all = touched.filter(|id| self.vertex(**id).is_some_and(newly)).copied().collect();
            self.back_poke_all(all);
        }
        if self.counts.held > 0 && !self.one_shot {
            self.ask_what_is_known();
        }
    }

    /// Refills all budgets and retries all failed vertices after an operator's reload.
    fn encourage_all(&mut self) {
        for vertex in self.vertices.iter_mut().flatten() {
            vertex.retries = 0;
        }
        let contentions: Vec<VertexId> = self.contentions.keys().copied().collect();
        for id in contentions {
            self.end_contention(id);
        }
        let failing = self.all(|vertex| vertex.failing);
        for id in failing {
            self.attempt(id);
        }
    }
}
