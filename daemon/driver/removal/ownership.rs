//! Ownership records: the origin of each managed object, recorded when a run creates or finds the object.

use super::expected::OwnershipContext;
use super::plan::{KeptOwned, RemovalPlan, is_deletable};
use super::undeclared::{Renamed, UndeclaredRecords};
use crate::driver::graph::registry::GraphRegistry;
use crate::history::{Alias, Names};
use crate::store::{Entry, Origin, Ownership, StateCommand, StoredState};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use steadfast_engine::{Outcome, VertexId};

/// All ownership records, as they will be when all pending writes are durable.
#[derive(Debug, Default)]
pub(in crate::driver) struct OwnershipRecords {
    pub(super) records: KeptOwned,
    /// Prior records of objects that a run in progress creates.
    marked: HashMap<VertexId, Option<Arc<Ownership>>>,
    /// Vertices whose records are complete under the running graph.
    pub(super) settled: HashSet<VertexId>,
    /// Identities with records and without a running vertex, and maybe more; a later graph may leave them out.
    pub(super) without_vertex: BTreeSet<Arc<str>>,
    /// Vertices whose records may differ from the graph although their declarations have not changed.
    pub(super) unsettled: BTreeSet<VertexId>,
    /// True if the records of all vertices may differ from the graph.
    pub(super) all_unsettled: bool,
    /// Removals that the waiting graph causes.
    pub(super) pending_removals: RemovalPlan,
    /// Resources that have other names in the waiting graph.
    pub(super) renamed: Vec<Renamed>,
    /// Aliases to record in the history when the waiting graph runs.
    pub(super) names: Names,
    /// Objects created since the waiting graph was accepted; its removals were planned without them.
    made: BTreeSet<Arc<str>>,
    /// True if the graph is read-only: no ownership record changes for it.
    pub(super) is_noop: bool,
    /// True if an operator has requested the graph: resources that it leaves out are forgotten.
    forgets: bool,
    pub(super) graph: Arc<str>,
    /// Records of resources that are undeclared, apart from their ownership.
    pub(in crate::driver) undeclared: UndeclaredRecords,
}

/// The ownership changes of a loaded graph, until the graph is accepted.
#[derive(Debug)]
pub(in crate::driver) struct PendingOwnership {
    pub(super) removals: RemovalPlan,
    pub(super) aliases: Vec<Alias>,
    pub(super) is_noop: bool,
    pub(super) forgets: bool,
}

impl OwnershipRecords {
    /// Creates the records from the stored state.
    pub(in crate::driver) fn new(recalled: &StoredState) -> Self {
        let owned = |(identity, kept): (&String, &crate::store::ResourceRecord)| {
            Some((identity.as_str().into(), Arc::clone(kept.owned.as_ref()?)))
        };
        let kept: KeptOwned = recalled.resources.iter().filter_map(owned).collect();
        Self { without_vertex: kept.keys().cloned().collect(), records: kept, ..Self::default() }
    }

    /// Returns the ownership record of a resource.
    pub(in crate::driver) fn record(&self, identity: &str) -> Option<&Ownership> {
        self.records.get(identity).map(AsRef::as_ref)
    }

    /// Returns true if the record stays although its resource has left the graph.
    pub(in crate::driver) fn stays(&self, identity: &str) -> bool {
        let plan = &self.pending_removals;
        plan.keep.contains(identity) || plan.inactive.contains(identity)
    }

    /// Lists up to `limit` identities that a later load of this graph will remove.
    pub(in crate::driver) fn waiting(&self, limit: usize) -> Vec<String> {
        let is_of_this = |name: &&Arc<str>| {
            self.records.get(*name).is_some_and(|owned| owned.graph == self.graph)
        };
        let keep = self.pending_removals.keep.iter().filter(is_of_this);
        keep.take(limit).map(ToString::to_string).collect()
    }

    /// Lists all identities with a record.
    pub(in crate::driver) fn names(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(AsRef::as_ref)
    }

    /// Returns true if the records of resources that the last accepted graph leaves out are forgotten.
    pub(in crate::driver) fn forgets(&self) -> bool {
        self.forgets
    }

