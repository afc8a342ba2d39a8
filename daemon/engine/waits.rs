//! A graph that waits (E-17): until all that it changes or removes is at rest, and nothing of that starts.

use crate::action::Notice;
use crate::engine::Engine;
use crate::event::Swap;
use crate::ids::{Tick, VertexId};
use crate::status::Mode;
use crate::vertex::{Cancelled, Phase, Vertex};
use std::collections::BTreeSet;
use std::time::Duration;

/// The time that a swap waits for runs before it cancels them, where the kind allows.
pub(crate) const GRACE: Duration = Duration::from_secs(30);

/// A graph that was taken and waits for what it changes to come to rest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    pub(crate) swap: Swap,
    pub(crate) changed: Vec<VertexId>,
    pub(crate) removed: Vec<VertexId>,
    /// The vertices that are new, changed, or have other metaparams: all that the swap looks at.
    pub(crate) differs: Vec<VertexId>,
    pub(crate) cancel_at: Option<Tick>,
    /// Something of it must be right once before it goes.
    pub(crate) realizes: bool,
}

impl Engine {
    /// Vertices that the waiting graph changes or removes and that still run, or that must be right once before they go. A stuck run
    /// holds nobody up: to remove what hangs is the way out of it.
    pub(crate) fn waits_for(&self) -> Vec<VertexId> {
        let Some(pending) = &self.pending else { return Vec::new() };
        let all = pending.changed.iter().chain(&pending.removed);
        let runs = |id: VertexId| self.vertex(id).and_then(Vertex::run).is_some_and(|r| !r.stuck);
        let gone = |id: VertexId| pending.removed.binary_search(&id).is_ok();
        all.filter(|id| runs(**id) || gone(**id) && self.is_to_realize(**id)).copied().collect()
    }

    /// The same, and what the waiting graph waited for until its time was over.
    pub(crate) fn waited_for(&self) -> Vec<VertexId> {
        let realizes = |id: &VertexId| self.vertex(*id).is_some_and(|v| v.meta.realize && !v.done);
        let removed = self.pending.iter().flat_map(|pending| &pending.removed).copied();
        let mut all = self.waits_for();
        all.extend(removed.filter(realizes));
        all
    }

    /// `realize`: a vertex that is about to be removed has never been right, and still can be, before the swap has waited too long.
    fn is_to_realize(&self, id: VertexId) -> bool {
        let waits = self.pending.as_ref().is_some_and(|pending| pending.cancel_at.is_some());
        let goes_on = waits && self.mode == Mode::Running;
        goes_on
            && self.vertex(id).is_some_and(|v| {
                let can = !matches!(v.phase, Phase::Failed { .. } | Phase::Held(_));
                v.meta.realize && !v.meta.noop && !v.done && can && v.causes_or_runs()
            })
    }

    /// Stops starts of all vertices that the waiting graph changes or removes, but for those that must be right once and their ancestors.
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

    /// Gives up a waiting graph: what it had frozen goes on.
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
            self.tell(Notice::SwapRefused);
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
