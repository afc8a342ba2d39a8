//! The edges of the running graph in packed form: the parents and children of each vertex.

use crate::interface::graph::{Edge, Graph};
use crate::interface::ids::VertexId;
use std::ops::Range;

/// An edge as seen from its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Child {
    pub(crate) id: VertexId,
    pub(crate) notify: bool,
}

/// The parents and children of each vertex, by number, each list in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Topology {
    child_at: Vec<u32>,
    children: Vec<Child>,
    parent_at: Vec<u32>,
    parents: Vec<VertexId>,
    order: Vec<VertexId>,
    /// The position of each vertex in `order`.
    place: Vec<u32>,
}

impl Topology {
    pub(crate) fn new(graph: &Graph, size: usize) -> Self {
        let (mut child_at, mut parent_at) = (vec![0_u32; size + 1], vec![0_u32; size + 1]);
        for edge in graph.edges() {
            child_at[edge.from.0 as usize + 1] += 1;
            parent_at[edge.to.0 as usize + 1] += 1;
        }
        for at in 0..size {
            child_at[at + 1] += child_at[at];
            parent_at[at + 1] += parent_at[at];
        }
        let children = graph.edges().iter().map(|e| Child { id: e.to, notify: e.notify }).collect();
        let mut parents = vec![VertexId(0); graph.edges().len()];
        let mut next = parent_at.clone();
        for edge in graph.edges() {
            let at = &mut next[edge.to.0 as usize];
            parents[*at as usize] = edge.from;
            *at += 1;
        }
        let mut place = vec![0; size];
        for (id, at) in graph.order().iter().zip(0..) {
            place[id.0 as usize] = at;
        }
        Self { child_at, children, parent_at, parents, order: graph.order().to_vec(), place }
    }

    /// Returns true if the graph has these edges and vertices.
    pub(crate) fn is_of(&self, graph: &Graph) -> bool {
        let same = |(edge, (child, at)): (&Edge, (&Child, u32))| {
            let is_above =
                self.child_at.get(edge.from.0 as usize).is_some_and(|first| *first <= at)
                    && self.child_at.get(edge.from.0 as usize + 1).is_some_and(|end| at < *end);
            is_above && *child == Child { id: edge.to, notify: edge.notify }
        };
        self.order == graph.order()
            && self.children.len() == graph.edges().len()
            && graph.edges().iter().zip(self.children.iter().zip(0..)).all(same)
    }

    fn range(at: &[u32], id: VertexId) -> Range<usize> {
        let id = id.0 as usize;
        match (at.get(id), at.get(id + 1)) {
            (Some(first), Some(end)) => *first as usize..*end as usize,
            (Some(_) | None, None) | (None, Some(_)) => 0..0,
        }
    }

    pub(crate) fn children(&self, id: VertexId) -> &[Child] {
        &self.children[Self::range(&self.child_at, id)]
    }

    pub(crate) fn parents(&self, id: VertexId) -> &[VertexId] {
        &self.parents[Self::range(&self.parent_at, id)]
    }

    /// Returns the position of a vertex in [`Topology::order`].
    pub(crate) fn place(&self, id: VertexId) -> usize {
        self.place.get(id.0 as usize).map_or(0, |at| *at as usize)
    }

    /// Returns every vertex, parents before children.
    pub(crate) fn order(&self) -> &[VertexId] {
        &self.order
    }
}
