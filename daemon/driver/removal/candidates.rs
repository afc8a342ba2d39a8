//! Who may leave with a graph, and which removals of long ago are over.

use super::plan::definition_of_removal;
use crate::config::LoadedGraph;
use crate::driver::Driver;
use crate::driver::graph::assign_ids::IdAssignment;
use crate::store::{Ended, Entry, StoredState};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

impl Driver {
    /// A removal that a crash cut off is over where a graph declares again what it was to remove: a later start must not take it up.
    pub(in crate::driver) fn forget_removals(&mut self, recalled: &StoredState) {
        for (identity, kept) in &recalled.resources {
            let Some((begun, owned)) = kept.interrupted.zip(kept.owned.as_ref()) else { continue };
            let id = self.table.number(identity);
            let waiting = id.and_then(|id| self.table.waiting(id));
            if Some(begun) != definition_of_removal(identity, owned)
                || waiting.is_none_or(|vertex| vertex.removes)
            {
                continue;
            }
            let Some(keeper) = &mut self.keeper else { continue };
            keeper.other(Entry::End {
                identity: identity.as_str().into(),
                definition: begun,
                outcome: Ended::Failed,
                begun: None,
                stamp: recalled.stamp,
                owes: Vec::new(),
                paid: None,
            });
        }
    }

    /// Of what is kept, all that this graph may leave out: what runs and is not in it, and what does not run.
    pub(in crate::driver) fn may_leave(
        &self,
        loaded: &LoadedGraph,
        found: &[IdAssignment],
    ) -> BTreeSet<Arc<str>> {
        let mut names = self.ownership.without_vertex.clone();
        names.extend(self.table.missing(found));
        debug_assert!(
            {
                let declared: HashSet<&str> =
                    loaded.vertices.iter().map(|vertex| vertex.identity.as_ref()).collect();
                let mut kept = self.ownership.records.keys();
                kept.all(|name| declared.contains(name.as_ref()) || names.contains(name))
            },
            "all records are declared or removable"
        );
        names
    }
}
