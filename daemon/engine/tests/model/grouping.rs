//! Groups (E-19): the swap that makes one vertex of several or several of one, and what the graph with the groups must do for
//! each of their members.

use super::budget::Budget;
use super::features::Configuration;
use crate::environment::World;
use crate::invariants::E19_GROUPS;
use crate::shape::Shape;
use crate::step::Step;
use crate::store::Entry;
use std::sync::Arc;
use steadfast_engine::{
    Candidate, Check, Contracted, Edge, Group, Meta, Outcome, VertexId, contract,
};

/// One graph of a configuration is the other with its groups made.
#[derive(Clone, Debug)]
pub(super) struct Grouping {
    /// Which.
    at: usize,
    groups: Vec<Group>,
    /// The edges of the other: those of the members.
    edges: Vec<Edge>,
}

/// What can be one transaction becomes one, or becomes several again.
pub(super) fn regroupings(shape: &Shape, budget: Budget) -> Vec<Configuration> {
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

/// All that can be one transaction, in the order of the graph and in the reverse.
fn contracted(shape: &Shape) -> Contracted {
    let candidate = |vertex: &steadfast_engine::VertexSpec| Candidate {
        id: vertex.id,
        // A deed is never part of a transaction.
        key: (vertex.nature.check == Check::State).then_some(u32::from(vertex.nature.cancellable)),
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

/// The graph as the driver gives it to the engine.
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
    /// What the step between these two worlds shows of the groups, where they are made.
    pub(super) fn check(&self, before: &World, after: &mut World, step: &Step) {
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

    /// The number of the vertex that stands for it.
    fn leader(&self, id: VertexId) -> VertexId {
        let group = self.groups.iter().find(|group| group.members.contains(&id));
        group.map_or(id, |group| group.leader)
    }
}

/// Whether the engine knows it, or has started it in this step. Of who has left a run that does not return is known still (E-6).
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

/// Whether the end of a run that was of this graph says what is owed.
fn is_recorded(before: &World, after: &World, above: VertexId, below: VertexId) -> bool {
    let run = before.oracle.books.vertices.get(&above).and_then(|vertex| vertex.running.as_ref());
    let is_older = run.is_none_or(|run| run.obsolete || run.intent.is_none());
    let says = |entry: &Entry| match entry {
        Entry::End(record) => record.vertex == above && record.owes.contains(&below),
        _ => false,
    };
    is_older || after.store.written.back().is_some_and(says)
}
