//! Whose the things are that we hold: noted when they are made or found, and kept as long as their resources are declared.

use super::plan::{
    KeptOwned, LoadPolicy, RemovalPlan, definition_of_removal, is_deletable, plan_removals,
};
use super::undeclared::Renamed;
use crate::config::{LoadedGraph, Vertex};
use crate::driver::graph::assign_ids::IdAssignment;
use crate::driver::graph::registry::SwapResult;
use crate::driver::{Driver, Notification};
use crate::history::{Alias, Names};
use crate::store::{Entry, Origin, Ownership, StateCommand, StoredState};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use steadfast_engine::{Intent, Outcome, RunId, VertexId};

/// What is kept of whose things are, as it will be when all that was written is durable.
#[derive(Debug, Default)]
pub(in crate::driver) struct OwnershipRecords {
    pub(in crate::driver) records: KeptOwned,
    /// What was kept before of things that a run in progress makes.
    marked: HashMap<VertexId, Option<Arc<Ownership>>>,
    /// Of whom all is kept that there is to keep, under this graph.
    settled: HashSet<VertexId>,
    /// All that is kept of nobody who runs, and maybe more; a later graph may leave it out.
    pub(in crate::driver) without_vertex: BTreeSet<Arc<str>>,
    /// Of whom what is kept may be something else than what the graph says, although that says the same as before.
    unsettled: BTreeSet<VertexId>,
    /// So may all.
    all_unsettled: bool,
    /// What the graph that waits means for what it leaves out, and who has other names in it.
    pending_removals: RemovalPlan,
    pub(in crate::driver) renamed: Vec<Renamed>,
    /// What the history is to be told of names, when that graph runs.
    pub(in crate::driver) names: Names,
    /// What was made since that graph was taken: whoever judged what leaves has not known of it.
    made: BTreeSet<Arc<str>>,
    /// All of it is only looked at: nothing of what is kept changes for it.
    looks_only: bool,
    /// An operator has asked for it: what it leaves out is forgotten.
    forgets: bool,
    /// The name of the graph that runs.
    graph: Arc<str>,
}

/// What a graph means for what it leaves out, until it is taken.
#[derive(Debug)]
pub(in crate::driver) struct PendingOwnership {
    removals: RemovalPlan,
    aliases: Vec<Alias>,
    looks_only: bool,
    forgets: bool,
}

impl OwnershipRecords {
    /// With what the store told back.
    pub(in crate::driver) fn new(recalled: &StoredState) -> Self {
        let owned = |(identity, kept): (&String, &crate::store::ResourceRecord)| {
            Some((identity.as_str().into(), Arc::clone(kept.owned.as_ref()?)))
        };
        let kept: KeptOwned = recalled.resources.iter().filter_map(owned).collect();
        Self { without_vertex: kept.keys().cloned().collect(), records: kept, ..Self::default() }
    }

    /// What is kept of this one.
    pub(in crate::driver) fn record(&self, identity: &str) -> Option<&Ownership> {
        self.records.get(identity).map(AsRef::as_ref)
    }

    /// Whether the record stays although its resource has left.
    pub(in crate::driver) fn stays(&self, identity: &str) -> bool {
        self.pending_removals.keep.contains(identity)
    }

    /// What is removed by a later load, by name: at most so many.
    pub(in crate::driver) fn waiting(&self, most: usize) -> Vec<String> {
        let keep =
            self.pending_removals.keep.iter().filter(|name| self.records.contains_key(*name));
        keep.take(most).map(ToString::to_string).collect()
    }

    /// Of whom anything is kept.
    pub(in crate::driver) fn names(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(AsRef::as_ref)
    }

    /// Whether what the graph that was taken last leaves out is forgotten.
    pub(in crate::driver) fn forgets(&self) -> bool {
        self.forgets
    }

    /// Who has another name in the graph that waits.
    pub(in crate::driver) fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// It runs no more; what is kept of it stays.
    pub(in crate::driver) fn forget_vertex(&mut self, id: VertexId) {
        self.settled.remove(&id);
        self.marked.remove(&id);
    }

    /// Whether all of the graph that was taken last is only looked at.
    pub(in crate::driver) fn looks_only(&self) -> bool {
        self.looks_only
    }

    /// A graph was taken: what it means for what it leaves out, and who has other names in it.
    pub(in crate::driver) fn take(&mut self, leave: PendingOwnership, renamed: Vec<Renamed>) {
        let PendingOwnership { removals: farewell, aliases, looks_only, forgets } = leave;
        self.names.aliases = aliases;
        (self.pending_removals, self.renamed) = (farewell, renamed);
        (self.looks_only, self.forgets) = (looks_only, forgets);
        self.made.clear();
    }

