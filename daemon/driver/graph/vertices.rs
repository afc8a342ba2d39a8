//! The vertices of one graph as they were loaded, by the numbers that they have in the engine.

use crate::config::Vertex;
use std::sync::Arc;
use steadfast_engine::VertexId;

/// Where a number stands that no vertex has.
const NOWHERE: u32 = u32::MAX;

/// What stands behind the numbers of one graph. It is taken as it was loaded, whole: a new graph costs nothing for each vertex
/// that stays.
#[derive(Debug, Default)]
pub(in crate::driver) struct VertexTable {
    vertices: Vec<Vertex>,
    /// The number of each.
    ids: Vec<VertexId>,
    /// Where each number stands among them.
    places: Vec<u32>,
    /// Who receives anything; ascending.
    receivers: Vec<VertexId>,
}

impl VertexTable {
    /// These vertices with these numbers, all of them below `numbers`.
    pub(in crate::driver) fn new(
        vertices: Vec<Vertex>,
        ids: Vec<VertexId>,
        numbers: usize,
    ) -> Self {
        let (mut places, mut receivers) = (vec![NOWHERE; numbers], Vec::new());
        for ((vertex, id), place) in vertices.iter().zip(&ids).zip(0..) {
            if let Some(slot) = places.get_mut(id.0 as usize) {
                *slot = place;
            }
            if vertex.recipe.is_some() {
                receivers.push(*id);
            }
        }
        receivers.sort_unstable();
        Self { vertices, ids, places, receivers }
    }

    pub(in crate::driver) fn get(&self, id: VertexId) -> Option<&Vertex> {
        self.vertices.get(*self.places.get(id.0 as usize)? as usize)
    }

    pub(in crate::driver) fn len(&self) -> usize {
        self.vertices.len()
    }

    pub(in crate::driver) fn has(&self, id: VertexId) -> bool {
        self.places.get(id.0 as usize).is_some_and(|place| *place != NOWHERE)
    }

    /// All of them, in the order of the graph.
    pub(in crate::driver) fn iter(&self) -> impl Iterator<Item = (VertexId, &Vertex)> {
        self.ids.iter().copied().zip(&self.vertices)
    }

    /// All numbers, ascending.
    pub(in crate::driver) fn ids(&self) -> impl Iterator<Item = VertexId> + '_ {
        let in_use = self.places.iter().zip(0..).filter(|(place, _)| **place != NOWHERE);
        in_use.map(|(_, id)| VertexId(id))
    }

    /// Who receives anything; ascending.
    pub(in crate::driver) fn receivers(&self) -> &[VertexId] {
        &self.receivers
    }

    /// Who is new there, or said otherwise in anything that is kept of it; and all that removes something. Those that have another
    /// name there are known (ascending): the numbers of all others were found by their names.
    pub(in crate::driver) fn differences(&self, new: &Self, renamed: &[VertexId]) -> Vec<VertexId> {
        let is_same = |one: &Vertex, other: &Vertex| {
            one.definition == other.definition
                && one.delete == other.delete
                && one.protect == other.protect
                && !one.removes
                && !other.removes
                && one.after == other.after
                && one.notifies == other.notifies
                && (Arc::ptr_eq(&one.meta, &other.meta) || one.meta.noop == other.meta.noop)
        };
        let differs = |(id, vertex): &(VertexId, &Vertex)| {
            let is_renamed = renamed.binary_search(id).is_ok();
            let before = self.get(*id).filter(|_| !is_renamed);
            debug_assert!(before.is_none_or(|before| before.identity == vertex.identity));
            before.is_none_or(|before| !is_same(before, vertex))
        };
        new.iter().filter(differs).map(|(id, _)| id).collect()
    }

    /// Looks for the numbers that identities have here, asked for in the order of another graph.
    pub(in crate::driver) fn follow(&self) -> OrderedLookup<'_> {
        OrderedLookup { rows: self, next: 0 }
    }
}

/// Mostly a graph names what the one before did, in the same order: then nobody is looked up.
#[derive(Debug)]
pub(in crate::driver) struct OrderedLookup<'a> {
    rows: &'a VertexTable,
    next: usize,
}

impl OrderedLookup<'_> {
    /// The number of an identity, if it comes next.
    pub(in crate::driver) fn number(&mut self, identity: &Arc<str>) -> Option<VertexId> {
        let is_next = self.rows.vertices.get(self.next)?.identity == *identity;
        let id = self.rows.ids.get(self.next).copied().filter(|_| is_next)?;
        self.next += 1;
        Some(id)
    }

    /// It was found otherwise: what stood behind it is what comes next.
    pub(in crate::driver) fn found(&mut self, id: VertexId) {
        if let Some(place) = self.rows.places.get(id.0 as usize).filter(|p| **p != NOWHERE) {
            self.next = *place as usize + 1;
        }
    }
}
