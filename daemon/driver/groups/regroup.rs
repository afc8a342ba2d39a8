//! Regrouping: the running graph with other transaction groups, from the same resources and edges.

use super::Groups;
use crate::driver::graph::registry::{GraphRegistry, declare};
use std::collections::BTreeSet;
use steadfast_engine::{Graph, VertexId, VertexSpec};

impl GraphRegistry {
    /// Sets the resources that belong to no group from now on, in this graph and later ones.
    pub(in crate::driver) fn keep_apart(&mut self, apart: BTreeSet<VertexId>) {
        self.apart = apart;
    }

    /// Returns the running graph with its new groups, if they differ; [`GraphRegistry::install_groups`] follows when
    /// the engine has accepted it.
    pub(in crate::driver) fn regroup(&mut self) -> Option<Graph> {
        let mut declared: Vec<VertexSpec> =
            self.rows.iter().map(|(id, vertex)| declare(id, vertex)).collect();
        let mut edges = self.edges.clone();
        let vertices = self.rows.iter().map(|(_, vertex)| vertex);
        let groups = Groups::find(vertices, &mut declared, &mut edges, &self.groups, &self.apart);
        if groups.are_those_of(self.regrouped.as_ref().unwrap_or(&self.groups)) {
            return None;
        }
        let graph = Graph::new(declared, edges, self.counts.clone()).ok()?;
        self.regrouped = Some(groups);
        Some(graph)
    }

    /// Lists the engine vertices of the new groups and of former members: number, members and definition.
    pub(in crate::driver) fn regrouped(&self) -> Vec<(VertexId, Vec<VertexId>, u64)> {
        let Some(groups) = &self.regrouped else { return Vec::new() };
        let all =
            groups.iter().map(|(leader, group)| (leader, group.members.clone(), group.definition));
        let members = self.groups.iter().flat_map(|(_, group)| group.members.iter().copied());
        let alone = members.filter(|id| groups.get(groups.leader(*id)).is_none());
        let alone = alone.filter_map(|id| Some((id, vec![id], self.get(id)?.definition)));
        all.chain(alone).collect()
    }

    /// Makes the new groups current after the engine has accepted a graph; returns true if that graph was a regrouping.
    pub(in crate::driver) fn install_groups(&mut self) -> bool {
        let groups = self.regrouped.take();
        let was_one = groups.is_some();
        self.groups = groups.unwrap_or_else(|| std::mem::take(&mut self.groups));
        was_one
    }

    /// Returns true while the engine has not accepted the new groups.
    pub(in crate::driver) fn is_regrouping(&self) -> bool {
        self.regrouped.is_some()
    }

    /// Drops the new groups after the engine has rejected them; returns true if there were any.
    pub(in crate::driver) fn drop_groups(&mut self) -> bool {
        self.regrouped.take().is_some()
    }
}
