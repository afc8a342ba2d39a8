//! The graph of the engine. A [`Graph`] is validated when it is made, so an invalid one cannot exist.

use crate::interface::ids::{SemaphoreId, Stamp, VertexId};
use crate::interface::metaparams::Meta;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;
use std::sync::Arc;
use steadfast_traits::Traits;

/// One vertex as declared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VertexSpec {
    /// The number of the vertex. An identity has the same number in every graph.
    pub id: VertexId,
    /// A hash of the declaration without metaparams. Another hash is a changed vertex (E-17).
    pub definition: u64,
    /// The metaparams. Vertices with equal metaparams should share them.
    pub meta: Arc<Meta>,
    /// The properties of its kind.
    pub traits: Traits,
}

/// An edge: `to` waits for `from`, and with `notify` is refreshed when `from` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The vertex that runs first.
    pub from: VertexId,
    /// The vertex that depends on `from`.
    pub to: VertexId,
    /// True if a change of `from` owes `to` a refresh (E-9).
    pub notify: bool,
}

impl Edge {
    /// Sorts edges and merges duplicate pairs (their `notify` flags are OR-ed).
    pub(crate) fn unite(edges: &mut Vec<Self>) {
        edges.sort_unstable();
        edges.dedup_by(|later, kept| {
            let same = later.from == kept.from && later.to == kept.to;
            if same {
                kept.notify |= later.notify;
            }
            same
        });
    }
}

/// A valid graph: acyclic, with edges between its own vertices, and semaphores with their counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Graph {
    /// The vertices, by number.
    vertices: Vec<VertexSpec>,
    /// The edges, sorted, each pair once (notify OR-ed).
    pub(crate) edges: Vec<Edge>,
    /// The count of each semaphore, by its number.
    pub(crate) semaphores: Vec<u32>,
    /// Every vertex, parents before children.
    pub(crate) order: Vec<VertexId>,
}

/// The reason for which a graph is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphError {
    /// Two vertices have the same number.
    Duplicate(VertexId),
    /// An edge names a vertex that does not exist.
    Dangling(Edge),
    /// These vertices wait for each other, in this order, the last one for the first.
    Cycle(Vec<VertexId>),
    /// A vertex names an unknown semaphore, or the same one twice, or they are out of order.
    Semaphore(VertexId, SemaphoreId),
    /// A semaphore has the count 0.
    Count(SemaphoreId),
    /// The pace of a vertex can never start anything, or overflows.
    Pace(VertexId),
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(v) => write!(f, "{v} is declared twice"),
            Self::Dangling(e) => {
                write!(f, "edge {} -> {} names a vertex that is not there", e.from, e.to)
            }
            Self::Cycle(path) => {
                f.write_str("cycle: ")?;
                for v in path {
                    write!(f, "{v} -> ")?;
                }
                path.first().map_or(Ok(()), |v| write!(f, "{v}"))
            }
            Self::Semaphore(v, s) => write!(f, "{v} names semaphore {} wrongly", s.0),
            Self::Count(s) => write!(f, "semaphore {} has no room", s.0),
            Self::Pace(v) => write!(f, "the limit of {v} can never be met"),
        }
    }
}

impl std::error::Error for GraphError {}

impl Graph {
    /// Returns the empty graph.
    #[must_use]
    pub fn empty() -> Self {
        Self { vertices: Vec::new(), edges: Vec::new(), semaphores: Vec::new(), order: Vec::new() }
    }

    /// Builds and validates a graph. `semaphores` holds the count of each semaphore, by number.
    ///
    /// # Errors
    ///
    /// Returns the first [`GraphError`] found.
    pub fn new(
        mut vertices: Vec<VertexSpec>,
        mut edges: Vec<Edge>,
        semaphores: Vec<u32>,
    ) -> Result<Self, GraphError> {
        if let Some(at) = semaphores.iter().position(|count| *count == 0) {
            return Err(GraphError::Count(SemaphoreId(u32::try_from(at).unwrap_or(u32::MAX))));
        }
        for vertex in &vertices {
            Self::check_meta(vertex, semaphores.len())?;
        }
        vertices.sort_by_key(|vertex| vertex.id);
        if let Some(twice) = vertices.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(GraphError::Duplicate(twice[0].id));
        }
        Edge::unite(&mut edges);
        let ids: Vec<VertexId> = vertices.iter().map(|vertex| vertex.id).collect();
        let order = sorted(&ids, &edges)?;
        Ok(Self { vertices, edges, semaphores, order })
    }

    fn check_meta(vertex: &VertexSpec, semaphores: usize) -> Result<(), GraphError> {
        let mut last = None;
        for id in &vertex.meta.semaphores {
            if last >= Some(*id) || id.0 as usize >= semaphores {
                return Err(GraphError::Semaphore(vertex.id, *id));
            }
            last = Some(*id);
        }
        match vertex.meta.pace {
            Some(p) if p.period_ns == 0 || p.burst == 0 => Err(GraphError::Pace(vertex.id)),
            Some(p) if p.period_ns.checked_mul(u64::from(p.burst)).is_none_or(|n| n >= 1 << 62) => {
                Err(GraphError::Pace(vertex.id))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the number of vertices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vertices.len()
    }

    /// Returns true if the graph has no vertices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty()
    }

    /// Returns the vertices, by number.
    pub fn vertices(&self) -> impl Iterator<Item = &VertexSpec> {
        self.vertices.iter()
    }

    pub(crate) fn get(&self, id: VertexId) -> Option<&VertexSpec> {
        let at = self.vertices.binary_search_by_key(&id, |vertex| vertex.id).ok()?;
        self.vertices.get(at)
    }

    /// Returns the edges, sorted.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns every vertex, parents before children.
    #[must_use]
    pub fn order(&self) -> &[VertexId] {
        &self.order
    }
}