    /// Returns the resources that have other names in the waiting graph.
    pub(in crate::driver) fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// Marks a vertex as no longer running; its record stays.
    pub(in crate::driver) fn forget_vertex(&mut self, id: VertexId) {
        self.settled.remove(&id);
        self.marked.remove(&id);
    }

    /// Returns true if the last accepted graph is read-only.
    pub(in crate::driver) fn is_noop(&self) -> bool {
        self.is_noop
    }

    /// Accepts a graph: takes its planned removals and its renamed resources.
    pub(in crate::driver) fn accept(&mut self, leave: PendingOwnership, renamed: Vec<Renamed>) {
        let PendingOwnership { removals: plan, aliases, is_noop, forgets } = leave;
        self.names.aliases = aliases;
        (self.pending_removals, self.renamed) = (plan, renamed);
        (self.is_noop, self.forgets) = (is_noop, forgets);
        self.made.clear();
    }

    /// Returns the name of the running graph.
    pub(in crate::driver) fn graph(&self) -> &Arc<str> {
        &self.graph
    }

    /// Applies a state command to a record. After a forget, the next converged run records the object again.
    pub(in crate::driver) fn order(
        &mut self,
        order: StateCommand,
        identity: &Arc<str>,
        running: Option<VertexId>,
    ) {
        let owned = order.owned(self.record(identity), &self.graph);
        self.put(identity, owned.map(Arc::new));
        if running.is_none() {
            self.without_vertex.insert(Arc::clone(identity));
        }
        if let (StateCommand::Forget, Some(id)) = (order, running) {
            self.settled.remove(&id);
            self.marked.remove(&id);
        }
    }

    fn put(&mut self, identity: &Arc<str>, owned: Option<Arc<Ownership>>) {
        match owned.filter(|owned| owned.is_recorded()) {
            Some(owned) => drop(self.records.insert(Arc::clone(identity), owned)),
            None => drop(self.records.remove(identity)),
        }
    }
}

/// Records that follow the graph: each method returns the entries to write.
impl OwnershipRecords {
    /// Returns the vertices whose declaration differs from their record for the same object, with the new record.
    pub(super) fn disagreeing(
        &self,
        graph: &GraphRegistry,
        of: impl IntoIterator<Item = VertexId>,
    ) -> Vec<(VertexId, Ownership)> {
        let context = self.context(graph);
        let each = of.into_iter().filter(|id| !graph.is_removed(*id));
        let changed = each.filter_map(|id| {
            let entry = graph.get(id).filter(|entry| !entry.removes)?;
            // The graph declares nothing for a removed vertex with a stuck run.
            if !graph.runs(&entry.identity) {
                return None;
            }
            let before = self.records.get(&entry.identity)?;
            if entry.agrees(before, &context) {
                return None;
            }
            let owned = entry.owned(Some(before), &context, Origin::Adopted);
            // Another object under the same name gets its record from the run that finds it.
            (owned.thing == before.thing).then_some((id, owned))
        });
        changed.collect()
    }

    /// Schedules another comparison of a record that names dependencies without a declaration.
    pub(super) fn note_leftovers(&mut self, graph: &GraphRegistry, id: VertexId) {
        let entry = graph.get(id).filter(|entry| !entry.removes);
        let kept = entry.and_then(|entry| self.records.get(&entry.identity));
        if entry.zip(kept).is_some_and(|(entry, owned)| entry.after.len() != owned.after.len()) {
            self.unsettled.insert(id);
        }
    }

    /// Returns the context of new records.
    pub(super) fn context<'a>(&'a self, graph: &'a GraphRegistry) -> OwnershipContext<'a> {
        OwnershipContext { graph: Arc::clone(&self.graph), table: graph, records: &self.records }
    }

    /// Sets the record of a resource; returns the entry to write.
    pub(super) fn set(&mut self, identity: &Arc<str>, owned: Option<Arc<Ownership>>) -> Entry {
        self.put(identity, owned.clone());
        Entry::Own { identity: Arc::clone(identity), owned }
    }

