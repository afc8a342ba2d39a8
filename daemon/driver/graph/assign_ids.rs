//! The assignment of vertex numbers to a new graph: a resource keeps the number of its present or former identity.

use super::registry::GraphRegistry;
use crate::config::Vertex;
use crate::driver::removal::undeclared::Renamed;
use std::collections::HashMap;
use std::sync::Arc;
use steadfast_engine::VertexId;

/// The number of a vertex of a new graph.
#[derive(Clone, Copy, Debug)]
pub(in crate::driver) enum IdAssignment {
    /// The number of the running vertex with the same identity.
    Known(VertexId),
    /// The number of the running vertex with the former identity.
    Renamed(VertexId),
    /// No number yet.
    New,
}

impl GraphRegistry {
    /// Lists the identities of running vertices that a graph with these assignments leaves out.
    pub(in crate::driver) fn missing(&self, found: &[IdAssignment]) -> Vec<Arc<str>> {
        let mut stays = vec![false; self.given as usize];
        for found in found {
            if let IdAssignment::Known(id) = found
                && let Some(stays) = stays.get_mut(id.0 as usize)
            {
                *stays = true;
            }
        }
        let stays = |id: VertexId| stays.get(id.0 as usize).copied().unwrap_or_default();
        let missing = self.rows.iter().filter(|(id, _)| !stays(*id));
        missing.map(|(_, vertex)| Arc::clone(&vertex.identity)).collect()
    }

    /// Returns true if the running graph has a vertex with this identity, a removal included.
    pub(in crate::driver) fn runs(&self, identity: &str) -> bool {
        self.number(identity).is_some_and(|id| self.rows.has(id))
    }

    /// Returns the running vertex with this identity. Vertices of a waiting graph do not count: a newer graph may
    /// replace that one.
    pub(in crate::driver) fn called(&self, name: &str) -> Option<(VertexId, &Vertex)> {
        let id = self.number(name)?;
        self.get(id).filter(|before| *before.identity == *name).map(|before| (id, before))
    }

    /// Finds the number of each vertex by its identity, or by its former identity.
    pub(in crate::driver) fn find(
        &self,
        vertices: &[Vertex],
        renamed: &[Renamed],
    ) -> Vec<IdAssignment> {
        let former: HashMap<&str, &str> =
            renamed.iter().map(|one| (one.to.as_ref(), one.from.as_ref())).collect();
        let mut follower = self.rows.follow();
        let find = |vertex: &Vertex| {
            if let Some(id) = follower.number(&vertex.identity) {
                return IdAssignment::Known(id);
            }
            if let Some((id, _)) = self.called(&vertex.identity) {
                follower.found(id);
                return IdAssignment::Known(id);
            }
            let former = former.get(vertex.identity.as_ref()).and_then(|name| self.called(name));
            match former.map(|(id, _)| id) {
                Some(id) => {
                    follower.found(id);
                    IdAssignment::Renamed(id)
                }
                None => IdAssignment::New,
            }
        };
        vertices.iter().map(find).collect()
    }
}
