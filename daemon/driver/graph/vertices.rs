//! The vertices of one graph, found by vertex number.

use crate::config::Vertex;
use std::sync::Arc;
use steadfast_engine::VertexId;

/// The position of a vertex number that no vertex has.
const NOWHERE: u32 = u32::MAX;

/// The vertices of one graph in the order of the file. The table takes the loaded graph without copies, so a reload
/// costs nothing for unchanged vertices.
#[derive(Debug, Default)]
pub(in crate::driver) struct VertexTable {
    vertices: Vec<Vertex>,
    /// The vertex number at each position.
    ids: Vec<VertexId>,
    /// The position of each vertex number.
    places: Vec<u32>,
    /// Vertices that receive values, in ascending order.
    receivers: Vec<VertexId>,
}

impl VertexTable {
    /// Creates a table of these vertices with these numbers; each number is below `numbers`.
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

    /// Lists all vertices in the order of the graph.
    pub(in crate::driver) fn iter(&self) -> impl Iterator<Item = (VertexId, &Vertex)> {
        self.ids.iter().copied().zip(&self.vertices)
    }

    /// Lists all vertex numbers in ascending order.
    pub(in crate::driver) fn ids(&self) -> impl Iterator<Item = VertexId> + '_ {
        let in_use = self.places.iter().zip(0..).filter(|(place, _)| **place != NOWHERE);
        in_use.map(|(_, id)| VertexId(id))
    }

    /// Returns the vertices that receive values, in ascending order.
    pub(in crate::driver) fn receivers(&self) -> &[VertexId] {
        &self.receivers
    }

    /// Lists the vertices of `new` that are new or differ in a recorded property, and all removals. `renamed` holds the
    /// numbers of renamed vertices in ascending order; all other numbers were found by name.
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

    /// Returns a lookup of vertex numbers for identities that come in the order of another graph.
    pub(in crate::driver) fn follow(&self) -> OrderedLookup<'_> {
        OrderedLookup { rows: self, next: 0 }
    }
}

/// A lookup that expects identities in the order of the table: most reloads need no hash lookup.
#[derive(Debug)]
pub(in crate::driver) struct OrderedLookup<'a> {
    rows: &'a VertexTable,
    next: usize,
}

impl OrderedLookup<'_> {
    /// Returns the number of an identity if it is the next one in the table.
    pub(in crate::driver) fn number(&mut self, identity: &Arc<str>) -> Option<VertexId> {
        let is_next = self.rows.vertices.get(self.next)?.identity == *identity;
        let id = self.rows.ids.get(self.next).copied().filter(|_| is_next)?;
        self.next += 1;
        Some(id)
    }

    /// Continues after this vertex, which another lookup has found.
    pub(in crate::driver) fn found(&mut self, id: VertexId) {
        if let Some(place) = self.rows.places.get(id.0 as usize).filter(|p| **p != NOWHERE) {
            self.next = *place as usize + 1;
        }
    }
}