/// Sorts topologically (Kahn's algorithm, smallest number first). Unreachable vertices contain a cycle. `ids` must be
/// ascending, and edges sorted.
fn sorted(ids: &[VertexId], edges: &[Edge]) -> Result<Vec<VertexId>, GraphError> {
    let mut places = vec![None; ids.last().map_or(0, |id| id.0 as usize + 1)];
    for (at, id) in ids.iter().enumerate() {
        places[id.0 as usize] = Some(at);
    }
    let place = |id: VertexId| places.get(id.0 as usize).copied().flatten();
    // For each vertex: the number of missing parents, and the range of its own edges.
    let mut missing = vec![0_usize; ids.len()];
    let mut ends = vec![0_usize; ids.len() + 1];
    for edge in edges {
        let (Some(from), Some(to)) = (place(edge.from), place(edge.to)) else {
            return Err(GraphError::Dangling(*edge));
        };
        ends[from + 1] += 1;
        missing[to] += 1;
    }
    for at in 0..ids.len() {
        ends[at + 1] += ends[at];
    }
    // Most vertices have no parent and are already in order; only vertices that become free are sorted in.
    let roots: Vec<usize> = (0..ids.len()).filter(|at| missing[*at] == 0).collect();
    let mut roots = roots.into_iter().peekable();
    let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    let mut order = Vec::with_capacity(ids.len());
    loop {
        let first = free.peek().map(|Reverse(at)| *at);
        let root = roots.next_if(|root| first.is_none_or(|first| *root < first));
        let Some(at) = root.or_else(|| free.pop().map(|Reverse(at)| at)) else { break };
        order.push(ids[at]);
        for to in edges[ends[at]..ends[at + 1]].iter().filter_map(|edge| place(edge.to)) {
            missing[to] -= 1;
            if missing[to] == 0 {
                free.push(Reverse(to));
            }
        }
    }
    if order.len() == ids.len() {
        return Ok(order);
    }
    let left = ids.iter().zip(missing).filter(|(_, n)| *n > 0).map(|(id, _)| *id).collect();
    Err(GraphError::Cycle(cycle(&left, edges)))
}

/// Returns one cycle among the vertices that still miss a parent. Each of them has such a parent, so the path upwards
/// must repeat.
fn cycle(left: &BTreeSet<VertexId>, edges: &[Edge]) -> Vec<VertexId> {
    let mut up = BTreeMap::new();
    for edge in edges.iter().filter(|e| left.contains(&e.from) && left.contains(&e.to)) {
        up.entry(edge.to).or_insert(edge.from);
    }
    let mut path = Vec::new();
    let mut seen = BTreeMap::new();
    let mut at = left.first().copied();
    while let Some(id) = at {
        if let Some(start) = seen.insert(id, path.len()) {
            let mut found: Vec<VertexId> = path.split_off(start);
            found.reverse();
            return found;
        }
        path.push(id);
        at = up.get(&id).copied();
    }
    path
}

/// The stored state of a vertex that a swap adds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RestoredState {
    /// The stamp of a refresh still owed to the vertex, and the vertex that caused it, if known.
    pub owed: Option<(Stamp, Option<VertexId>)>,
    /// A run of the vertex was cut off between its begin and its end.
    pub interrupted: bool,
    /// The run that was cut off did the refreshes owed up to this stamp; [`Stamp::NEVER`] if it did none.
    pub pays: Stamp,
    /// The definition of the vertex's last good run.
    pub done: Option<u64>,
}
