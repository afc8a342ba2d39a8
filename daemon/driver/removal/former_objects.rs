//! Declarations that name another object than before, such as another path or line: the former object stays.
//!
//! A removal has the identity of its resource, so a declared resource cannot have a removal besides.

use super::ownership::OwnershipRecords;
use super::plan::is_deletable;
use crate::config::Vertex;
use crate::driver::graph::registry::GraphRegistry;
use std::collections::HashSet;
use std::sync::Arc;
use steadfast_engine::VertexId;

impl OwnershipRecords {
    /// Returns the resources that name another object than before, with a message that names the former one. Only
    /// objects count that would be deleted if their resource left the graph, and that no other resource claims.
    pub(super) fn former_objects(
        &self,
        graph: &GraphRegistry,
        differs: &[VertexId],
    ) -> Vec<(Arc<str>, String)> {
        let former = differs.iter().filter_map(|id| {
            let entry = graph.get(*id).filter(|entry| !entry.removes)?;
            let owned = self.records.get(&entry.identity).filter(|owned| is_deletable(owned))?;
            if Vertex::thing(entry.resource.as_ref()) == Some(owned.thing) {
                return None;
            }
            let text = owned.removal.as_deref()?;
            let claims =
                Vertex::removed_claims(&graph.kinds, &entry.identity, (owned.thing, text))?;
            Some((Arc::clone(&entry.identity), claims))
        });
        let former: Vec<_> = former.collect();
        if former.is_empty() {
            return Vec::new();
        }
        let claimed = graph.ids().filter_map(|id| graph.get(id).filter(|entry| !entry.removes));
        let claimed = claimed.flat_map(|entry| entry.resource.footprint().claims);
        let claimed: HashSet<_> = claimed.map(|claim| claim.object).collect();
        let told = former.into_iter().filter_map(|(identity, claims)| {
            let own = || claims.iter().filter(|claim| claim.is_exclusive());
            let is_free = own().all(|claim| !claimed.contains(&claim.object));
            let left = own().next().filter(|_| is_free)?;
            let says = format!(
                "declared with another object; the former one stays, remove it by hand: {left}"
            );
            Some((identity, says))
        });
        told.collect()
    }
}
