//! The ownership record that a declared resource must have.

use super::plan::KeptOwned;
use crate::config::Vertex;
use crate::driver::graph::registry::GraphRegistry;
use crate::store::{Origin, Ownership};
use std::sync::Arc;

impl Vertex {
    /// Returns the record for this resource, given the record `before`. `origin` applies to an object without a record.
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

    /// Returns true if the record agrees with the declaration.
    pub(super) fn agrees(&self, owned: &Ownership, context: &OwnershipContext<'_>) -> bool {
        owned.delete == (self.delete && !self.meta.noop)
            && owned.protect == self.protect
            && owned.graph == context.graph
            && owned.after == context.after(self, owned)
            && owned.removal.as_deref().is_none_or(|text| self.refreshes_by_removal(text))
    }

    /// Returns true if a removal by this text refreshes the same resources as a change of this vertex.
    fn refreshes_by_removal(&self, text: &str) -> bool {
        *Self::notified_by_removal(text) == *self.notifies
    }
}

/// The context of an ownership record: the graph, its registry and all other records.
pub(in crate::driver) struct OwnershipContext<'a> {
    pub(super) graph: Arc<str>,
    pub(super) table: &'a GraphRegistry,
    pub(super) records: &'a KeptOwned,
}

impl OwnershipContext<'_> {
    /// Returns the dependencies to record: those of the graph, and undeclared ones that are not removed yet.
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
