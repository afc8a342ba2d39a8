//! Handover of a path from one resource to another within a graph: objects created by the daemon stay recorded as
//! created.

use super::ownership::OwnershipRecords;
use crate::config::Vertex;
use crate::driver::graph::registry::GraphRegistry;
use crate::store::{Entry, Origin, Ownership};
use std::collections::HashSet;
use std::sync::Arc;
use steadfast_engine::VertexId;

/// The prefix of identities that take part in a handover: hashes of objects are comparable within one kind only.
const KIND: &str = "file[";

impl OwnershipRecords {
    /// Returns the created objects that resources release with the new graph: the resource is forgotten, or has another
    /// path.
    pub(in crate::driver) fn released_paths(
        &self,
        graph: &GraphRegistry,
        differs: &[VertexId],
        forgotten: &[Arc<str>],
    ) -> HashSet<u64> {
        let created = |identity: &Arc<str>| {
            let owned = self.records.get(identity).filter(|_| identity.starts_with(KIND))?;
            (owned.origin == Some(Origin::Created)).then_some(owned.thing)
        };
        let moved = differs.iter().filter_map(|id| {
            let entry = graph.get(*id).filter(|entry| !entry.removes)?;
            let thing = created(&entry.identity)?;
            (Vertex::thing(entry.resource.as_ref()) != Some(thing)).then_some(thing)
        });
        forgotten.iter().filter_map(created).chain(moved).collect()
    }

    /// Records released objects as created for the resources that now claim them.
    pub(in crate::driver) fn hand_over_paths(
        &mut self,
        graph: &GraphRegistry,
        released: &HashSet<u64>,
    ) -> Vec<Entry> {
        if released.is_empty() {
            return Vec::new();
        }
        let heirs: Vec<_> =
            graph.ids().filter_map(|id| self.inherited(graph, id, released)).collect();
        let each = heirs.into_iter();
        each.map(|(identity, owned)| self.set(&identity, Some(Arc::new(owned)))).collect()
    }

    /// Returns the new record of a resource that claims a released object.
    fn inherited(
        &self,
        graph: &GraphRegistry,
        id: VertexId,
        released: &HashSet<u64>,
    ) -> Option<(Arc<str>, Ownership)> {
        let entry = graph.get(id).filter(|entry| !entry.removes && !entry.meta.noop)?;
        if !entry.identity.starts_with(KIND) || !graph.runs(&entry.identity) {
            return None;
        }
        let thing =
            Vertex::thing(entry.resource.as_ref()).filter(|thing| released.contains(thing))?;
        let before = self.records.get(&entry.identity);
        let pinned = before.is_some_and(|before| before.pinned);
        let made =
            Ownership { origin: Some(Origin::Created), thing, pinned, ..Ownership::default() };
        let owned = entry.owned(Some(&made), &self.context(graph), Origin::Adopted);
        Some((Arc::clone(&entry.identity), owned))
    }
}
