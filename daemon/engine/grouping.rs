//! Automatic groups (E-19): vertices that can be one transaction become one vertex, before the engine sees the graph.
//!
//! A class contains all vertices with the same key and the same metaparams (semaphores aside, which are united). The
//! members of a class are divided into layers: the layer of a member is the largest number of members of its class on
//! one path to it. No path joins two members of one layer, so each layer becomes one vertex. Every member of a layer
//! has an ancestor in the layer before: a path joins any two groups of a class, so no groups can be merged further, and
//! the number of transactions of that class is minimal. Classes are processed one after the other, each in the graph as
//! contracted so far.

use crate::interface::graph::Edge;
use crate::interface::ids::VertexId;
use crate::interface::metaparams::Meta;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A vertex that may be grouped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The vertex.
    pub id: VertexId,
    /// The number of its transaction class; none if the vertex is always a transaction of its own.
    pub key: Option<u32>,
    /// The metaparams of the vertex.
    pub meta: Arc<Meta>,
    /// The vertex has led a group so far. Such a vertex is preferred as leader, so that the state of the group in the
    /// engine is preserved.
    pub leads: bool,
}

/// Several vertices that became one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// The member that gives the group its number.
    pub leader: VertexId,
    /// All members, at least two, ascending.
    pub members: Vec<VertexId>,
    /// The shared metaparams, with the semaphores of all members.
    pub meta: Arc<Meta>,
}

/// A graph in which each group is a single vertex.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contracted {
    /// The groups, by leader. Vertices outside of the groups are unchanged.
    pub groups: Vec<Group>,
    /// The edges between the remaining vertices, sorted, each pair once (notify OR-ed).
    pub edges: Vec<Edge>,
}

/// Contracts an acyclic graph into groups. Vertices on a cycle, and edges that name an unknown vertex, stay as they
/// are.
///
/// The result does not depend on the order of the input, and the membership of groups does not depend on the numbers of
/// vertices.
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

/// Returns the members of each class with at least two of them, by position.
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
    /// For each vertex, the first vertex of its group.
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

    /// Returns for each vertex the largest number of members on one path to it; none for vertices that a cycle excludes
    /// from the order.
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
