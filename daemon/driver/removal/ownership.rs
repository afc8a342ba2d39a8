//! Ownership records: the origin of each managed object, recorded when a run creates or finds the object.

use super::expected::OwnershipContext;
use super::plan::{
    KeptOwned, LoadPolicy, RemovalPlan, definition_of_removal, is_deletable, plan_removals,
};
use super::undeclared::{Renamed, UndeclaredRecords};
use crate::config::LoadedGraph;
use crate::driver::graph::assign_ids::IdAssignment;
use crate::driver::graph::registry::SwapResult;
use crate::driver::{Driver, Notification};
use crate::history::{Alias, Names};
use crate::store::{Entry, Origin, Ownership, StateCommand, StoredState};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use steadfast_engine::{Intent, Outcome, RunId, VertexId};

/// All ownership records, as they will be when all pending writes are durable.
#[derive(Debug, Default)]
pub(in crate::driver) struct OwnershipRecords {
    pub(in crate::driver) records: KeptOwned,
    /// Prior records of objects that a run in progress creates.
    marked: HashMap<VertexId, Option<Arc<Ownership>>>,
    /// Vertices whose records are complete under the running graph.
    settled: HashSet<VertexId>,
    /// Identities with records and without a running vertex, and maybe more; a later graph may leave them out.
    pub(in crate::driver) without_vertex: BTreeSet<Arc<str>>,
    /// Vertices whose records may differ from the graph although their declarations have not changed.
    unsettled: BTreeSet<VertexId>,
    /// True if the records of all vertices may differ from the graph.
    all_unsettled: bool,
    /// Removals that the waiting graph causes.
    pending_removals: RemovalPlan,
    /// Resources that have other names in the waiting graph.
    pub(in crate::driver) renamed: Vec<Renamed>,
    /// Aliases to record in the history when the waiting graph runs.
    pub(in crate::driver) names: Names,
    /// Objects created since the waiting graph was accepted; its removals were planned without them.
    made: BTreeSet<Arc<str>>,
    /// True if the graph is read-only: no ownership record changes for it.
    looks_only: bool,
    /// True if an operator has requested the graph: resources that it leaves out are forgotten.
    forgets: bool,
    graph: Arc<str>,
    /// Records of resources that are undeclared, apart from their ownership.
    pub(in crate::driver) undeclared: UndeclaredRecords,
}

