//! Undeclared records: records of resources that have left the graph without an operator's reload, or under a read-only
//! graph. A half-written or older graph file must lose nothing: returning resources continue with their records (B-16).

use crate::driver::{Driver, Notification};
use crate::store::{Entry, ResourceRecord, StoredState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steadfast_engine::{RestoredState, VertexId};

/// A resource with a new identity, and the old and new hash of its definition.
#[derive(Clone, Debug)]
pub(in crate::driver) struct Renamed {
    pub(in crate::driver) from: Arc<str>,
    pub(in crate::driver) to: Arc<str>,
    pub(in crate::driver) definition: (u64, u64),
}

/// Records of undeclared resources. Values and ownership are stored elsewhere.
#[derive(Debug, Default)]
pub(in crate::driver) struct UndeclaredRecords(BTreeMap<String, ResourceRecord>);

impl UndeclaredRecords {
    /// Adds the record of a resource that has left the graph.
    pub(in crate::driver) fn note(&mut self, identity: &str, kept: &ResourceRecord) {
        let kept = ResourceRecord { sent: None, taken: None, owned: None, ..kept.clone() };
        self.0.insert(identity.to_owned(), kept);
    }

    /// Returns the record of an undeclared resource.
    pub(in crate::driver) fn get_mut(&mut self, identity: &str) -> Option<&mut ResourceRecord> {
        self.0.get_mut(identity)
    }

    pub(in crate::driver) fn forget(&mut self, identity: &str) {
        self.0.remove(identity);
    }

    pub(in crate::driver) fn contains(&self, identity: &str) -> bool {
        self.0.contains_key(identity)
    }

    pub(in crate::driver) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Driver {
    /// Reports a removal that waits for the next load.
    fn notify_if_retained(&mut self, identity: &Arc<str>) {
        if self.ownership.keep_if_made_since(identity) {
            let message =
                "was created while the new graph was waiting; `steadfast reload` removes it";
            self.notifier.notify(&Notification::Undeclared { identity, message, removed: false });
        }
    }

    /// Forgets a vertex that the engine has forgotten; its records stay or go with it.
    pub(in crate::driver) fn forget(&mut self, id: VertexId, recall: &RestoredState) {
        self.commands.pauses.forget_vertex(id);
        // The vertex has joined a group: the engine no longer knows it, and the resource stays.
        if self.graph.groups().leader(id) != id {
            return;
        }
        let remembered = self.remembered(id, recall);
        self.runs.forget(id);
        self.graph.apart.remove(&id);
        self.watches.forget(id);
        self.commands.pauses.forget(id);
        self.values.rotation.forget(id);
        let removed_ids = self.graph.is_removed(id);
        let Some(identity) = self.graph.forget(id) else { return };
        if !removed_ids {
            self.notify_if_retained(&identity);
        }
        if !removed_ids && !self.ownership.forgets() {
            self.ownership.forget_vertex(id);
            self.ownership.undeclared.note(&identity, &remembered);
            return;
        }
        self.values.forget(&identity);
        if !removed_ids {
            self.journal.record_all(self.ownership.forget_owned(id, &identity));
        }
    }

    /// Returns the record of a vertex that leaves, from the state that the engine had of it.
    pub(in crate::driver) fn remembered(
        &self,
        id: VertexId,
        recall: &RestoredState,
    ) -> ResourceRecord {
        let cause = |by: Option<VertexId>| by.map_or("", |by| self.graph.name(by)).to_owned();
        let definition = self.graph.get(id).map(|entry| entry.definition);
        ResourceRecord {
            // The engine knows the definition of a group only; a completed run counts for each member.
            done: definition.filter(|_| recall.done.is_some()),
            owed: recall.owed.map(|(stamp, by)| (stamp.0, cause(by))),
            interrupted: definition.filter(|_| recall.interrupted),
            pause: self.commands.pauses.record(id, self.runtime.wall()),
            ..ResourceRecord::default()
        }
    }

    /// Returns the records of resources that the waiting graph declares and the running graph does not, by their new
    /// identities.
    fn returning(&self) -> StoredState {
        let comes = |identity: &str| {
            let id = self.graph.number(identity)?;
            let is_new = self.graph.waiting(id).is_some() && self.graph.get(id).is_none();
            is_new.then_some(id)
        };
        let own = self.ownership.undeclared.0.iter();
        let mut resources: BTreeMap<String, ResourceRecord> = own
            .filter(|(identity, _)| comes(identity).is_some())
            .map(|(identity, kept)| (identity.clone(), kept.clone()))
            .collect();
        for Renamed { from, to, definition } in self.ownership.renamed() {
            let Some(kept) = self.ownership.undeclared.0.get(from.as_ref()) else { continue };
            if comes(to).is_some() {
                let called = |old: u64| if old == definition.0 { definition.1 } else { old };
                let kept = ResourceRecord { done: kept.done.map(called), ..kept.clone() };
                resources.entry(to.to_string()).or_insert(kept);
            }
        }
        StoredState { resources, ..StoredState::default() }
    }

    /// Adds the restored state of resources that return with the waiting graph.
    pub(in crate::driver) fn recall_departed(
        &mut self,
        recall: &mut BTreeMap<VertexId, RestoredState>,
        silent: &BTreeSet<VertexId>,
    ) {
        let back = self.returning();
        if back.resources.is_empty() {
            return;
        }
        self.restore_pauses(&back);
        for (id, found) in self.graph.recall(&back.resources) {
            recall.entry(id).or_insert(found);
        }
        // A value was never sent, or another value was received: the run is repeated, as after a start.
        for id in silent.iter().copied().chain(self.values.outdated_receivers(&self.graph)) {
            if self.graph.get(id).is_none() {
                recall.entry(id).and_modify(|recall| recall.done = None);
            }
        }
    }

    /// Drops the records of resources in the new running graph. After an operator's reload all other records are
    /// forgotten.
    pub(in crate::driver) fn settle_departed(&mut self) {
        let runs = |identity: &str| {
            self.graph.number(identity).is_some_and(|id| self.graph.get(id).is_some())
        };
        self.ownership.undeclared.0.retain(|identity, _| !runs(identity));
        if !self.ownership.forgets() {
            return;
        }
        let gone =
            self.ownership.undeclared.0.keys().filter(|identity| !self.ownership.stays(identity));
        let gone: Vec<Arc<str>> = gone.map(|identity| identity.as_str().into()).collect();
        for identity in gone {
            self.ownership.undeclared.forget(&identity);
            self.values.forget(&identity);
            self.journal.record(Entry::Forget(identity));
        }
    }
}
