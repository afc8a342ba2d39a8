//! Dry runs (E-11): a run that finds a difference is held and never begins an apply; refreshes are assumed, and
//! findings stay unknown until an ancestor is changed.

use crate::engine::Engine;
use crate::interface::action::{HeldReason, Notice};
use crate::interface::ids::{Stamp, VertexId};
use crate::state::vertex::{Causes, Phase, Vertex};
use std::collections::BTreeSet;
use steadfast_traits::RunPolicy;

impl Engine {
    /// Holds a run that found a difference if its vertex is in noop, and returns true then. Without the action
    /// `Begin` no apply follows, and only an apply gets a permit to write.
    pub(crate) fn hold_if_dry_run(&mut self, id: VertexId) -> bool {
        let Some(vertex) = self.vertex(id) else { return false };
        if vertex.meta.noop && (!vertex.meta.planned || self.is_allowed(id)) {
            let perhaps = self.refreshed_perhaps(id).map(HeldReason::UnknownUntil);
            self.hold(id, perhaps.unwrap_or(HeldReason::WouldChange));
            self.assume_refresh(id);
            return true;
        }
        false
    }

    /// E-11: marks the children that a vertex in noop would refresh, so that they are checked as if it had. In a plan
    /// only the changes that will be applied count.
    pub(crate) fn assume_refresh(&mut self, id: VertexId) {
        let planned = self.vertex(id).is_some_and(|vertex| vertex.meta.planned);
        for child in self.notified(id) {
            if self.vertex(child).is_some_and(|c| c.meta.noop && (planned || !c.meta.planned)) {
                // A child that has failed is checked as well (E-10).
                self.attempt(child);
                self.mark(child, Causes::SUPPOSED);
            }
        }
    }

    /// Returns the nearest ancestor that is held as *would change*.
    pub(crate) fn would_change_above(&self, id: VertexId) -> Option<VertexId> {
        self.unseen_above(id, |_| false)
    }

    /// Returns the nearest ancestor that is unknown, or that would change and for which `is_seen` is false.
    #[must_use]
    pub fn unseen_above(
        &self,
        id: VertexId,
        is_seen: impl Fn(VertexId) -> bool,
    ) -> Option<VertexId> {
        let mut seen = BTreeSet::new();
        let mut next = vec![id];
        while let Some(at) = next.pop() {
            for parent in self.topology.parents(at) {
                match self.vertex(*parent).map(Vertex::held_by) {
                    Some(Some(HeldReason::UnknownUntil(_))) => return Some(*parent),
                    Some(Some(HeldReason::WouldChange)) if !is_seen(*parent) => {
                        return Some(*parent);
                    }
                    Some(_) if seen.insert(*parent) => next.push(*parent),
                    Some(_) | None => {}
                }
            }
        }
        None
    }

    /// Records for a plan that the check of a vertex fails even after the changes of its ancestors.
    pub fn expect_failure(&mut self, id: VertexId) {
        self.certain.insert(id);
    }

    /// Assumes in a plan that a vertex of unknown result refreshes its children.
    pub(crate) fn assume_possible_refresh(&mut self, id: VertexId) {
        if self.vertex(id).is_some_and(|vertex| vertex.meta.planned) {
            self.assume_refresh(id);
        }
    }

