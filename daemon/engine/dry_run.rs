//! E-11: what is supposed where nothing is changed: what would be refreshed, and what nobody can know yet.

use crate::action::{HeldReason, Notice};
use crate::engine::Engine;
use crate::ids::{Stamp, VertexId};
use crate::meta::Check;
use crate::vertex::{Causes, Phase, Vertex};
use std::collections::BTreeSet;

impl Engine {
    /// E-11: what a vertex in noop would refresh is checked as if it were; in a plan, where the change will really be made.
    pub(crate) fn assume_refresh(&mut self, id: VertexId) {
        let planned = self.vertex(id).is_some_and(|vertex| vertex.meta.planned);
        for child in self.notified(id) {
            if self.vertex(child).is_some_and(|c| c.meta.noop && (planned || !c.meta.planned)) {
                // Also one that has failed: as if it were refreshed (E-10).
                self.attempt(child);
                self.mark(child, Causes::SUPPOSED);
            }
        }
    }

    /// The nearest ancestor that rests in *would change*.
    pub(crate) fn would_change_above(&self, id: VertexId) -> Option<VertexId> {
        self.unseen_above(id, |_| false)
    }

    /// The nearest ancestor that is unknown, or would change and was not seen changed.
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

    /// In a plan: the next check of a vertex that cannot tell will not be able to tell when the changes above are made either.
    pub fn expect_failure(&mut self, id: VertexId) {
        self.certain.insert(id);
    }

    /// In a plan: nobody knows whether it will change, and so not whether those that it notifies are refreshed.
    pub(crate) fn assume_possible_refresh(&mut self, id: VertexId) {
        if self.vertex(id).is_some_and(|vertex| vertex.meta.planned) {
            self.assume_refresh(id);
        }
    }

    /// In a plan: what was found of a vertex at rest is known no more before the other is changed. So it is with those that it would
    /// refresh, and with whose check has failed below it: they are asked again.
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
        self.tell(Notice::Held(id, holding));
        if self.counts.failed > 0 {
            for below in self.all_after(id) {
                self.attempt(below);
            }
        }
        self.assume_possible_refresh(id);
    }

    /// One of these that does not come after the vertex; none where all of them do.
    #[must_use]
    pub fn not_after(&self, id: VertexId, others: &[VertexId]) -> Option<VertexId> {
        let place = self.topology.place(id);
        let before = others.iter().find(|other| self.topology.place(**other) < place);
        // Asked first: it costs nothing, and most of them are.
        before.copied().or_else(|| {
            let after = self.all_after(id);
            others.iter().find(|other| !after.contains(other)).copied()
        })
    }

    /// Tells that a vertex comes before another: a path leads from it to the other.
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

    /// In a plan: the parent whose change would refresh it, where nobody knows whether that will change, and nothing but this
    /// refresh was a reason to look.
    pub(crate) fn refreshed_perhaps(&self, id: VertexId) -> Option<VertexId> {
        let vertex = self.vertex(id).filter(|vertex| vertex.meta.planned)?;
        let run = vertex.run().filter(|run| run.refresh)?;
        let has_own_reason =
            vertex.nature.check != Check::State && !run.causes.only(Causes::SUPPOSED);
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

    /// A parent that notifies this one, and is held so.
    fn notifier(&self, id: VertexId, how: impl Fn(HeldReason) -> bool) -> Option<VertexId> {
        let parents = self.topology.parents(id).iter().copied();
        parents.filter(|parent| self.is_held(*parent, &how)).find(|parent| {
            self.topology.children(*parent).iter().any(|child| child.id == id && child.notify)
        })
    }

    fn is_held(&self, id: VertexId, how: impl FnOnce(HeldReason) -> bool) -> bool {
        self.vertex(id).and_then(Vertex::held_by).is_some_and(how)
    }

    /// Nobody knows what it would do before the other is changed: when that one is right, it is asked again.
    pub(crate) fn hold_until(&mut self, id: VertexId, above: VertexId) {
        let one_shot = self.one_shot;
        if let Some(above) = self.vertex_mut(above) {
            // In a plan nothing is changed, and who doubts asks again.
            above.awaited = !one_shot;
        }
        self.hold(id, HeldReason::UnknownUntil(above));
    }

    /// A vertex is right: whoever was unknown until then is asked again.
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

    /// A swap has taken vertices or edges away: what was unknown until one that is above no more, or would change no more, is asked again.
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
