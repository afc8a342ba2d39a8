//! The comparison of a new graph with the running one (E-17): a vertex with the same definition keeps its run.

use crate::engine::Engine;
use crate::interface::graph::Graph;
use crate::interface::ids::VertexId;
use std::sync::Arc;

/// The difference between a new graph and the running one.
#[derive(Default)]
pub(crate) struct Difference {
    pub(crate) changed: Vec<VertexId>,
    pub(crate) removed: Vec<VertexId>,
    pub(crate) differs: Vec<VertexId>,
}

impl Engine {
    /// Compares a graph with the running one in one walk, by number.
    pub(crate) fn difference(&self, graph: &Graph) -> Difference {
        let mut found = Difference::default();
        let mut declared = graph.vertices().peekable();
        for (slot, number) in self.vertices.iter().zip(0..) {
            let id = VertexId(number);
            match (slot, declared.next_if(|new| new.id == id)) {
                (Some(vertex), Some(new)) => {
                    if vertex.leaving || vertex.definition != new.definition {
                        found.changed.push(id);
                        found.differs.push(id);
                    } else if !Arc::ptr_eq(&vertex.meta, &new.meta) && vertex.meta != new.meta {
                        found.differs.push(id);
                    }
                }
                (Some(vertex), None) if !vertex.leaving => found.removed.push(id),
                (None, Some(_)) => found.differs.push(id),
                (Some(_) | None, None) => {}
            }
        }
        found.differs.extend(declared.map(|new| new.id));
        found
    }
}
