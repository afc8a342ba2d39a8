//! Transaction groups: resources that one transaction applies; the engine sees one vertex, all others see each resource
//! (E-19).
//!
//! Purpose: each member keeps its number, identity, records and failures; the engine knows only the number of the
//! leader. Invariant: a group never mixes resources whose kinds or metaparameters do not allow it. Reading order: this
//! file (the groups of a graph), `run.rs` (one run for all members), `split.rs` (members that run alone for a while),
//! `regroup.rs` (new groups for a running graph).

pub(super) mod regroup;
pub(super) mod run;
pub(super) mod split;

use crate::config::Vertex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use steadfast_engine::{Candidate, Edge, VertexId, VertexSpec, contract};
use steadfast_resources::{Grouping, Transaction};

/// A group of resources that the engine sees as one vertex.
#[derive(Debug)]
pub(super) struct Group {
    /// The vertex numbers of the members in ascending order.
    pub(super) members: Vec<VertexId>,
    /// The transaction that checks and applies the members, in that order.
    pub(super) transaction: Arc<dyn Transaction>,
    /// A hash of the definitions of all members.
    pub(super) definition: u64,
}

/// All groups of a graph.
#[derive(Debug, Default)]
pub(super) struct Groups {
    by_leader: BTreeMap<VertexId, Group>,
    /// The leader of each member.
    leaders: HashMap<VertexId, VertexId>,
    /// True if some resources of the graph could form a group, even if they do not now.
    pub(super) are_possible: bool,
}

impl Groups {
    /// Finds the groups and contracts the graph for the engine. Leaders in `running` stay leaders; resources in `apart`
    /// join no group.
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

    /// Returns the group with this leader.
    pub(super) fn get(&self, leader: VertexId) -> Option<&Group> {
        self.by_leader.get(&leader)
    }

    /// Returns true if both have the same groups.
    pub(super) fn are_those_of(&self, other: &Self) -> bool {
        self.leaders == other.leaders
    }

    /// Lists all groups by leader.
    pub(super) fn iter(&self) -> impl Iterator<Item = (VertexId, &Group)> {
        self.by_leader.iter().map(|(leader, group)| (*leader, group))
    }

    /// Returns the number under which the engine knows a resource.
    pub(super) fn leader(&self, id: VertexId) -> VertexId {
        self.leaders.get(&id).copied().unwrap_or(id)
    }

    /// Returns the members behind an engine vertex; a single resource is its own member.
    pub(super) fn members<'a>(&'a self, id: &'a VertexId) -> &'a [VertexId] {
        match self.by_leader.get(id) {
            Some(group) => &group.members,
            None => std::slice::from_ref(id),
        }
    }
}

/// Returns true if a vertex may join a group. A swap must wait for a vertex with `realize`, which needs its own engine
/// vertex; a removal is never realized.
fn may_join(vertex: &Vertex) -> bool {
    let is_waited_for = vertex.meta.realize && !vertex.removes;
    vertex.autogroup && vertex.recipe.is_none() && !is_waited_for
}

/// Returns the grouping of a vertex; members of a group share one `rewatch` setting.
fn grouping(vertex: &Vertex) -> Option<Grouping> {
    let mut grouping = vertex.resource.footprint().grouping?;
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

/// Returns the summand of a vertex in the hash, so that the order in the file does not matter. The value may differ
/// between processes.
fn mixed(vertex: &VertexSpec) -> u64 {
    let word = vertex.definition.rotate_left(vertex.id.0 % 64) ^ u64::from(vertex.id.0);
    word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
