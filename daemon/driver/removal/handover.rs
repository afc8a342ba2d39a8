//! Handover of a path from one resource to another within a graph: objects created by the daemon stay recorded as
//! created.

use crate::config::Vertex;
use crate::driver::Driver;
use crate::store::{Origin, Ownership};
use std::collections::HashSet;
use std::sync::Arc;
use steadfast_engine::VertexId;

/// The prefix of identities that take part in a handover: hashes of objects are comparable within one kind only.
const KIND: &str = "file[";

impl Driver {
    /// Returns the created objects that resources release with the new graph: the resource is forgotten, or has another
    /// path.
    pub(in crate::driver) fn released_paths(
        &self,
        differs: &[VertexId],
        forgotten: &[Arc<str>],
    ) -> HashSet<u64> {
        let created = |identity: &Arc<str>| {
            let owned =
                self.ownership.records.get(identity).filter(|_| identity.starts_with(KIND))?;
            (owned.origin == Some(Origin::Created)).then_some(owned.thing)
        };
        let moved = differs.iter().filter_map(|id| {
            let entry = self.graph.get(*id).filter(|entry| !entry.removes)?;
            let thing = created(&entry.identity)?;
            (Vertex::thing(entry.resource.as_ref()) != Some(thing)).then_some(thing)
        });
        forgotten.iter().filter_map(created).chain(moved).collect()
    }

    /// Records released objects as created for the resources that now claim them.
    pub(in crate::driver) fn hand_over_paths(&mut self, released: &HashSet<u64>) {
        if released.is_empty() {
            return;
        }
        let heirs: Vec<_> =
            self.graph.ids().filter_map(|id| self.inherited(id, released)).collect();
        for (identity, owned) in heirs {
            self.keep_owned(&identity, Some(Arc::new(owned)));
        }
    }

    /// Returns the new record of a resource that claims a released object.
    fn inherited(&self, id: VertexId, released: &HashSet<u64>) -> Option<(Arc<str>, Ownership)> {
        let entry = self.graph.get(id).filter(|entry| !entry.removes && !entry.meta.noop)?;
        if !entry.identity.starts_with(KIND) || !self.graph.runs(&entry.identity) {
            return None;
        }
        let thing =
            Vertex::thing(entry.resource.as_ref()).filter(|thing| released.contains(thing))?;
        let before = self.ownership.records.get(&entry.identity);
        let pinned = before.is_some_and(|before| before.pinned);
        let made =
            Ownership { origin: Some(Origin::Created), thing, pinned, ..Ownership::default() };
        let owned = entry.owned(Some(&made), &self.context(), Origin::Adopted);
        Some((Arc::clone(&entry.identity), owned))
    }
}
