//! Pokes and back-pokes (E-2, E-8): changes of clearances along the edges.

use crate::engine::Engine;
use crate::interface::ids::{Stamp, VertexId};
use crate::interface::query_replies::Mode;
use crate::state::topology::Topology;
use crate::state::vertex::{Gate, Place, Vertex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The number of parents above which a gate counts its clearances instead of reading each parent again.
const CROWD: usize = 16;

impl Vertex {
    /// Returns the clearance that this vertex passes on: its own, or that of its parents if it is smaller. A clean
    /// vertex passes on the clearance of its parents, so a poke passes through it.
    pub(crate) fn joined_clearance(&self) -> Stamp {
        self.own_clearance().min(self.gate.least)
    }

    /// Returns the clearance of this vertex alone: descendants that became dirty before this stamp are not blocked by
    /// it.
    pub(crate) fn own_clearance(&self) -> Stamp {
        let put_off = matches!(self.place, Place::Limit(_) | Place::Backoff(_));
        let merely_limited = put_off && !self.failing;
        let limited = merely_limited && self.right > Stamp::NEVER;
        let has_tried = self.failing && !self.traits.failure_blocks;
        if limited || has_tried || self.is_settled() || self.is_out_of_the_way() {
            Stamp::CLEAR
        } else {
            self.right
        }
    }
}

impl Engine {
    /// Passes a poke from a vertex to its children. A poke passes through a clean vertex, because its clearance rises
    /// with that of its parents; it ends at a vertex with an unchanged clearance.
    pub(crate) fn pass_poke(&mut self, id: VertexId, before: Stamp, after: Stamp) {
        if before == after {
            return;
        }
        let topology = Arc::clone(&self.topology);
        for child in topology.children(id) {
            self.shift_gate(child.id, before, after);
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
        let clearance = vertex.joined_clearance();
        let before = std::mem::replace(&mut vertex.clearance, clearance);
        self.touch(id);
        before != clearance
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