    /// Invalidates in a plan the finding of a vertex at rest until another vertex is changed. The vertex is checked
    /// again, with the vertices that it would refresh and the descendants whose check has failed.
    pub(crate) fn invalidate_finding(&mut self, id: VertexId, until: VertexId) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        let is_told = !vertex.causes.any()
            && match &vertex.phase {
                Phase::Resting | Phase::Failed { .. } => true,
                Phase::Held(holding) => {
                    matches!(holding, HeldReason::WouldChange | HeldReason::WouldRefresh)
                }
                Phase::Running(_) | Phase::Delayed(_) | Phase::Asking(_) => false,
            };
        if !vertex.meta.noop || !is_told {
            return;
        }
        let holding = HeldReason::UnknownUntil(until);
        vertex.phase = Phase::Held(holding);
        vertex.failing = false;
        self.touch(id);
        self.diverge(id);
        self.notify(Notice::Held(id, holding));
        if self.counts.failed > 0 {
            for below in self.all_after(id) {
                self.attempt(below);
            }
        }
        self.assume_possible_refresh(id);
    }

    /// Returns one of `others` that does not come after the vertex; none if all of them do.
    #[must_use]
    pub fn not_after(&self, id: VertexId, others: &[VertexId]) -> Option<VertexId> {
        let place = self.topology.place(id);
        let before = others.iter().find(|other| self.topology.place(**other) < place);
        // The comparison of positions comes first: it is cheap and finds most of them.
        before.copied().or_else(|| {
            let after = self.all_after(id);
            others.iter().find(|other| !after.contains(other)).copied()
        })
    }

    /// Returns true if a path leads from `id` to `other`.
    #[must_use]
    pub fn is_before(&self, id: VertexId, other: VertexId) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![other]);
        while let Some(at) = next.pop() {
            let parents = self.topology.parents(at).iter().copied();
            next.extend(parents.filter(|parent| seen.insert(*parent)));
            if seen.contains(&id) {
                return true;
            }
        }
        false
    }

    pub(crate) fn all_after(&self, id: VertexId) -> BTreeSet<VertexId> {
        let (mut found, mut next) = (BTreeSet::new(), vec![id]);
        while let Some(at) = next.pop() {
            let children = self.topology.children(at).iter().map(|child| child.id);
            next.extend(children.filter(|child| found.insert(*child)));
        }
        found
    }

    /// Returns in a plan the parent whose unknown change would refresh the vertex, if that refresh is the only reason
    /// for this run.
    pub(crate) fn refreshed_perhaps(&self, id: VertexId) -> Option<VertexId> {
        let vertex = self.vertex(id).filter(|vertex| vertex.meta.planned)?;
        let run = vertex.run().filter(|run| run.refresh)?;
        let has_own_reason =
            vertex.traits.repeat != RunPolicy::State && !run.causes.only(Causes::SUPPOSED);
        if vertex.owed > Stamp::NEVER || has_own_reason {
            return None;
        }
        match self.notifier(id, |holding| holding == HeldReason::WouldChange) {
            Some(_) => None,
            None => self.unknown_notifier(id),
        }
    }

    fn unknown_notifier(&self, id: VertexId) -> Option<VertexId> {
        self.notifier(id, |holding| matches!(holding, HeldReason::UnknownUntil(_)))
    }

    /// Returns a parent that notifies this vertex and is held for a reason that `how` accepts.
    fn notifier(&self, id: VertexId, how: impl Fn(HeldReason) -> bool) -> Option<VertexId> {
        let parents = self.topology.parents(id).iter().copied();
        parents.filter(|parent| self.is_held(*parent, &how)).find(|parent| {
            self.topology.children(*parent).iter().any(|child| child.id == id && child.notify)
        })
    }

    fn is_held(&self, id: VertexId, how: impl FnOnce(HeldReason) -> bool) -> bool {
        self.vertex(id).and_then(Vertex::held_by).is_some_and(how)
    }

    /// Holds a vertex as unknown until the vertex `above` is changed. The vertex is checked again once `above` has
    /// converged.
    pub(crate) fn hold_until(&mut self, id: VertexId, above: VertexId) {
        let one_shot = self.one_shot;
        if let Some(above) = self.vertex_mut(above) {
            // Nothing is changed in a plan; a doubtful vertex asks again by itself.
            above.awaited = !one_shot;
        }
        self.hold(id, HeldReason::UnknownUntil(above));
    }

    /// Checks the descendants again that were unknown until this vertex converged.
    pub(crate) fn ask_those_below(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        if std::mem::take(&mut vertex.awaited) {
            for below in self.all_after(id) {
                if self.is_held(below, |holding| holding == HeldReason::UnknownUntil(id)) {
                    self.mark(below, Causes::AGAIN);
                }
            }
        }
    }

    /// Checks the vertices again that were held as unknown because of an ancestor that a swap removed, or that would no
    /// longer change.
    pub(crate) fn ask_what_is_known(&mut self) {
        let unknown =
            |vertex: &Vertex| matches!(vertex.held_by(), Some(HeldReason::UnknownUntil(_)));
        for id in self.all(unknown) {
            let is_gone = self.is_held(id, |holding| {
                matches!(holding, HeldReason::UnknownUntil(other)
                    if self.vertex(other).is_none_or(|vertex| vertex.leaving))
            });
            if is_gone || self.would_change_above(id).is_none() {
                self.mark(id, Causes::AGAIN);
            }
        }
    }
}
