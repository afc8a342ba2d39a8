//! Readiness (E-1, E-2, E-3, E-8): the vertices that block others, maintained with each change.
//!
//! The *clearance* of a vertex is a stamp: descendants that became dirty before it are not blocked by this vertex or
//! its ancestors. The clearance is unbounded if the vertex is settled, else it is the start of its last good run. A
//! vertex may start if the smallest clearance of its parents is later than the moment at which it became dirty. A poke
//! is a rising clearance: the rise passes through clean vertices and ends at the first unchanged one. Therefore waves
//! cannot loop, and cost only the part of the graph whose readiness changes.

use crate::engine::Engine;
use crate::ids::{Stamp, VertexId};
use crate::status::Mode;
use crate::topology::Topology;
use crate::vertex::{Causes, Class, Gate, Phase, Place, Watch};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The number of parents above which a gate counts its clearances instead of reading each parent again.
const CROWD: usize = 16;

impl Engine {
    /// Marks a vertex to be settled again before this turn ends.
    pub(crate) fn touch(&mut self, id: VertexId) {
        if let Some(vertex) = self.vertex_mut(id)
            && !vertex.stale
        {
            vertex.stale = true;
            self.stale.push(id);
        }
    }

    /// Derives all consequences of the changes so far.
    pub(crate) fn settle(&mut self) {
        while let Some(id) = self.stale.pop() {
            let Some(vertex) = self.vertices.get_mut(id.0 as usize).and_then(Option::as_mut) else {
                continue;
            };
            vertex.stale = false;
            let class = (vertex.class, vertex.classify());
            vertex.class = class.1;
            let disturbs = (vertex.disturbs, vertex.is_disturbing());
            vertex.disturbs = disturbs.1;
            let clearance = vertex.own_clearance().min(vertex.gate.least);
            let before = std::mem::replace(&mut vertex.clearance, clearance);
            self.recount(class, disturbs);
            if before != clearance {
                let topology = Arc::clone(&self.topology);
                for child in topology.children(id) {
                    self.shift_gate(child.id, before, clearance);
                }
            }
            self.consider(id);
        }
    }

    fn recount(&mut self, class: (Class, Class), disturbs: (bool, bool)) {
        if class.0 != class.1 {
            *self.count_of(class.0) -= 1;
            *self.count_of(class.1) += 1;
        }
        match disturbs {
            (false, true) => self.disturbing += 1,
            (true, false) => self.disturbing -= 1,
            (true, true) | (false, false) => {}
        }
    }

    pub(crate) fn count_of(&mut self, class: Class) -> &mut u32 {
        match class {
            Class::Settled => &mut self.counts.settled,
            Class::Waiting => &mut self.counts.waiting,
            Class::Running => &mut self.counts.running,
            Class::Delayed => &mut self.counts.delayed,
            Class::Failed => &mut self.counts.failed,
            Class::Held => &mut self.counts.held,
            Class::Stuck => &mut self.counts.stuck,
            Class::Contended => &mut self.counts.contended,
        }
    }

