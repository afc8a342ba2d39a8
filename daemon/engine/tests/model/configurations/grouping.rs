//! Groups (E-19): swaps that group vertices or separate them, and the duties of the grouped graph for each member.

use crate::environment::World;
use crate::invariants::E19_GROUPS;
use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::Configuration;
use crate::shape::Shape;
use crate::step::Step;
use crate::store::Entry;
use std::sync::Arc;
use steadfast_engine::{
    Candidate, Contracted, Edge, Group, Meta, Outcome, RunPolicy, VertexId, contract,
};

/// A pair of graphs of which one is the other with its groups made.
#[derive(Clone, Debug)]
pub(in crate::model) struct Grouping {
    /// The index of the grouped graph.
    at: usize,
    groups: Vec<Group>,
    /// The edges of the other graph, between the members.
    edges: Vec<Edge>,
}

/// Returns the swaps that group vertices, or separate them again.
pub(in crate::model) fn regroupings(shape: &Shape, budget: Budget) -> Vec<Configuration> {
    let contracted = contracted(shape);
    if contracted.groups.is_empty() {
        return Vec::new();
    }
    let grouped = grouped(shape, &contracted);
    let both = [vec![shape.clone(), grouped.clone()], vec![grouped, shape.clone()]];
    let configuration = |(at, shapes)| {
        let (groups, edges) = (contracted.groups.clone(), shape.edges.clone());
        Configuration { shapes, budget, grouping: Some(Grouping { at, groups, edges }) }
    };
    [1, 0].into_iter().zip(both).map(configuration).collect()
}

/// Groups all vertices that can be one transaction, in the order of the graph and in the reverse.
fn contracted(shape: &Shape) -> Contracted {
    let candidate = |vertex: &steadfast_engine::VertexSpec| Candidate {
        id: vertex.id,
        // An operation is never part of a transaction.
        key: (vertex.traits.repeat == RunPolicy::State)
            .then_some(u32::from(vertex.traits.cancellable)),
        meta: Arc::clone(&vertex.meta),
        leads: false,
    };
    let mut candidates: Vec<Candidate> = shape.vertices.iter().map(candidate).collect();
    let mut edges = shape.edges.clone();
    let contracted = contract(&candidates, &edges);
    candidates.reverse();
    edges.reverse();
    assert_eq!(contract(&candidates, &edges), contracted, "E-19: groups depend on an order");
    contracted
}

/// Returns the grouped graph, as the driver gives it to the engine.
fn grouped(shape: &Shape, contracted: &Contracted) -> Shape {
    let mut other = shape.clone();
    for group in &contracted.groups {
        let others = group.members.iter().filter(|member| **member != group.leader);
        other = others.fold(other, |other, member| other.without(member.0));
        other = other.define(group.leader.0, 2).meta(group.leader.0, |meta| {
            *meta = Meta::clone(&group.meta);
        });
    }
    other.edges.clone_from(&contracted.edges);
    other
}

impl Grouping {
    /// Checks the duties of groups in the step between these two worlds, if the groups are made.
    pub(in crate::model) fn check(&self, before: &World, after: &mut World, step: &Step) {
        let graph = after.graphs.get(self.at).map(|(graph, _)| graph);
        if graph.is_none() || after.running.as_ref() != graph {
            return;
        }
        let mut wrong = Vec::new();
        for member in self.groups.iter().flat_map(|group| &group.members) {
            if self.leader(*member) != *member && acts(before, after, *member) {
                wrong.push(format!("{member} acts although it is part of a group"));
            }
        }
        for edge in &self.edges {
            let (above, below) = (self.leader(edge.from), self.leader(edge.to));
            if !after.engine.neighbours(below).0.contains(&above) {
                wrong.push(format!("{} is above {} no more", edge.from, edge.to));
            }
            let owes = edge.notify && *step == Step::Ended(above, Outcome::Changed);
            if owes && before.running == after.running && !is_recorded(before, after, above, below)
            {
                wrong.push(format!("{above} has changed and owes {} nothing", edge.to));
            }
        }
        let broken = wrong.into_iter().map(|detail| format!("{E19_GROUPS}\n    {detail}"));
        after.oracle.books.violations.extend(broken);
    }

    /// Returns the number of the vertex that represents a member.
    fn leader(&self, id: VertexId) -> VertexId {
        let group = self.groups.iter().find(|group| group.members.contains(&id));
        group.map_or(id, |group| group.leader)
    }
}

/// Returns true if the engine has the member's vertex, or has started it in this step. A removed vertex with a run that
/// does not return is still in the engine (E-6).
fn acts(before: &World, after: &World, member: VertexId) -> bool {
    if after.oracle.books.leaving.contains_key(&member) {
        return after
            .runs
            .iter()
            .any(|(run, it)| it.start.vertex == member && !before.runs.contains_key(run));
    }
    let mut started = after.runs.iter().filter(|(run, _)| !before.runs.contains_key(run));
    after.engine.vertex_status(member).is_some()
        || started.any(|(_, run)| run.start.vertex == member)
}

/// Returns true if the end of a run of this graph records the owed refresh.
fn is_recorded(before: &World, after: &World, above: VertexId, below: VertexId) -> bool {
    let run = before.oracle.books.vertices.get(&above).and_then(|vertex| vertex.running.as_ref());
    let is_older = run.is_none_or(|run| run.obsolete || run.intent.is_none());
    let says = |entry: &Entry| match entry {
        Entry::End(record) => record.vertex == above && record.owes.contains(&below),
        _ => false,
    };
    is_older || after.store.written.back().is_some_and(says)
}
