//! Vertices that can be one transaction become one vertex, before the engine sees the graph (E-19).
//!
//! A class is all that can be one transaction: one key, and one set of metaparams (semaphores aside, which are united). The
//! members of a class fall into layers: the layer of a member is the most members of its class that one path to it passes. Two
//! members of one layer are never joined by a path, so each layer becomes one vertex. Every member of a layer has an ancestor
//! in the layer before: a path joins any two groups of a class, none can be joined further, and no other way needs fewer
//! transactions for that class. Classes are taken one after the other, each in the graph as contracted so far.

use crate::graph::Edge;
use crate::ids::VertexId;
use crate::meta::Meta;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A vertex that may be grouped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// It.
    pub id: VertexId,
    /// What those share that can be one transaction, as a number; none where it is a transaction of its own.
    pub key: Option<u32>,
    /// Its metaparams.
    pub meta: Arc<Meta>,
    /// It has led a group so far: rather it than another, so that the group keeps what the engine knows of it.
    pub leads: bool,
}

/// Several vertices that became one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// The member whose number the group has.
    pub leader: VertexId,
    /// All of them, at least two, ascending.
    pub members: Vec<VertexId>,
    /// The metaparams that they share, with the semaphores of all.
    pub meta: Arc<Meta>,
}

/// A graph in which groups are single vertices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contracted {
    /// The groups, by leader. A vertex that is in none is as it was.
    pub groups: Vec<Group>,
    /// The edges between what is left, sorted, each pair once (notify OR-ed).
    pub edges: Vec<Edge>,
}

/// Contracts an acyclic graph; what lies on a cycle, or names a vertex that is not there, is left as it is. The result does not
/// depend on the order of what is given, and which vertices form a group does not depend on their numbers.
#[must_use]
pub fn contract(candidates: &[Candidate], edges: &[Edge]) -> Contracted {
    let mut vertices: Vec<&Candidate> = candidates.iter().collect();
    vertices.sort_unstable_by_key(|vertex| vertex.id);
    let mut shape = Shape::new(&vertices, edges);
    for members in classes(&vertices) {
        shape.merge(&members);
    }
    shape.finish(&vertices, edges)
}

/// The members of each class that has several, by position.
fn classes(vertices: &[&Candidate]) -> Vec<Vec<usize>> {
    let mut classes: BTreeMap<(u32, Meta), Vec<usize>> = BTreeMap::new();
    for (at, vertex) in vertices.iter().enumerate() {
        if let Some(key) = vertex.key {
            let meta = Meta { semaphores: Vec::new(), ..*vertex.meta };
            classes.entry((key, meta)).or_default().push(at);
        }
    }
    classes.into_values().filter(|members| members.len() > 1).collect()
}

/// The graph by positions, as contracted so far.
struct Shape {
    /// The first vertex of the group that each belongs to.
    heads: Vec<usize>,
    edges: Vec<(usize, usize)>,
}

impl Shape {
    fn new(vertices: &[&Candidate], edges: &[Edge]) -> Self {
        let position = |id| vertices.binary_search_by_key(&id, |vertex| vertex.id).ok();
        let ends = |edge: &Edge| Some((position(edge.from)?, position(edge.to)?));
        Self {
            heads: (0..vertices.len()).collect(),
            edges: edges.iter().filter_map(ends).collect(),
        }
    }

    /// Makes each layer of a class one vertex.
    fn merge(&mut self, members: &[usize]) {
        let layers = self.layers(members);
        let mut firsts: BTreeMap<usize, usize> = BTreeMap::new();
        for at in members {
            if let Some(layer) = layers[*at] {
                self.heads[*at] = *firsts.entry(layer).or_insert(*at);
            }
        }
    }

    /// How many members one path to each vertex passes at most; none for what a cycle keeps from being sorted.
    fn layers(&self, members: &[usize]) -> Vec<Option<usize>> {
        let count = self.heads.len();
        let mut counts = vec![0_usize; count];
        for at in members {
            counts[*at] = 1;
        }
        let (mut first, mut missing) = (vec![0_usize; count + 1], vec![0_usize; count]);
        let moved = || self.edges.iter().map(|(from, to)| (self.heads[*from], self.heads[*to]));
        for (from, to) in moved() {
            first[from + 1] += 1;
            missing[to] += 1;
        }
        for at in 0..count {
            first[at + 1] += first[at];
        }
        let (mut next, mut children) = (first.clone(), vec![0_usize; self.edges.len()]);
        for (from, to) in moved() {
            children[next[from]] = to;
            next[from] += 1;
        }
        let mut depths = vec![0_usize; count];
        let mut sorted: Vec<usize> = (0..count).filter(|at| missing[*at] == 0).collect();
        let mut layers = vec![None; count];
        while let Some(at) = sorted.pop() {
            layers[at] = Some(depths[at]);
            for child in &children[first[at]..first[at + 1]] {
                depths[*child] = depths[*child].max(depths[at] + counts[at]);
                missing[*child] -= 1;
                if missing[*child] == 0 {
                    sorted.push(*child);
                }
            }
        }
        layers
    }

    fn finish(self, vertices: &[&Candidate], edges: &[Edge]) -> Contracted {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, head) in self.heads.iter().enumerate().filter(|(at, head)| at != *head) {
            members.entry(*head).or_insert_with(|| vec![*head]).push(at);
        }
        let mut leaders: BTreeMap<VertexId, VertexId> = BTreeMap::new();
        let mut groups = Vec::with_capacity(members.len());
        for members in members.into_values() {
            let members: Vec<&Candidate> = members.into_iter().map(|at| vertices[at]).collect();
            let group = group(&members);
            leaders.extend(group.members.iter().map(|member| (*member, group.leader)));
            groups.push(group);
        }
        groups.sort_unstable_by_key(|group| group.leader);
        let leader = |id| leaders.get(&id).copied().unwrap_or(id);
        let moved = |edge: &Edge| Edge { from: leader(edge.from), to: leader(edge.to), ..*edge };
        let mut edges: Vec<Edge> = edges.iter().map(moved).collect();
        Edge::unite(&mut edges);
        Contracted { groups, edges }
    }
}

fn group(members: &[&Candidate]) -> Group {
    let leader = members.iter().min_by_key(|member| (!member.leads, member.id));
    let mut semaphores: Vec<_> =
        members.iter().flat_map(|member| member.meta.semaphores.iter().copied()).collect();
    semaphores.sort_unstable();
    semaphores.dedup();
    let meta = members.first().map(|first| {
        if first.meta.semaphores == semaphores {
            Arc::clone(&first.meta)
        } else {
            Arc::new(Meta { semaphores, ..*first.meta })
        }
    });
    Group {
        leader: leader.map_or(VertexId(0), |leader| leader.id),
        members: members.iter().map(|member| member.id).collect(),
        meta: meta.unwrap_or_default(),
    }
}
