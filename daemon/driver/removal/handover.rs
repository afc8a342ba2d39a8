//! A path that goes from one resource to another within a graph: what we made stays ours.

use crate::config::Vertex;
use crate::driver::Driver;
use crate::store::{Origin, Ownership};
use std::collections::HashSet;
use std::sync::Arc;
use steadfast_engine::VertexId;

/// A thing that a record is about: kinds describe different things by the same hash, a file by its absolute path.
const KIND: &str = "file[";

impl Driver {
    /// The paths that we made, and whose resources let go of them with the graph that runs now: they have left it, or have another path.
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
            let entry = self.table.get(*id).filter(|entry| !entry.removes)?;
            let thing = created(&entry.identity)?;
            (Vertex::thing(entry.resource.as_ref()) != Some(thing)).then_some(thing)
        });
        forgotten.iter().filter_map(created).chain(moved).collect()
    }

    /// Those who claim such paths now have made them, as far as the records say.
    pub(in crate::driver) fn hand_over_paths(&mut self, released: &HashSet<u64>) {
        if released.is_empty() {
            return;
        }
        let heirs: Vec<_> =
            self.table.ids().filter_map(|id| self.inherited(id, released)).collect();
        for (identity, owned) in heirs {
            self.keep_owned(&identity, Some(Arc::new(owned)));
        }
    }

    /// The record of one who claims a path that was released.
    fn inherited(&self, id: VertexId, released: &HashSet<u64>) -> Option<(Arc<str>, Ownership)> {
        let entry = self.table.get(id).filter(|entry| !entry.removes && !entry.meta.noop)?;
        if !entry.identity.starts_with(KIND) || !self.table.runs(&entry.identity) {
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
