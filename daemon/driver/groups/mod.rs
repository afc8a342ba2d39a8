//! Resources that are one transaction: one vertex for the engine, each itself for everybody else (E-19).
//!
//! Each member keeps its number, its name, its record and its trouble. The engine knows only the leader's number, which stands
//! for all of them.

pub(super) mod regroup;
pub(super) mod run;
pub(super) mod split;

use crate::config::Vertex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use steadfast_engine::{Candidate, Edge, VertexId, VertexSpec, contract};
use steadfast_resources::{Grouping, Transaction};

/// Several resources as one vertex.
#[derive(Debug)]
pub(super) struct Group {
    /// Their numbers, ascending.
    pub(super) members: Vec<VertexId>,
    /// What checks and applies them, in that order.
    pub(super) transaction: Arc<dyn Transaction>,
    /// A hash over the definitions of all.
    pub(super) definition: u64,
}

/// All groups of a graph.
#[derive(Debug, Default)]
pub(super) struct Groups {
    by_leader: BTreeMap<VertexId, Group>,
    /// The leader of each member.
    leaders: HashMap<VertexId, VertexId>,
    /// Some of the graph could be grouped, whether they are or not.
    pub(super) are_possible: bool,
}

impl Groups {
    /// Contracts a graph of these vertices as the engine is to have it. Who leads in `running` goes on leading; who is apart is in none.
    pub(super) fn find<'a>(
        vertices: impl Iterator<Item = &'a Vertex>,
        declared: &mut Vec<VertexSpec>,
        edges: &mut Vec<Edge>,
        running: &Self,
        apart: &BTreeSet<VertexId>,
    ) -> Self {
        let mut groupings: BTreeMap<VertexId, Grouping> = declared
            .iter()
            .zip(vertices)
            .filter(|(_, vertex)| may_join(vertex))
            .filter_map(|(declared, vertex)| Some((declared.id, grouping(vertex)?)))
            .collect();
        let are_possible = groupings.len() > 1;
        groupings.retain(|id, _| !apart.contains(id));
        if groupings.len() < 2 {
            return Self { are_possible, ..Self::default() };
        }
        let mut keys: Vec<&str> = groupings.values().map(|it| it.key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        let number = |it: &Grouping| {
            keys.binary_search(&it.key.as_str()).ok().and_then(|at| u32::try_from(at).ok())
        };
        let candidates: Vec<Candidate> = declared
            .iter()
            .map(|vertex| Candidate {
                id: vertex.id,
                key: groupings.get(&vertex.id).and_then(number),
                meta: Arc::clone(&vertex.meta),
                leads: running.by_leader.contains_key(&vertex.id),
            })
            .collect();
        let contracted = contract(&candidates, edges);
        *edges = contracted.edges;
        let mut found = Self { are_possible, ..Self::default() };
        let mut metas = BTreeMap::new();
        for group in contracted.groups {
            found.leaders.extend(group.members.iter().map(|member| (*member, group.leader)));
            metas.insert(group.leader, group.meta);
            let parts: Vec<&Grouping> =
                group.members.iter().filter_map(|member| groupings.get(member)).collect();
            if let Some(transaction) = unite(&parts) {
                let (members, definition) = (group.members, FIRST);
                found.by_leader.insert(group.leader, Group { members, transaction, definition });
            }
        }
        for vertex in &*declared {
            if let Some(group) = found.by_leader.get_mut(&found.leader(vertex.id)) {
                group.definition = group.definition.wrapping_add(mixed(vertex));
            }
        }
        declared.retain_mut(|vertex| {
            if let Some(group) = found.by_leader.get(&vertex.id) {
                vertex.definition = group.definition;
            }
            if let Some(meta) = metas.remove(&vertex.id) {
                vertex.meta = meta;
            }
            found.leader(vertex.id) == vertex.id
        });
        found
    }

    /// The group that this one leads.
    pub(super) fn get(&self, leader: VertexId) -> Option<&Group> {
        self.by_leader.get(&leader)
    }

    /// Whether both have the same groups.
    pub(super) fn are_those_of(&self, other: &Self) -> bool {
        self.leaders == other.leaders
    }

    /// All of them, by leader.
    pub(super) fn iter(&self) -> impl Iterator<Item = (VertexId, &Group)> {
        self.by_leader.iter().map(|(leader, group)| (*leader, group))
    }

    /// The number under which the engine knows a resource.
    pub(super) fn leader(&self, id: VertexId) -> VertexId {
        self.leaders.get(&id).copied().unwrap_or(id)
    }

    /// Those for whom a number of the engine's stands.
    pub(super) fn members<'a>(&'a self, id: &'a VertexId) -> &'a [VertexId] {
        match self.by_leader.get(id) {
            Some(group) => &group.members,
            None => std::slice::from_ref(id),
        }
    }
}

/// A swap that removes one of a group changes the group for the engine, and waits for nobody of it: whom `realize` lets a swap wait
/// for has a vertex of its own. What leaves is realized no more.
fn may_join(vertex: &Vertex) -> bool {
    let is_waited_for = vertex.meta.realize && !vertex.removes;
    vertex.autogroup && vertex.recipe.is_none() && !is_waited_for
}

/// A group obeys one `rewatch`, too.
fn grouping(vertex: &Vertex) -> Option<Grouping> {
    let mut grouping = vertex.resource.grouping()?;
    if !vertex.rewatch {
        grouping.key.push_str(" without rewatch");
    }
    if vertex.removes {
        grouping.key.push_str(" that leave");
    }
    Some(grouping)
}

fn unite(parts: &[&Grouping]) -> Option<Arc<dyn Transaction>> {
    let first = parts.first()?;
    Some((first.unite)(parts.iter().map(|it| Arc::clone(&it.part)).collect()))
}

const FIRST: u64 = 0xcbf2_9ce4_8422_2325;

/// Part of a sum, so that the order of the file does not matter; it need not be the same in another process.
fn mixed(vertex: &VertexSpec) -> u64 {
    let word = vertex.definition.rotate_left(vertex.id.0 % 64) ^ u64::from(vertex.id.0);
    word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
