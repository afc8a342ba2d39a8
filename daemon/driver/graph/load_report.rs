//! The difference between a new graph and its predecessor, by identity.

use super::registry::GraphRegistry;
use super::vertices::VertexTable;
use crate::api::{GraphDiff, NameSample};
use crate::config::LoadedGraph;
use std::sync::Arc;
use steadfast_engine::VertexId;

/// The maximum number of names per category.
const NAMED: usize = 20;

impl NameSample {
    fn of(mut names: Vec<Arc<str>>) -> Self {
        names.sort_unstable();
        let count = names.len();
        names.truncate(NAMED);
        Self { count, names: names.iter().map(ToString::to_string).collect() }
    }
}

impl GraphDiff {
    /// Compares new vertices with the running graph. `differs` lists all vertices that may differ, `loaded` has
    /// the inactive resources of the new graph.
    pub(in crate::driver) fn between(
        running: &GraphRegistry,
        new: &VertexTable,
        (differs, loaded): (&[VertexId], &LoadedGraph),
    ) -> Self {
        let inactive = loaded.inactive.as_slice();
        let (mut added, mut changed) = (Vec::new(), Vec::new());
        let mut kept = new.len() - differs.len();
        let is_removed = |id: VertexId| running.get(id).is_some_and(|entry| entry.removes);
        let is_inactive = |name: &Arc<str>| {
            inactive.binary_search_by(|inactive| inactive.identity.cmp(name)).is_ok()
        };
        let left = running
            .ids()
            .filter(|id| !new.has(*id) && !is_removed(*id))
            .filter_map(|id| Some(Arc::clone(&running.get(id)?.identity)));
        let (deactivated, retained): (Vec<_>, Vec<_>) = left.partition(is_inactive);
        let mut removed = Vec::new();
        for (id, entry) in differs.iter().filter_map(|id| Some((*id, new.get(*id)?))) {
            let before = running.get(id).filter(|_| !running.is_removed(id));
            match before {
                // The resource had already left the graph; its removal continues.
                Some(before) if before.removes && entry.removes => {}
                _ if entry.removes => removed.push(Arc::clone(&entry.identity)),
                None => added.push(Arc::clone(&entry.identity)),
                Some(before) if before.definition != entry.definition => {
                    changed.push(Arc::clone(&entry.identity));
                }
                Some(_) => kept += 1,
            }
        }
        let again = running.ids().next().is_some();
        let (added, changed) = (NameSample::of(added), NameSample::of(changed));
        let (removed, retained) = (NameSample::of(removed), NameSample::of(retained));
        let (deactivated, inactive) = (NameSample::of(deactivated), inactive.len());
        Self { added, changed, removed, retained, deactivated, unchanged: kept, inactive, again }
    }
}