    /// Updates a gate after the clearance of one parent changed from `before` to `after`.
    fn shift_gate(&mut self, id: VertexId, before: Stamp, after: Stamp) {
        let Some(vertex) = self.vertices.get_mut(id.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        let gate = &mut vertex.gate;
        if before == Stamp::CLEAR {
            gate.blocking += 1;
        }
        if after == Stamp::CLEAR {
            gate.blocking -= 1;
        }
        if let Some(crowd) = &mut gate.crowd {
            move_in_crowd(crowd, before, after);
        }
        let least = if after <= gate.least {
            after
        } else if before > gate.least {
            return;
        } else if gate.blocking == 0 {
            Stamp::CLEAR
        } else if let Some(crowd) = &gate.crowd {
            crowd.keys().next().copied().unwrap_or(Stamp::CLEAR)
        } else {
            self.least_above(id)
        };
        if let Some(vertex) = self.vertex_mut(id)
            && vertex.gate.least != least
        {
            vertex.gate.least = least;
            self.touch(id);
        }
    }

    fn least_above(&self, id: VertexId) -> Stamp {
        let parents = self.topology.parents(id).iter();
        parents.filter_map(|p| self.vertex(*p)).map(|p| p.clearance).min().unwrap_or(Stamp::CLEAR)
    }

    /// Corrects the gates after a swap: those that the swap has touched, those with other parents than in `before`, and
    /// their descendants. One pass, parents before children.
    pub(crate) fn rebuild_gates(&mut self, before: &Arc<Topology>) {
        let topology = Arc::clone(&self.topology);
        let order = topology.order();
        let mut due = vec![false; order.len()];
        let is_there = |id: VertexId| order.get(topology.place(id)) == Some(&id);
        for id in self.stale.iter().filter(|id| is_there(**id)) {
            due[topology.place(*id)] = true;
        }
        if !Arc::ptr_eq(before, &topology) {
            for (id, due) in order.iter().zip(&mut due) {
                *due |= before.parents(*id) != topology.parents(*id);
            }
        }
        for at in 0..order.len() {
            if due[at] && self.rebuild_gate(order[at]) {
                for child in topology.children(order[at]) {
                    due[topology.place(child.id)] = true;
                }
            }
        }
    }

    /// Derives the gate of a vertex from its parents, which must be correct already. Returns true if that changes the
    /// clearance for its children.
    fn rebuild_gate(&mut self, id: VertexId) -> bool {
        let topology = Arc::clone(&self.topology);
        let parents = topology.parents(id);
        let mut blocking = 0;
        let mut least = Stamp::CLEAR;
        let mut crowd = (parents.len() > CROWD).then(BTreeMap::new);
        for parent in parents.iter().filter_map(|p| self.vertex(*p)) {
            blocking += u32::from(parent.clearance != Stamp::CLEAR);
            least = least.min(parent.clearance);
            if let Some(crowd) = &mut crowd {
                move_in_crowd(crowd, Stamp::CLEAR, parent.clearance);
            }
        }
        let Some(vertex) = self.vertex_mut(id) else { return false };
        vertex.gate = Gate { blocking, least, crowd };
        let clearance = vertex.own_clearance().min(least);
        let before = std::mem::replace(&mut vertex.clearance, clearance);
        self.touch(id);
        before != clearance
    }

    /// Queues a vertex if it may start, and withdraws it if it may not (E-7).
    fn consider(&mut self, id: VertexId) {
        let mode = self.mode;
        let Some(vertex) = self.vertex(id) else { return };
        if vertex.run().is_some() {
            return;
        }
        if matches!(&vertex.phase, Phase::Asking(asking) if asking.awaited.is_empty()) {
            self.unjudged.push(id);
            return;
        }
        let may = !vertex.frozen && vertex.watch != Watch::Asked;
        let may = may && !self.parked.contains(&id);
        let run = may && vertex.wants_run() && vertex.gate.least > vertex.dirty_since;
        let look = may && !run && vertex.wants_look();
        let open = match mode {
            Mode::Running => true,
            Mode::Draining => vertex.drains && !look,
            Mode::Pausing | Mode::Paused | Mode::Stopping | Mode::Stopped => false,
        };
        match vertex.place {
            // The vertex was shelved for a look, or before a drain owed it a refresh.
            Place::Shelf if run && open => {
                self.withdraw(id);
                self.enter(id, run, look, open);
            }
            Place::Shelf => {}
            Place::Nowhere => self.enter(id, run, look, open),
            Place::Look(_) if look && open => {}
            Place::Limit(_) | Place::Semaphores | Place::Slot(_) if run && open => {}
            Place::Backoff(at) if run && open && self.is_delayed(id) == Some(at) => {}
            Place::Look(_)
            | Place::Limit(_)
            | Place::Backoff(_)
            | Place::Semaphores
            | Place::Slot(_) => {
                self.withdraw(id);
                self.enter(id, run, look, open);
            }
        }
    }

    fn enter(&mut self, id: VertexId, run: bool, look: bool, open: bool) {
        match (run || look, open) {
            (false, _) => {}
            (true, false) => {
                if let Some(vertex) = self.vertex_mut(id) {
                    vertex.place = Place::Shelf;
                    self.shelf.push(id);
                }
            }
            (true, true) if run => self.enqueue(id),
            (true, true) => self.enqueue_look(id),
        }
    }

    /// Marks a vertex dirty. If an ancestor blocks it, the vertex sends a back-poke (E-3).
    pub(crate) fn mark(&mut self, id: VertexId, cause: Causes) {
        let stamp = Stamp(self.stamp.0 + 1);
        let Some(vertex) = self.vertex_mut(id) else { return };
        let newly = !vertex.causes.any();
        let waited = vertex.causes.can_wait();
        vertex.causes.add(cause);
        let overtakes = waited && !vertex.causes.can_wait();
        let queued = matches!(vertex.place, Place::Slot(_));
        if newly {
            vertex.dirty_since = stamp;
            self.stamp = stamp;
            self.back_poke(id);
        }
        if overtakes && queued {
            // The vertex waits for a slot among loaded ones, and now has a higher priority.
            self.push_slot(id);
        }
        self.touch(id);
    }

    /// Gives the blocking ancestors that had failed for good one attempt each (E-3); all others are in progress
    /// already. Does nothing unless the engine runs: a resume makes up for it.
    pub(crate) fn back_poke(&mut self, id: VertexId) {
        self.back_poke_all(vec![id]);
    }

    /// Back-pokes for many vertices in one walk: the vertex that became dirty last is blocked by every blocker of the
    /// others.
    pub(crate) fn back_poke_all(&mut self, mut ids: Vec<VertexId>) {
        if self.mode != Mode::Running || self.counts.failed == 0 || self.rewires {
            return;
        }
        let since = |engine: &Self, id| engine.vertex(id).map_or(Stamp::NEVER, |v| v.dirty_since);
        ids.sort_by_key(|id| std::cmp::Reverse(since(self, *id)));
        let mut seen = BTreeSet::new();
        for id in ids {
            self.back_poke_from(id, since(self, id), &mut seen);
        }
    }

    fn back_poke_from(&mut self, id: VertexId, since: Stamp, seen: &mut BTreeSet<VertexId>) {
        let topology = Arc::clone(&self.topology);
        let mut next = vec![id];
        while let Some(at) = next.pop() {
            for parent in topology.parents(at) {
                let blocks = self.vertex(*parent).is_some_and(|p| p.clearance <= since);
                if blocks && seen.insert(*parent) {
                    next.push(*parent);
                    self.revive(*parent);
                }
            }
        }
    }

    /// Gives a vertex that had failed for good one attempt, with its budget unchanged (E-10). The vertex sends a
    /// back-poke as well.
    pub(crate) fn attempt(&mut self, id: VertexId) {
        if self.revive(id) {
            self.back_poke(id);
        }
    }

    fn revive(&mut self, id: VertexId) -> bool {
        let stamp = Stamp(self.stamp.0 + 1);
        let Some(vertex) = self.vertex_mut(id) else { return false };
        if !matches!(vertex.phase, Phase::Failed { .. }) {
            return false;
        }
        vertex.phase = Phase::Resting;
        vertex.causes.add(Causes::AGAIN);
        vertex.dirty_since = stamp;
        self.stamp = stamp;
        self.touch(id);
        true
    }
}

fn move_in_crowd(crowd: &mut BTreeMap<Stamp, u32>, before: Stamp, after: Stamp) {
    if before != Stamp::CLEAR
        && let Some(n) = crowd.get_mut(&before)
    {
        *n -= 1;
        if *n == 0 {
            crowd.remove(&before);
        }
    }
    if after != Stamp::CLEAR {
        *crowd.entry(after).or_insert(0) += 1;
    }
}