    /// The name of the graph that runs.
    pub(in crate::driver) fn graph(&self) -> &Arc<str> {
        &self.graph
    }

    /// What the operator orders holds from now on. What is forgotten is noted again as soon as it is found as declared.
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
        match owned.filter(|owned| owned.says_something()) {
            Some(owned) => drop(self.records.insert(Arc::clone(identity), owned)),
            None => drop(self.records.remove(identity)),
        }
    }
}

impl Vertex {
    /// What is to be kept of it, where this was kept; a thing of which nothing is known is of this origin.
    pub(in crate::driver) fn owned(
        &self,
        before: Option<&Ownership>,
        context: &OwnershipContext<'_>,
        origin: Origin,
    ) -> Ownership {
        let usual = Ownership::default();
        let before = before.unwrap_or(&usual);
        let OwnershipContext { graph, .. } = context;
        let thing = Self::thing(self.resource.as_ref());
        let origin = match before.origin {
            Some(known) if Some(before.thing) == thing => Some(known),
            Some(_) | None => Some(origin),
        };
        let delete = self.delete && !self.meta.noop;
        let window = context.table.window_of(self);
        let removal = || Self::removal(self.resource.as_ref(), window, &self.notifies);
        let removal = delete.then(removal).flatten();
        Ownership {
            origin: origin.filter(|_| thing.is_some()),
            graph: Arc::clone(graph),
            delete,
            protect: self.protect,
            pinned: before.pinned,
            thing: thing.unwrap_or_default(),
            removal: removal.map(Into::into),
            after: context.after(self, before),
        }
    }

    /// Whether the graph says the same of it as what is kept.
    fn agrees(&self, owned: &Ownership, context: &OwnershipContext<'_>) -> bool {
        owned.delete == (self.delete && !self.meta.noop)
            && owned.protect == self.protect
            && owned.graph == context.graph
            && owned.after == context.after(self, owned)
            && owned.removal.as_deref().is_none_or(|text| self.refreshes_by_removal(text))
    }

    /// Tells whether a removal by this text refreshes the resources that a change refreshes.
    fn refreshes_by_removal(&self, text: &str) -> bool {
        *Self::notified_by_removal(text) == *self.notifies
    }
}

/// What stands around a resource whose thing is noted.
pub(in crate::driver) struct OwnershipContext<'a> {
    graph: Arc<str>,
    table: &'a crate::driver::graph::registry::GraphRegistry,
    records: &'a KeptOwned,
}

impl OwnershipContext<'_> {
    /// Those that it comes after: as the graph says, and of those that have left it as long as they are not removed.
    fn after(&self, entry: &Vertex, before: &Ownership) -> Vec<Arc<str>> {
        let is_live = |name: &str| {
            let id = self.table.number(name).filter(|_| self.table.runs(name));
            id.and_then(|id| self.table.get(id)).is_some_and(|entry| !entry.removes)
        };
        let left =
            before.after.iter().filter(|name| self.records.contains_key(*name) && !is_live(name));
        let mut after: Vec<Arc<str>> = entry.after.iter().chain(left).cloned().collect();
        after.sort_unstable();
        after.dedup();
        after
    }
}

