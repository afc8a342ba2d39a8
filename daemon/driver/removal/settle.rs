//! The removals and the ownership records of a new graph: planned at its load, and settled when it runs.

use super::ownership::PendingOwnership;
use super::plan::{KeptOwned, LoadPolicy, definition_of_removal, plan_removals};
use crate::config::LoadedGraph;
use crate::driver::graph::assign_ids::IdAssignment;
use crate::driver::graph::registry::SwapResult;
use crate::driver::{Driver, LoadError, Notification};
use crate::store::{Entry, Ownership};
use std::collections::HashSet;
use std::sync::Arc;
use steadfast_engine::VertexId;

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
    /// Plans the removals of a new graph; fails if the graph leaves out protected resources.
    pub(in crate::driver) fn plan_removals(
        &self,
        loaded: &mut LoadedGraph,
        found: &[IdAssignment],
        operator: bool,
    ) -> Result<PendingOwnership, LoadError> {
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
        let kept = (&self.ownership.records, self.ownership.may_leave(&self.graph, loaded, found));
        let plan = plan_removals(loaded, kept, &approved, terms);
        let mut plan = plan.map_err(|protected| {
            let hint = protection_hint(&protected, &self.ownership.records);
            LoadError::Protected { identities: protected, hint }
        })?;
        // A resource of a graph with another name is reported once.
        let told = &self.ownership.pending_removals.keep;
        let is_of_this = |name: &str| {
            self.ownership.record(name).is_some_and(|owned| *owned.graph == *loaded.name)
        };
        plan.messages.retain(|(name, _)| is_of_this(name) || !told.contains(name));
        let is_noop = loaded.usual.noop;
        let forgets = operator && !is_noop;
        let is_plan = is_noop && self.settings.one_shot && !self.journal.exists();
        if is_plan {
            // A plan lists every undeclared resource whose object stays.
            plan.explain_forgotten();
        } else if is_noop {
            plan.messages.clear();
        }
        if !forgets {
            // Their records stay for their return; the next reload by an operator settles them.
            let left: HashSet<Arc<str>> = plan.forget.drain(..).collect();
            plan.messages.retain(|(identity, _)| is_plan || !left.contains(identity));
        }
        Ok(PendingOwnership { removals: plan, aliases: self.aliases(loaded), is_noop, forgets })
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
        let released = self.ownership.released_paths(&self.graph, &installed.differs, forgotten);
        let former = self.ownership.former_objects(&self.graph, &installed.differs);
        let messages = std::mem::take(&mut self.ownership.pending_removals.messages);
        for (identity, says) in messages.into_iter().chain(former) {
            self.notifier.notify(&Notification::Undeclared {
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
        if self.ownership.is_noop {
            self.ownership.all_unsettled = true;
            return;
        }
        self.journal.record_all(self.ownership.hand_over_paths(&self.graph, &released));
        let mut suspects = std::mem::take(&mut self.ownership.unsettled);
        if std::mem::take(&mut self.ownership.all_unsettled) {
            suspects.extend(self.graph.ids());
        } else {
            suspects.extend(&installed.differs);
        }
        for (id, owned) in self.ownership.disagreeing(&self.graph, suspects.iter().copied()) {
            let identity = self.graph.identity(id);
            self.journal.record(self.ownership.set(&identity, Some(Arc::new(owned))));
        }
        for id in suspects {
            self.ownership.note_leftovers(&self.graph, id);
        }
        debug_assert!(
            self.ownership.disagreeing(&self.graph, self.graph.ids()).is_empty(),
            "nobody else differs"
        );
    }

    /// Drops the record of a removed object, and excludes its vertex from later checks.
    pub(in crate::driver) fn mark_removed(&mut self, id: VertexId) {
        let identity = self.graph.identity(id);
        self.ownership.records.remove(&identity);
        self.graph.mark_removed(id);
    }

    /// Reports a removal when its record is durable, or reports that the object was already gone.
    pub(in crate::driver) fn notify_removed(&mut self, id: VertexId, was_there: bool) {
        if self.graph.is_removed(id) {
            let identity = self.graph.identity(id);
            let spared = self.graph.get(id).and_then(|entry| entry.resource.left_alone_reason());
            let gone =
                if was_there { "removed from the host" } else { "was already absent; forgotten" };
            let says = spared.as_deref().unwrap_or(gone);
            let removed = was_there && spared.is_none();
            self.notifier.notify(&Notification::Undeclared {
                identity: &identity,
                message: says,
                removed,
            });
        }
    }
}
