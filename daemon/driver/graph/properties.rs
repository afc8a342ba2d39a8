//! Properties of vertices that decide about their records and their events.

use super::registry::GraphRegistry;
use crate::driver::values::senders;
use std::sync::Arc;
use steadfast_engine::VertexId;
use steadfast_resources::RunPolicy;

impl GraphRegistry {
    /// Returns the identity of a vertex; `?` if the vertex is unknown.
    pub(in crate::driver) fn identity(&self, id: VertexId) -> Arc<str> {
        self.get(id).map_or_else(|| "?".into(), |entry| Arc::clone(&entry.identity))
    }

    /// Returns the identities of these engine vertices, including all group members.
    pub(in crate::driver) fn identities(&self, ids: &[VertexId]) -> Vec<Arc<str>> {
        let groups = self.groups();
        ids.iter().flat_map(|id| groups.members(id)).map(|id| self.identity(*id)).collect()
    }

    /// Returns the definition of a member of a group; the engine knows only that of the group.
    pub(in crate::driver) fn definition(
        &self,
        vertex: VertexId,
        member: VertexId,
        whole: u64,
    ) -> u64 {
        let own = self.get(member).filter(|_| self.groups().get(vertex).is_some());
        own.map_or(whole, |entry| entry.definition)
    }

    /// Returns true if a check cannot see the effect of a run, as with a command: its begin and end must be durable, as
    /// must refreshes owed or paid. A check finds everything else again.
    pub(in crate::driver) fn is_deed(&self, id: VertexId) -> bool {
        self.get(id).is_some_and(|entry| entry.resource.traits().repeat != RunPolicy::State)
    }

    /// Returns true if the vertex receives sent values. These values are recorded before its begin: a lost value would
    /// be generated again (a password) while somebody uses the first.
    pub(in crate::driver) fn is_given_something(&self, id: VertexId) -> bool {
        let recipe = self.get(id).and_then(|entry| entry.recipe.as_ref());
        recipe.is_some_and(|recipe| senders(recipe).next().is_some())
    }
}