/// The ways out for resources that are protected and not in a new graph: each protection ends in its own way.
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
    /// What a new graph means for what it leaves out. It is refused, with the reason, where something protected would leave.
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
        let (table, recalled) = (&self.table, self.recalled.as_ref());
        let condemned = |name: &str, owned: &Ownership| {
            let removed =
                table.number(name).and_then(|id| table.waiting(id).or_else(|| table.get(id)));
            let begun = recalled.and_then(|it| it.resources.get(name)?.interrupted);
            // What an operator had removed when the daemon died may be half gone: it is removed to the end.
            let cut_off = begun.is_some() && begun == definition_of_removal(name, owned);
            cut_off || removed.is_some_and(|entry| entry.removes)
        };
        let kept = (&self.ownership.records, self.may_leave(loaded, found));
        let farewell = plan_removals(loaded, kept, &condemned, terms);
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
            // They are as they were when they come back; an operator's reload says what becomes of them.
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

    /// The graph that waited runs from now on: what it says is kept, and what it leaves out is forgotten.
    pub(in crate::driver) fn settle_ownership(&mut self, installed: &SwapResult) {
        self.rename();
        self.rename_history();
        self.ownership.without_vertex.extend(installed.gone.iter().cloned());
        self.ownership.settled.clear();
        if *self.ownership.graph != *self.table.graph() {
            self.ownership.graph = self.table.graph().into();
            self.ownership.all_unsettled = true;
        }
        let forgotten = &self.ownership.pending_removals.forget;
        let released = self.released_paths(&installed.differs, forgotten);
        for (identity, says) in std::mem::take(&mut self.ownership.pending_removals.messages) {
            self.audience.hear(&Notification::Undeclared {
                identity: &identity,
                message: &says,
                removed: false,
            });
        }
        for identity in std::mem::take(&mut self.ownership.pending_removals.forget) {
            let stands =
                self.table.number(&identity).is_some_and(|id| self.table.get(id).is_some());
            self.ownership.records.remove(&identity);
            if stands {
                continue;
            }
            self.departed.forget(&identity);
            self.values.forget(&identity);
            let Some(keeper) = &mut self.keeper else { continue };
            keeper.other(if self.settings.one_shot {
                Entry::Own { identity, owned: None }
            } else {
                Entry::Forget(identity)
            });
        }
        self.settle_departed();
        let (table, kept) = (&self.table, &self.ownership.records);
        // Of one whose run is stuck something may be kept yet.
        let is_known = |name: &str| kept.contains_key(name) || table.number(name).is_some();
        self.ownership.without_vertex.retain(|name| is_known(name) && !table.runs(name));
        if self.ownership.looks_only {
            self.ownership.all_unsettled = true;
            return;
        }
        self.hand_over_paths(&released);
        let mut suspects = std::mem::take(&mut self.ownership.unsettled);
        if std::mem::take(&mut self.ownership.all_unsettled) {
            suspects.extend(self.table.ids());
        } else {
            suspects.extend(&installed.differs);
        }
        for (id, owned) in self.disagreeing(suspects.iter().copied()) {
            let identity = self.identity(id);
            self.keep_owned(&identity, Some(Arc::new(owned)));
        }
        for id in suspects {
            self.note_leftovers(id);
        }
        debug_assert!(self.disagreeing(self.table.ids()).is_empty(), "nobody else differs");
    }

    /// Of whom something else is kept than what the graph says, of the same thing; and what is to be kept.
    fn disagreeing(&self, of: impl IntoIterator<Item = VertexId>) -> Vec<(VertexId, Ownership)> {
        let context = self.context();
        let each = of.into_iter().filter(|id| !self.table.is_removed(*id));
        let changed = each.filter_map(|id| {
            let entry = self.table.get(id).filter(|entry| !entry.removes)?;
            // Of one that has left, and whose run is stuck, this graph says nothing.
            if !self.table.runs(&entry.identity) {
                return None;
            }
            let before = self.ownership.records.get(&entry.identity)?;
            if entry.agrees(before, &context) {
                return None;
            }
            let owned = entry.owned(Some(before), &context, Origin::Adopted);
            // Another thing under the same name is whose it is found to be.
            (owned.thing == before.thing).then_some((id, owned))
        });
        changed.collect()
    }

    /// What stands after somebody who has left is looked at with each graph, until that is gone.
    fn note_leftovers(&mut self, id: VertexId) {
        let entry = self.table.get(id).filter(|entry| !entry.removes);
        let kept = entry.and_then(|entry| self.ownership.records.get(&entry.identity));
        if entry.zip(kept).is_some_and(|(entry, owned)| entry.after.len() != owned.after.len()) {
            self.ownership.unsettled.insert(id);
        }
    }

    pub(in crate::driver) fn context(&self) -> OwnershipContext<'_> {
        let (table, kept) = (&self.table, &self.ownership.records);
        OwnershipContext { graph: Arc::clone(&self.ownership.graph), table, records: kept }
    }

    pub(in crate::driver) fn keep_owned(
        &mut self,
        identity: &Arc<str>,
        owned: Option<Arc<Ownership>>,
    ) {
        self.ownership.put(identity, owned.clone());
        if let Some(keeper) = &mut self.keeper {
            keeper.other(Entry::Own { identity: Arc::clone(identity), owned });
        }
    }

    /// A run has found or made it as declared: whose it is, is noted, if that is another thing than what is kept (B-5).
    pub(in crate::driver) fn note_owned(&mut self, id: VertexId, origin: Origin) {
        let Some(entry) = self.table.get(id) else { return };
        if entry.removes || entry.meta.noop || !self.ownership.settled.insert(id) {
            return;
        }
        let identity = Arc::clone(&entry.identity);
        let before = self.ownership.records.get(&identity);
        let owned = entry.owned(before.map(AsRef::as_ref), &self.context(), origin);
        let says = owned.says_something();
        let leftovers = owned.after.len() != entry.after.len();
        if before.map_or(says, |before| **before != owned) {
            self.keep_owned(&identity, says.then(|| Arc::new(owned)));
        }
        if leftovers {
            self.ownership.unsettled.insert(id);
        }
    }

    /// What is to be recorded before a run that makes something: that it is ours. True where that must not be lost.
    pub(in crate::driver) fn mark_created(&mut self, intent: &Intent) -> (Vec<Entry>, bool) {
        let (mut entries, mut urgent) = (Vec::new(), false);
        for id in self.table.groups().members(&intent.vertex) {
            let creates = self.runs.0.get(&intent.run).is_some_and(|live| live.creates(*id));
            let Some(entry) = self.table.get(*id).filter(|e| creates && !e.removes) else {
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
            if self.table.change().is_some() {
                self.ownership.made.insert(Arc::clone(&identity));
            }
            self.ownership.put(&identity, owned.clone());
            self.ownership.marked.insert(*id, before);
            entries.push(Entry::Own { identity, owned });
        }
        (entries, urgent)
    }

    /// What was to be recorded was not: it is nobody's yet. It may have been kept, and only its answer is an error.
    pub(in crate::driver) fn unmark(&mut self, vertex: VertexId) {
        for id in self.table.groups().members(&vertex).to_vec() {
            if let Some(before) = self.ownership.marked.remove(&id) {
                let identity = self.identity(id);
                self.ownership.put(&identity, before.clone());
                self.ownership.unsettled.insert(id);
                if let Some(keeper) = &mut self.keeper {
                    keeper.other(Entry::Own { identity, owned: before });
                }
            }
        }
    }

    /// A run that was begun is over.
    pub(in crate::driver) fn note_end(&mut self, run: RunId, id: VertexId, outcome: Outcome) {
        let marked = self.ownership.marked.remove(&id);
        let created = marked.is_some();
        let part = self.runs.0.get(&run).and_then(|live| live.outcome(id));
        let outcome = part.unwrap_or(outcome);
        match outcome {
            Outcome::Changed => self.note_owned(id, Origin::Adopted),
            Outcome::Unchanged | Outcome::Failed { touched: false } if created => {
                // It is proven that nothing was made.
                let identity = self.identity(id);
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

    /// What was to be removed is gone: nothing of it is kept any more, and nobody looks at it again.
    pub(in crate::driver) fn mark_removed(&mut self, id: VertexId) {
        let identity = self.identity(id);
        self.ownership.records.remove(&identity);
        self.table.mark_removed(id);
    }

    /// What was removed is said to be, when that is durable; or, where it was not there, that.
    pub(in crate::driver) fn tell_removed(&mut self, id: VertexId, was_there: bool) {
        if self.table.is_removed(id) {
            let identity = self.identity(id);
            let spared = self.table.get(id).and_then(|entry| entry.resource.left_alone_reason());
            let gone =
                if was_there { "removed from the host" } else { "was already absent; forgotten" };
            let says = spared.as_deref().unwrap_or(gone);
            let removed = was_there && spared.is_none();
            self.audience.hear(&Notification::Undeclared {
                identity: &identity,
                message: says,
                removed,
            });
        }
    }

    /// A vertex leaves that was made while the graph without it waited (`realize`, or its first run was under way): what is removed
    /// was judged before that, so it is removed by the next load.
    pub(in crate::driver) fn keep_if_made_since(&mut self, identity: &Arc<str>) {
        let is_new = self.ownership.made.remove(identity);
        if !is_new || !self.ownership.record(identity).is_some_and(is_deletable) {
            return;
        }
        self.ownership.pending_removals.keep.insert(Arc::clone(identity));
        let says = "was created while the new graph was waiting; `steadfast reload` removes it";
        self.audience.hear(&Notification::Undeclared { identity, message: says, removed: false });
    }

    /// A vertex has left: what is kept of it goes, but for what a later load needs to remove it.
    pub(in crate::driver) fn forget_owned(&mut self, id: VertexId, identity: &Arc<str>) {
        self.ownership.forget_vertex(id);
        let stays = self.ownership.stays(identity);
        let owned = if stays { self.ownership.records.get(identity).cloned() } else { None };
        if owned.is_none() {
            self.ownership.records.remove(identity);
        }
        let Some(keeper) = &mut self.keeper else { return };
        keeper.other(Entry::Forget(Arc::clone(identity)));
        if owned.is_some() {
            keeper.other(Entry::Own { identity: Arc::clone(identity), owned });
        }
    }
}
