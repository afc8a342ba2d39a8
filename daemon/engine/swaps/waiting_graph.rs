//! Waiting graphs (E-17): an accepted graph waits until every vertex that it changes or removes is at rest. None of
//! them starts meanwhile.

use crate::engine::Engine;
use crate::interface::action::Notice;
use crate::interface::event::Swap;
use crate::interface::ids::{Tick, VertexId};
use crate::interface::query_replies::Mode;
use crate::state::vertex::{Cancelled, Phase, Vertex};
use std::collections::BTreeSet;
use std::time::Duration;

/// The time that a swap waits for runs before it cancels them, if the kind allows.
pub(crate) const GRACE: Duration = Duration::from_secs(30);

/// An accepted graph that waits until the vertices that it changes are at rest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    pub(crate) swap: Swap,
    pub(crate) changed: Vec<VertexId>,
    pub(crate) removed: Vec<VertexId>,
    /// The vertices that are new, changed, or have other metaparams: all that the swap examines.
    pub(crate) differs: Vec<VertexId>,
    pub(crate) cancel_at: Option<Tick>,
    /// At least one removed vertex must converge once before the removal.
    pub(crate) realizes: bool,
}

impl Engine {
    /// Returns the vertices that the waiting graph changes or removes and that still run, or that must converge once
    /// before their removal. A stuck run delays no swap: removing its vertex is the way out.
    pub(crate) fn waits_for(&self) -> Vec<VertexId> {
        let Some(pending) = &self.pending else { return Vec::new() };
        let all = pending.changed.iter().chain(&pending.removed);
        let runs = |id: VertexId| self.vertex(id).and_then(Vertex::run).is_some_and(|r| !r.stuck);
        let gone = |id: VertexId| pending.removed.binary_search(&id).is_ok();
        all.filter(|id| runs(**id) || gone(**id) && self.is_to_realize(**id)).copied().collect()
    }

    /// Returns the vertices that the waiting graph waits for, and those that it waited for until its time was over.
    pub(crate) fn waited_for(&self) -> Vec<VertexId> {
        let realizes = |id: &VertexId| self.vertex(*id).is_some_and(|v| v.meta.realize && !v.done);
        let removed = self.pending.iter().flat_map(|pending| &pending.removed).copied();
        let mut all = self.waits_for();
        all.extend(removed.filter(realizes));
        all
    }

    /// Returns true if a vertex with `realize` is about to be removed, has never converged, and still can within the
    /// grace of the swap.
    fn is_to_realize(&self, id: VertexId) -> bool {
        let waits = self.pending.as_ref().is_some_and(|pending| pending.cancel_at.is_some());
        let goes_on = waits && self.mode == Mode::Running;
        goes_on
            && self.vertex(id).is_some_and(|v| {
                let can = !matches!(v.phase, Phase::Failed { .. } | Phase::Held(_));
                v.meta.realize && !v.meta.noop && !v.done && can && v.causes_or_runs()
            })
    }

    /// Prevents starts of all vertices that the waiting graph changes or removes, except for those that must converge
    /// once and their ancestors.
    pub(crate) fn freeze(&mut self) {
        let Some(pending) = &self.pending else { return };
        let all: Vec<VertexId> = pending.changed.iter().chain(&pending.removed).copied().collect();
        let removed = pending.removed.iter().copied();
        let mut next: Vec<VertexId> = removed.filter(|id| self.is_to_realize(*id)).collect();
        let mut needed = BTreeSet::new();
        while let Some(id) = next.pop() {
            if needed.insert(id) {
                next.extend(self.topology.parents(id));
            }
        }
        for id in all {
            let frozen = !needed.contains(&id);
            if let Some(vertex) = self.vertex_mut(id)
                && std::mem::replace(&mut vertex.frozen, frozen) != frozen
            {
                self.touch(id);
            }
        }
    }

    /// Drops a waiting graph; the vertices that it had frozen continue.
    pub(crate) fn thaw(&mut self) -> bool {
        let Some(pending) = self.pending.take() else { return false };
        for id in pending.changed.into_iter().chain(pending.removed) {
            if let Some(vertex) = self.vertex_mut(id) {
                vertex.frozen = false;
                self.touch(id);
            }
        }
        true
    }

    pub(crate) fn drop_pending(&mut self) {
        if self.thaw() {
            self.notify(Notice::SwapRefused);
        }
    }

    pub(crate) fn fire_swap(&mut self) {
        let now = self.now;
        let Some(pending) = &mut self.pending else { return };
        if pending.cancel_at.is_some_and(|at| at <= now) {
            pending.cancel_at = None;
            self.freeze();
            for id in self.waits_for() {
                self.cancel(id, Cancelled::Withdrawn);
            }
        }
    }
}