/// The ownership changes of a loaded graph, until the graph is accepted.
#[derive(Debug)]
pub(in crate::driver) struct PendingOwnership {
    removals: RemovalPlan,
    aliases: Vec<Alias>,
    looks_only: bool,
    forgets: bool,
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
        self.pending_removals.keep.contains(identity)
    }

    /// Lists up to `most` identities that a later load will remove.
    pub(in crate::driver) fn waiting(&self, most: usize) -> Vec<String> {
        let keep =
            self.pending_removals.keep.iter().filter(|name| self.records.contains_key(*name));
        keep.take(most).map(ToString::to_string).collect()
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
    pub(in crate::driver) fn looks_only(&self) -> bool {
        self.looks_only
    }

    /// Accepts a graph: takes its planned removals and its renamed resources.
    pub(in crate::driver) fn take(&mut self, leave: PendingOwnership, renamed: Vec<Renamed>) {
        let PendingOwnership { removals: farewell, aliases, looks_only, forgets } = leave;
        self.names.aliases = aliases;
        (self.pending_removals, self.renamed) = (farewell, renamed);
        (self.looks_only, self.forgets) = (looks_only, forgets);
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

/// Returns a hint for protected resources that a new graph leaves out: each kind of protection ends in another way.
fn protection_hint(protected: &[Arc<str>], kept: &KeptOwned) -> String {
    let of = |is: fn(&Ownership) -> bool| {
        let names = protected.iter().filter(|name| kept.get(*name).is_some_and(|owned| is(owned)));
        names.map(AsRef::as_ref).collect::<Vec<&str>>()
    };
    let (by_graph, by_command) = (of(|owned| owned.protect), of(|owned| owned.pinned));
    let mut ways = Vec::new();
    if !by_graph.is_empty() {
        let names = by_graph.join(", ");
        ways.push(format!("first load a graph that declares {names} with `protect: false`"));
    }
    if !by_command.is_empty() {
        ways.push(format!("`steadfast unprotect {}`", by_command.join(" ")));
    }
    format!("declare the resources again; or {}", ways.join(", and "))
}

impl Driver {
    /// Plans the removals of a new graph; fails with a message if the graph leaves out protected resources.
    pub(in crate::driver) fn plan_removals(
        &self,
        loaded: &mut LoadedGraph,
        found: &[IdAssignment],
        operator: bool,
    ) -> Result<PendingOwnership, String> {
        let terms = LoadPolicy {
            explicit: operator,
            whole: self.settings.removes,
            one_shot: self.settings.one_shot,
        };
        let (table, recalled) = (&self.graph, self.mode.stored());
        let approved = |name: &str, owned: &Ownership| {
            let removed =
                table.number(name).and_then(|id| table.waiting(id).or_else(|| table.get(id)));
            let begun = recalled.and_then(|it| it.resources.get(name)?.interrupted);
            // An operator's removal that a crash interrupted may be half done: the removal is finished.
            let cut_off = begun.is_some() && begun == definition_of_removal(name, owned);
            cut_off || removed.is_some_and(|entry| entry.removes)
        };
        let kept = (&self.ownership.records, self.may_leave(loaded, found));
        let farewell = plan_removals(loaded, kept, &approved, terms);
        let mut farewell = farewell.map_err(|protected| {
            let names = protected.join(", ");
            let hint = protection_hint(&protected, &self.ownership.records);
            format!("protected resources are missing from the new graph: {names}\nhint: {hint}")
        })?;
        let looks_only = loaded.usual.noop;
        let forgets = operator && !looks_only;
        if looks_only {
            farewell.messages.clear();
        }
        if !forgets {
            // Their records stay for their return; the next reload by an operator settles them.
            let left: HashSet<Arc<str>> = farewell.forget.drain(..).collect();
            farewell.messages.retain(|(identity, _)| !left.contains(identity));
        }
        Ok(PendingOwnership {
            removals: farewell,
            aliases: self.aliases(loaded),
            looks_only,
            forgets,
        })
    }

    /// Updates the records for the new graph: declared resources are recorded, others are forgotten as planned.
    pub(in crate::driver) fn settle_ownership(&mut self, installed: &SwapResult) {
        self.rename();
        self.rename_history();
        self.ownership.without_vertex.extend(installed.gone.iter().cloned());
        self.ownership.settled.clear();
        if *self.ownership.graph != *self.graph.graph() {
            self.ownership.graph = self.graph.graph().into();
            self.ownership.all_unsettled = true;
        }
        let forgotten = &self.ownership.pending_removals.forget;
        let released = self.released_paths(&installed.differs, forgotten);
        for (identity, says) in std::mem::take(&mut self.ownership.pending_removals.messages) {
            self.notifier.tell(&Notification::Undeclared {
                identity: &identity,
                message: &says,
                removed: false,
            });
        }
        for identity in std::mem::take(&mut self.ownership.pending_removals.forget) {
            let stands =
                self.graph.number(&identity).is_some_and(|id| self.graph.get(id).is_some());
            self.ownership.records.remove(&identity);
            if stands {
                continue;
            }
            self.ownership.undeclared.forget(&identity);
            self.values.forget(&identity);
            self.journal.record(if self.settings.one_shot {
                Entry::Own { identity, owned: None }
            } else {
                Entry::Forget(identity)
            });
        }
        self.settle_departed();
        let (table, kept) = (&self.graph, &self.ownership.records);
        // A vertex with a stuck run may still write a record.
        let is_known = |name: &str| kept.contains_key(name) || table.number(name).is_some();
        self.ownership.without_vertex.retain(|name| is_known(name) && !table.runs(name));
        if self.ownership.looks_only {
            self.ownership.all_unsettled = true;
            return;
        }
        self.hand_over_paths(&released);
        let mut suspects = std::mem::take(&mut self.ownership.unsettled);
        if std::mem::take(&mut self.ownership.all_unsettled) {
            suspects.extend(self.graph.ids());
        } else {
            suspects.extend(&installed.differs);
        }
        for (id, owned) in self.disagreeing(suspects.iter().copied()) {
            let identity = self.graph.identity(id);
            self.keep_owned(&identity, Some(Arc::new(owned)));
        }
        for id in suspects {
            self.note_leftovers(id);
        }
        debug_assert!(self.disagreeing(self.graph.ids()).is_empty(), "nobody else differs");
    }

    /// Returns the vertices whose declaration differs from their record for the same object, with the new record.
    fn disagreeing(&self, of: impl IntoIterator<Item = VertexId>) -> Vec<(VertexId, Ownership)> {
        let context = self.context();
        let each = of.into_iter().filter(|id| !self.graph.is_removed(*id));
        let changed = each.filter_map(|id| {
            let entry = self.graph.get(id).filter(|entry| !entry.removes)?;
            // The graph declares nothing for a removed vertex with a stuck run.
            if !self.graph.runs(&entry.identity) {
                return None;
            }
            let before = self.ownership.records.get(&entry.identity)?;
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
    fn note_leftovers(&mut self, id: VertexId) {
        let entry = self.graph.get(id).filter(|entry| !entry.removes);
        let kept = entry.and_then(|entry| self.ownership.records.get(&entry.identity));
        if entry.zip(kept).is_some_and(|(entry, owned)| entry.after.len() != owned.after.len()) {
            self.ownership.unsettled.insert(id);
        }
    }

    pub(in crate::driver) fn context(&self) -> OwnershipContext<'_> {
        let (table, kept) = (&self.graph, &self.ownership.records);
        OwnershipContext { graph: Arc::clone(&self.ownership.graph), table, records: kept }
    }

    pub(in crate::driver) fn keep_owned(
        &mut self,
        identity: &Arc<str>,
        owned: Option<Arc<Ownership>>,
    ) {
        self.ownership.put(identity, owned.clone());
        self.journal.record(Entry::Own { identity: Arc::clone(identity), owned });
    }

    /// Records the ownership of the object of a converged vertex, if the record is of another object (B-5).
    pub(in crate::driver) fn note_owned(&mut self, id: VertexId, origin: Origin) {
        let Some(entry) = self.graph.get(id) else { return };
        if entry.removes || entry.meta.noop || !self.ownership.settled.insert(id) {
            return;
        }
        let identity = Arc::clone(&entry.identity);
        let before = self.ownership.records.get(&identity);
        let owned = entry.owned(before.map(AsRef::as_ref), &self.context(), origin);
        let says = owned.is_recorded();
        let leftovers = owned.after.len() != entry.after.len();
        if before.map_or(says, |before| **before != owned) {
            self.keep_owned(&identity, says.then(|| Arc::new(owned)));
        }
        if leftovers {
            self.ownership.unsettled.insert(id);
        }
    }

    /// Returns the records to write before a run that creates objects. The flag is true if a record must not be lost.
    pub(in crate::driver) fn mark_created(&mut self, intent: &Intent) -> (Vec<Entry>, bool) {
        let (mut entries, mut urgent) = (Vec::new(), false);
        for id in self.graph.groups().members(&intent.vertex) {
            let creates = self.runs.active.get(&intent.run).is_some_and(|live| live.creates(*id));
            let Some(entry) = self.graph.get(*id).filter(|e| creates && !e.removes) else {
                continue;
            };
            let before = self.ownership.records.get(&entry.identity).cloned();
            let owned = entry.owned(before.as_deref(), &self.context(), Origin::Created);
            if owned.origin.is_none() || before.as_deref() == Some(&owned) {
                continue;
            }
            urgent |= owned.delete;
            let leftovers = owned.after.len() != entry.after.len();
            let (identity, owned) = (Arc::clone(&entry.identity), Some(Arc::new(owned)));
            if leftovers {
                self.ownership.unsettled.insert(*id);
            }
            if self.graph.change().is_some() {
                self.ownership.made.insert(Arc::clone(&identity));
            }
            self.ownership.put(&identity, owned.clone());
            self.ownership.marked.insert(*id, before);
            entries.push(Entry::Own { identity, owned });
        }
        (entries, urgent)
    }

    /// Restores and writes the prior records after a failed begin, whose entries may be durable in spite of the error.
    pub(in crate::driver) fn unmark(&mut self, vertex: VertexId) {
        for id in self.graph.groups().members(&vertex).to_vec() {
            if let Some(before) = self.ownership.marked.remove(&id) {
                let identity = self.graph.identity(id);
                self.ownership.put(&identity, before.clone());
                self.ownership.unsettled.insert(id);
                self.journal.record(Entry::Own { identity, owned: before });
            }
        }
    }

    /// Settles the ownership record at the end of a run.
    pub(in crate::driver) fn note_end(&mut self, run: RunId, id: VertexId, outcome: Outcome) {
        let marked = self.ownership.marked.remove(&id);
        let created = marked.is_some();
        let part = self.runs.active.get(&run).and_then(|live| live.outcome(id));
        let outcome = part.unwrap_or(outcome);
        match outcome {
            Outcome::Changed => self.note_owned(id, Origin::Adopted),
            Outcome::Unchanged | Outcome::Failed { touched: false } if created => {
                // The outcome proves that nothing was created.
                let identity = self.graph.identity(id);
                self.keep_owned(&identity, marked.flatten());
                self.ownership.unsettled.insert(id);
                if outcome == Outcome::Unchanged {
                    self.note_owned(id, Origin::Adopted);
                }
            }
            Outcome::Unchanged => self.note_owned(id, Origin::Adopted),
            Outcome::Failed { .. } | Outcome::Interrupted => {}
        }
    }

    /// Drops the record of a removed object, and excludes its vertex from later checks.
    pub(in crate::driver) fn mark_removed(&mut self, id: VertexId) {
        let identity = self.graph.identity(id);
        self.ownership.records.remove(&identity);
        self.graph.mark_removed(id);
    }

    /// Reports a removal when its record is durable, or reports that the object was already gone.
    pub(in crate::driver) fn tell_removed(&mut self, id: VertexId, was_there: bool) {
        if self.graph.is_removed(id) {
            let identity = self.graph.identity(id);
            let spared = self.graph.get(id).and_then(|entry| entry.resource.left_alone_reason());
            let gone =
                if was_there { "removed from the host" } else { "was already absent; forgotten" };
            let says = spared.as_deref().unwrap_or(gone);
            let removed = was_there && spared.is_none();
            self.notifier.tell(&Notification::Undeclared {
                identity: &identity,
                message: says,
                removed,
            });
        }
    }

    /// Postpones the removal of a resource whose object was created while the graph without it waited: its first run
    /// was in progress, or `realize` made it. The removals were planned before that, so the next load removes it.
    pub(in crate::driver) fn keep_if_made_since(&mut self, identity: &Arc<str>) {
        let is_new = self.ownership.made.remove(identity);
        if !is_new || !self.ownership.record(identity).is_some_and(is_deletable) {
            return;
        }
        self.ownership.pending_removals.keep.insert(Arc::clone(identity));
        let says = "was created while the new graph was waiting; `steadfast reload` removes it";
        self.notifier.tell(&Notification::Undeclared { identity, message: says, removed: false });
    }

    /// Forgets the records of a removed vertex, except for the data that a later load needs for the removal.
    pub(in crate::driver) fn forget_owned(&mut self, id: VertexId, identity: &Arc<str>) {
        self.ownership.forget_vertex(id);
        let stays = self.ownership.stays(identity);
        let owned = if stays { self.ownership.records.get(identity).cloned() } else { None };
        if owned.is_none() {
            self.ownership.records.remove(identity);
        }
        self.journal.record(Entry::Forget(Arc::clone(identity)));
        if owned.is_some() {
            self.journal.record(Entry::Own { identity: Arc::clone(identity), owned });
        }
    }
}
