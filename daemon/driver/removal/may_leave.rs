//! Candidates for removal: identities that a graph may leave out, and interrupted removals that are obsolete.

use super::ownership::OwnershipRecords;
use super::plan::definition_of_removal;
use crate::config::LoadedGraph;
use crate::driver::Driver;
use crate::driver::graph::assign_ids::IdAssignment;
use crate::driver::graph::registry::GraphRegistry;
use crate::store::{Ended, Entry, StoredState};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

impl Driver {
    /// Ends interrupted removals whose resources are declared again, so that a later start does not continue them.
    pub(in crate::driver) fn forget_removals(&mut self, recalled: &StoredState) {
        for (identity, kept) in &recalled.resources {
            let Some((begun, owned)) = kept.interrupted.zip(kept.owned.as_ref()) else { continue };
            let id = self.graph.number(identity);
            let waiting = id.and_then(|id| self.graph.waiting(id));
            if Some(begun) != definition_of_removal(identity, owned)
                || waiting.is_none_or(|vertex| vertex.removes)
            {
                continue;
            }
            self.journal.record(Entry::End {
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
}

impl OwnershipRecords {
    /// Returns the recorded identities that this graph may leave out: running vertices without a declaration, and
    /// records without a vertex.
    pub(in crate::driver) fn may_leave(
        &self,
        graph: &GraphRegistry,
        loaded: &LoadedGraph,
        found: &[IdAssignment],
    ) -> BTreeSet<Arc<str>> {
        let mut names = self.without_vertex.clone();
        names.extend(graph.missing(found));
        debug_assert!(
            {
                let declared: HashSet<&str> =
                    loaded.vertices.iter().map(|vertex| vertex.identity.as_ref()).collect();
                let mut kept = self.records.keys();
                kept.all(|name| declared.contains(name.as_ref()) || names.contains(name))
            },
            "all records are declared or removable"
        );
        names
    }
}