    /// Records the ownership of the object of a converged vertex, if the record is of another object (B-5).
    pub(in crate::driver) fn note_owned(
        &mut self,
        graph: &GraphRegistry,
        id: VertexId,
        origin: Origin,
    ) -> Option<Entry> {
        let entry = graph.get(id)?;
        if entry.removes || entry.meta.noop || !self.settled.insert(id) {
            return None;
        }
        let identity = Arc::clone(&entry.identity);
        let before = self.records.get(&identity);
        let owned = entry.owned(before.map(AsRef::as_ref), &self.context(graph), origin);
        let says = owned.is_recorded();
        if owned.after.len() != entry.after.len() {
            self.unsettled.insert(id);
        }
        let differs = before.map_or(says, |before| **before != owned);
        differs.then(|| self.set(&identity, says.then(|| Arc::new(owned))))
    }

    /// Returns the records to write before a run that creates objects. The flag is true if a record must not be lost.
    pub(in crate::driver) fn mark_created(
        &mut self,
        graph: &GraphRegistry,
        vertex: VertexId,
        creates: impl Fn(VertexId) -> bool,
    ) -> (Vec<Entry>, bool) {
        let (mut entries, mut urgent) = (Vec::new(), false);
        for id in graph.groups().members(&vertex) {
            let Some(entry) = graph.get(*id).filter(|e| creates(*id) && !e.removes) else {
                continue;
            };
            let before = self.records.get(&entry.identity).cloned();
            let owned = entry.owned(before.as_deref(), &self.context(graph), Origin::Created);
            if owned.origin.is_none() || before.as_deref() == Some(&owned) {
                continue;
            }
            urgent |= owned.delete;
            if owned.after.len() != entry.after.len() {
                self.unsettled.insert(*id);
            }
            if graph.change().is_some() {
                self.made.insert(Arc::clone(&entry.identity));
            }
            entries.push(self.set(&entry.identity, Some(Arc::new(owned))));
            self.marked.insert(*id, before);
        }
        (entries, urgent)
    }

    /// Restores the prior records after a failed begin, whose entries may be durable in spite of the error.
    pub(in crate::driver) fn unmark(
        &mut self,
        graph: &GraphRegistry,
        vertex: VertexId,
    ) -> Vec<Entry> {
        let mut entries = Vec::new();
        for id in graph.groups().members(&vertex) {
            if let Some(before) = self.marked.remove(id) {
                entries.push(self.set(&graph.identity(*id), before));
                self.unsettled.insert(*id);
            }
        }
        entries
    }

    /// Settles the record of a resource at the end of a run.
    pub(in crate::driver) fn note_end(
        &mut self,
        graph: &GraphRegistry,
        id: VertexId,
        outcome: Outcome,
    ) -> Vec<Entry> {
        let marked = self.marked.remove(&id);
        let mut entries = Vec::new();
        match outcome {
            Outcome::Unchanged | Outcome::Failed { touched: false } if marked.is_some() => {
                // The outcome proves that nothing was created.
                entries.push(self.set(&graph.identity(id), marked.flatten()));
                self.unsettled.insert(id);
                if outcome == Outcome::Unchanged {
                    entries.extend(self.note_owned(graph, id, Origin::Adopted));
                }
            }
            Outcome::Changed | Outcome::Unchanged => {
                entries.extend(self.note_owned(graph, id, Origin::Adopted));
            }
            Outcome::Failed { .. } | Outcome::Interrupted => {}
        }
        entries
    }

    /// Postpones the removal of a resource whose object was created while the graph without it waited: its first run
    /// was in progress, or `realize` made it. The removals were planned before that, so the next load removes it.
    /// Returns true if the removal is postponed.
    pub(in crate::driver) fn keep_if_made_since(&mut self, identity: &Arc<str>) -> bool {
        let is_new = self.made.remove(identity);
        let stays = is_new && self.record(identity).is_some_and(is_deletable);
        if stays {
            self.pending_removals.keep.insert(Arc::clone(identity));
        }
        stays
    }

    /// Forgets the records of a removed vertex, except for the data that a later load needs for the removal.
    pub(in crate::driver) fn forget_owned(
        &mut self,
        id: VertexId,
        identity: &Arc<str>,
    ) -> Vec<Entry> {
        self.forget_vertex(id);
        let stays = self.stays(identity);
        let owned = if stays { self.records.get(identity).cloned() } else { None };
        let mut entries = vec![Entry::Forget(Arc::clone(identity))];
        if owned.is_some() {
            entries.push(Entry::Own { identity: Arc::clone(identity), owned });
        } else {
            self.records.remove(identity);
        }
        entries
    }
}
