//! Renames: a resource with a new identity continues, and its records move.

use super::undeclared::Renamed;
use crate::config::LoadedGraph;
use crate::driver::{Driver, Notification};
use crate::history::Alias;
use crate::store::{Entry, StoredState};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_engine::{RestoredState, VertexId};

impl Driver {
    fn is_held(&self, name: &str) -> bool {
        self.graph.called(name).is_some() || self.ownership.records.contains_key(name)
    }

    fn has_run(&self, name: &str) -> bool {
        let recalled = self.mode.stored();
        self.ownership.undeclared.contains(name)
            || recalled.is_some_and(|recalled| recalled.resources.contains_key(name))
    }

    /// Returns the renamed resources of a graph. A former run under the new identity does not prevent the move.
    pub(in crate::driver) fn renamed(&self, loaded: &LoadedGraph) -> Vec<Renamed> {
        let is_held = |name: &str| self.is_held(name);
        let has_run = |name: &str| self.has_run(name);
        let new = loaded.vertices.iter().filter(|v| !v.aliases.is_empty() && !is_held(&v.identity));
        new.filter_map(|vertex| {
            let mut held = vertex.aliases.iter().filter(|(name, _)| is_held(name));
            let mut ran = vertex.aliases.iter().filter(|(name, _)| has_run(name));
            let former = held.next().or_else(|| ran.next().filter(|_| !has_run(&vertex.identity)));
            let (from, definition) = former?;
            let (from, to) = (Arc::clone(from), Arc::clone(&vertex.identity));
            Some(Renamed { from, to, definition: (*definition, vertex.definition) })
        })
        .collect()
    }

    /// Lists all aliases of a graph.
    pub(in crate::driver) fn aliases(&self, loaded: &LoadedGraph) -> Vec<Alias> {
        let named = loaded.vertices.iter().filter(|vertex| !vertex.aliases.is_empty());
        let aliases = named.flat_map(|vertex| {
            vertex.aliases.iter().map(|(old, _)| Alias {
                old: Arc::clone(old),
                new: Arc::clone(&vertex.identity),
                is_gone: !self.is_held(old) && !self.has_run(old),
            })
        });
        aliases.collect()
    }

    /// Moves the history of renamed resources to their new identities.
    pub(in crate::driver) fn rename_history(&mut self) {
        // A running undo continues under its own identity.
        if self.commands.undos.goes_on() {
            return;
        }
        let names = std::mem::take(&mut self.ownership.names);
        if self.mode.read_only().is_none() {
            self.permission.rename_history(names);
        }
    }

    /// Moves the stored records of renamed resources before the first graph, since nothing runs yet.
    pub(in crate::driver) fn rename_recalled(&mut self, recalled: &mut StoredState) {
        for Renamed { from, to, definition } in &self.ownership.renamed {
            recalled.rename(from, to, Some(*definition));
        }
        self.rename();
    }

    /// Copies the values of renamed resources to their new identities while the graph waits. Returns the restored state
    /// of those that already run.
    pub(in crate::driver) fn recall_renamed(&mut self) -> BTreeMap<VertexId, RestoredState> {
        let mut recall = BTreeMap::new();
        for Renamed { from, to, definition } in &self.ownership.renamed {
            self.values.copy(from, to, *definition);
            let runs = self.graph.called(from);
            if let Some((id, _)) = runs.filter(|(_, entry)| entry.definition == definition.0) {
                recall.insert(
                    id,
                    RestoredState { done: Some(definition.1), ..RestoredState::default() },
                );
            }
        }
        recall
    }

    /// B-18: moves all records to the new identities, before any run begins there.
    pub(in crate::driver) fn rename(&mut self) {
        for Renamed { from, to, definition } in std::mem::take(&mut self.ownership.renamed) {
            let is_other = self.values.copy(&from, &to, definition);
            self.values.forget(&from);
            self.ownership.names.renamed.push((Arc::clone(&from), Arc::clone(&to)));
            self.ownership.undeclared.forget(&from);
            if let Some(owned) = self.ownership.records.remove(&from) {
                self.ownership.records.insert(Arc::clone(&to), owned);
            }
            self.notifier.notify(&Notification::Undeclared {
                identity: &from,
                message: &format!("renamed to {to}"),
                removed: false,
            });
            // One entry for all: after a crash in between, values under the new identity would be unreadable.
            let sent = if is_other { self.sent_as_written(&to) } else { None };
            self.journal.record_soon(Entry::Rename {
                from,
                to,
                definition: Some(definition),
                sent,
            });
        }
    }
}
