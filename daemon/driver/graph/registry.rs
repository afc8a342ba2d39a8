//! The graph registry: the identity, the vertex number and the resource of each vertex.

use super::assign_ids::IdAssignment;
use super::load::LoadStatus;
use super::to_engine::renumber;
use super::vertices::VertexTable;
use crate::api::GraphDiff;
use crate::config::{Gate, LoadedGraph, Vertex, Window};
use crate::driver::groups::Groups;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{
    Edge, Graph, GraphError, RestoredState, SemaphoreId, Stamp, VertexId, VertexSpec, WindowId,
};
use steadfast_resources::KindSet;
use steadfast_resources::{RunPolicy, WatchSource};

/// The registry of the running graph, and of an accepted graph that waits to run.
#[derive(Debug, Default)]
pub(in crate::driver) struct GraphRegistry {
    /// The known kinds.
    pub(in crate::driver) kinds: KindSet,
    /// The vertices of the running graph.
    pub(in crate::driver) rows: VertexTable,
    /// Vertices that have left the running graph; the engine still knows them.
    removed: BTreeMap<VertexId, Vertex>,
    /// The vertex number of each identity.
    pub(in crate::driver) numbers: HashMap<Arc<str>, VertexId>,
    /// The number of vertex numbers ever assigned.
    pub(in crate::driver) given: u32,
    free: Vec<VertexId>,
    semaphores: HashMap<String, SemaphoreId>,
    pub(in crate::driver) counts: Vec<u32>,
    /// Windows by number; a window keeps its number when no vertex uses it any more.
    windows: Vec<(String, Window)>,
    /// The accepted graph that waits to run.
    pending: Option<PendingGraph>,
    /// The transaction groups of the running graph.
    pub(in crate::driver) groups: Groups,
    /// The transaction groups that replace the current ones when the engine has accepted them.
    pub(in crate::driver) regrouped: Option<Groups>,
    /// Edges between resources of the running graph; empty if no groups are possible.
    pub(in crate::driver) edges: Vec<Edge>,
    /// Resources that are temporarily split from their groups.
    pub(in crate::driver) apart: BTreeSet<VertexId>,
    /// The name of the running graph.
    name: String,
    /// The files of the running graph.
    files: Vec<PathBuf>,
    /// Removed vertices; only the engine still knows them.
    removed_ids: BTreeSet<VertexId>,
    /// Replaced graphs, until their memory is freed.
    replaced: Vec<OldGraph>,
    /// The result of the last load, and the graph that waits to run.
    pub(in crate::driver) loads: LoadStatus,
}

/// An accepted graph that waits to run.
#[derive(Debug)]
struct PendingGraph {
    rows: VertexTable,
    groups: Groups,
    edges: Vec<Edge>,
    change: GraphDiff,
    /// Vertices that are new or whose declaration differs in a recorded property.
    differs: Vec<VertexId>,
    /// Vertex numbers that no running vertex has.
    alone: Vec<VertexId>,
    /// Vertex numbers that run under another name.
    renamed: Vec<VertexId>,
    /// The loaded graph without its vertices.
    loaded: LoadedGraph,
}

/// A replaced graph. Freeing a hundred thousand resources takes time, so another thread does it.
pub(in crate::driver) type OldGraph = (VertexTable, LoadedGraph);

/// The changes from the replaced graph to the graph that runs from now on.
#[derive(Debug, Default)]
pub(in crate::driver) struct SwapResult {
    /// Group members that no graph has any more; the engine does not know them.
    pub(in crate::driver) dropped: Vec<VertexId>,
    /// The difference between the two graphs.
    pub(in crate::driver) change: GraphDiff,
    /// Vertices that are new or whose declaration differs in a recorded property.
    pub(in crate::driver) differs: Vec<VertexId>,
    /// Identities that no vertex has any more.
    pub(in crate::driver) gone: Vec<Arc<str>>,
}

impl GraphRegistry {
    /// Creates the registry of the empty graph.
    pub(in crate::driver) fn new(kinds: KindSet) -> Self {
        Self { kinds, ..Self::default() }
    }

    /// Returns a vertex of the running graph, or one that has left the graph and is still in the engine.
    #[must_use]
    pub(in crate::driver) fn get(&self, id: VertexId) -> Option<&Vertex> {
        self.rows.get(id).or_else(|| self.removed.get(&id))
    }

    /// Returns a vertex of the waiting graph.
    #[must_use]
    pub(in crate::driver) fn waiting(&self, id: VertexId) -> Option<&Vertex> {
        self.pending.as_ref()?.rows.get(id)
    }

    /// Returns the name of the waiting graph, and its difference from the running one.
    pub(in crate::driver) fn change(&self) -> Option<(&str, &GraphDiff)> {
        self.pending.as_ref().map(|pending| (pending.loaded.name.as_str(), &pending.change))
    }

    /// Lists the vertices of the waiting graph that receive values.
    pub(in crate::driver) fn waiting_receivers(&self) -> impl Iterator<Item = (VertexId, &Vertex)> {
        let pending = self.pending.iter();
        pending.flat_map(|pending| {
            let receivers = pending.rows.receivers().iter();
            receivers.filter_map(|id| Some((*id, pending.rows.get(*id)?)))
        })
    }

    /// Lists the running vertices that receive values, in ascending order.
    pub(in crate::driver) fn receivers(&self) -> Vec<VertexId> {
        let left = self.removed.iter().filter(|(_, vertex)| vertex.recipe.is_some());
        let mut all: Vec<VertexId> =
            left.map(|(id, _)| *id).chain(self.rows.receivers().iter().copied()).collect();
        all.sort_unstable();
        all
    }

    /// Returns the identity of a vertex; `?` if the vertex is unknown.
    #[must_use]
    pub(in crate::driver) fn name(&self, id: VertexId) -> &str {
        self.get(id).map_or("?", |entry| &entry.identity)
    }

    /// Returns the file and the line where a resource of the running graph is declared.
    #[must_use]
    pub(in crate::driver) fn declared_at(&self, id: VertexId) -> Option<(String, u32)> {
        let (file, line) = self.rows.get(id).filter(|vertex| !vertex.removes)?.place;
        Some((self.files.get(file)?.display().to_string(), line))
    }

    /// Returns the name of the running graph.
    #[must_use]
    pub(in crate::driver) fn graph(&self) -> &str {
        &self.name
    }

    /// Returns the vertex number of an identity.
    #[must_use]
    pub(in crate::driver) fn number(&self, identity: &str) -> Option<VertexId> {
        self.numbers.get(identity).copied()
    }

    /// Returns the transaction groups of the running graph.
    #[must_use]
    pub(in crate::driver) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Returns the number under which the engine will know this resource in the waiting graph: that of its group's
    /// leader.
    #[must_use]
    pub(in crate::driver) fn waiting_leader(&self, id: VertexId) -> VertexId {
        let waiting = self.pending.as_ref().map(|pending| &pending.groups);
        waiting.or(self.regrouped.as_ref()).map_or(id, |groups| groups.leader(id))
    }

    /// Returns the watch sources of a vertex; for a group, those of all its members.
    #[must_use]
    pub(in crate::driver) fn sources(&self, id: VertexId) -> Vec<WatchSource> {
        let mut sources = Vec::new();
        let members = self.groups.members(&id).iter().filter_map(|id| self.get(*id));
        // A removal runs once: objects that later appear at its path are not ours.
        for entry in members.filter(|entry| !entry.removes) {
            let alone = sources.is_empty();
            for source in entry.resource.footprint().watch {
                if alone || !sources.contains(&source) {
                    sources.push(source);
                }
            }
        }
        sources
    }

    /// Lists the vertices of the running graph that the engine knows; a group is one vertex with the number of its
    /// leader.
    pub(in crate::driver) fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.ids().filter(|id| self.groups.leader(*id) == *id)
    }

    /// Lists all resources of the running graph, without the removed ones.
    pub(in crate::driver) fn ids(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.numbers_in_use().filter(|id| !self.removed_ids.contains(id))
    }

    fn numbers_in_use(&self) -> impl Iterator<Item = VertexId> + '_ {
        let all = (0..self.given).map(VertexId);
        all.filter(|id| self.rows.has(*id) || self.removed.contains_key(id))
    }

    /// Marks a vertex as removed.
    pub(in crate::driver) fn mark_removed(&mut self, id: VertexId) {
        self.removed_ids.insert(id);
    }

    /// Takes back the mark of a removed vertex, whose object an earlier step of a plan may bring back.
    pub(in crate::driver) fn unmark_removed(&mut self, id: VertexId) {
        self.removed_ids.remove(&id);
    }

    /// Returns true if the vertex is marked as removed.
    pub(in crate::driver) fn is_removed(&self, id: VertexId) -> bool {
        self.removed_ids.contains(&id)
    }

    /// Lists the vertices that are marked as removed.
    pub(in crate::driver) fn removed_vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.removed_ids.iter().copied()
    }

    /// Assigns numbers to the vertices of a new graph and stores the graph as pending. `found` holds the numbers of its
    /// first vertices. [`GraphRegistry::install`] follows when the engine has accepted the graph.
    pub(in crate::driver) fn prepare(
        &mut self,
        mut loaded: LoadedGraph,
        mut found: Vec<IdAssignment>,
    ) -> Result<Graph, GraphError> {
        found.extend(self.find(loaded.vertices.get(found.len()..).unwrap_or_default(), &[]));
        let (mut alone, mut renamed) = (Vec::new(), Vec::new());
        let number = |found: IdAssignment| match found {
            IdAssignment::Known(id) => id,
            IdAssignment::Renamed(id) => {
                renamed.push(id);
                id
            }
            IdAssignment::New => {
                let id = self.new_number();
                alone.push(id);
                id
            }
        };
        let ids: Vec<VertexId> = found.into_iter().map(number).collect();
        // The pending graph stays until the new one is valid, both in the engine and here.
        let (graph, groups, edges) = match self.for_the_engine(&mut loaded, &ids) {
            Ok(found) => found,
            Err(error) => {
                self.free.extend(alone);
                self.replaced.push((VertexTable::default(), loaded));
                return Err(error);
            }
        };
        self.drop_pending();
        self.regrouped = None;
        let rows = VertexTable::new(std::mem::take(&mut loaded.vertices), ids, self.given as usize);
        for id in alone.iter().chain(&renamed) {
            if let Some(vertex) = rows.get(*id) {
                self.numbers.insert(Arc::clone(&vertex.identity), *id);
            }
        }
        renamed.sort_unstable();
        let differs = self.rows.differences(&rows, &renamed);
        let change = GraphDiff::between(self, &rows, (&differs, &loaded));
        let new = PendingGraph { rows, groups, edges, change, differs, alone, renamed, loaded };
        self.pending = Some(new);
        Ok(graph)
    }

    fn new_number(&mut self) -> VertexId {
        self.free.pop().unwrap_or_else(|| {
            self.given += 1;
            VertexId(self.given - 1)
        })
    }

    /// Builds the engine's graph. The semaphores and windows of `loaded` get the numbers of this registry.
    fn for_the_engine(
        &mut self,
        loaded: &mut LoadedGraph,
        ids: &[VertexId],
    ) -> Result<(Graph, Groups, Vec<Edge>), GraphError> {
        let semaphores: Vec<SemaphoreId> =
            loaded.semaphores.iter().map(|(name, count)| self.semaphore(name, *count)).collect();
        let windows: Vec<WindowId> =
            loaded.windows.iter().map(|(text, window)| self.window(text, window)).collect();
        let mut metas = HashMap::new();
        let mut declared = Vec::with_capacity(loaded.vertices.len());
        for (vertex, id) in loaded.vertices.iter_mut().zip(ids) {
            if !vertex.meta.semaphores.is_empty() || vertex.meta.window.is_some() {
                // The map holds the old metadata: its address must not be reused.
                let (_, meta) = metas.entry(Arc::as_ptr(&vertex.meta)).or_insert_with(|| {
                    let meta = renumber(&vertex.meta, &semaphores, &windows);
                    (Arc::clone(&vertex.meta), meta)
                });
                vertex.meta = Arc::clone(meta);
            }
            declared.push(declare(*id, vertex));
        }
        let links = loaded.edges.iter().map(|link| Edge {
            from: declared[link.from].id,
            to: declared[link.to].id,
            notify: link.notify,
        });
        let all: Vec<Edge> = links.collect();
        let mut edges = all.clone();
        let vertices = loaded.vertices.iter();
        let groups = Groups::find(vertices, &mut declared, &mut edges, &self.groups, &self.apart);
        let graph = Graph::new(declared, edges, self.counts.clone())?;
        let all = if groups.are_possible { all } else { Vec::new() };
        Ok((graph, groups, all))
    }

    fn semaphore(&mut self, name: &str, count: u32) -> SemaphoreId {
        if let Some(id) = self.semaphores.get(name) {
            self.counts[id.0 as usize] = count;
            return *id;
        }
        let id = SemaphoreId(u32::try_from(self.counts.len()).unwrap_or(u32::MAX));
        self.counts.push(count);
        self.semaphores.insert(name.to_owned(), id);
        id
    }

    /// Returns the name of a semaphore.
    pub(in crate::driver) fn semaphore_name(&self, id: SemaphoreId) -> Option<&str> {
        let found = self.semaphores.iter().find(|(_, number)| **number == id);
        found.map(|(name, _)| name.as_str())
    }

    fn window(&mut self, text: &str, window: &Window) -> WindowId {
        let known = self.windows.iter().position(|(_, other)| other == window);
        let number = known.unwrap_or_else(|| {
            self.windows.push((text.to_owned(), window.clone()));
            self.windows.len() - 1
        });
        WindowId(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Returns every window that any graph of this session has named, by number.
    pub(in crate::driver) fn windows(&self) -> &[(String, Window)] {
        &self.windows
    }

    /// Returns true if any graph of this session has named a permit of the world.
    pub(in crate::driver) fn has_gates(&self) -> bool {
        self.windows.iter().any(|(_, window)| window.gate().is_some())
    }

    /// Returns the permits of the world that a window needs.
    pub(in crate::driver) fn gate(&self, window: WindowId) -> Option<&Arc<Gate>> {
        self.windows.get(window.0 as usize)?.1.gate()
    }

    /// Returns the text of the window in which a resource of the running graph may be changed.
    pub(in crate::driver) fn window_of(&self, vertex: &Vertex) -> Option<&str> {
        let window = self.windows.get(vertex.meta.window?.0 as usize);
        window.map(|(text, _)| text.as_str())
    }

    /// Makes the waiting graph the running one.
    pub(in crate::driver) fn install(&mut self) -> SwapResult {
        let Some(mut pending) = self.pending.take() else { return SwapResult::default() };
        self.name = std::mem::take(&mut pending.loaded.name);
        self.files = pending.loaded.files.clone();
        let mut gone = Vec::new();
        for id in &pending.renamed {
            if let (Some(former), Some(new)) = (self.get(*id), pending.rows.get(*id))
                && former.identity != new.identity
            {
                let former = Arc::clone(&former.identity);
                self.numbers.remove(&former);
                gone.push(former);
            }
        }
        let rows = std::mem::replace(&mut self.rows, pending.rows);
        let groups = std::mem::replace(&mut self.groups, pending.groups);
        self.edges = pending.edges;
        self.removed.retain(|id, _| !self.rows.has(*id));
        self.removed_ids.retain(|id| !self.rows.has(*id));
        let mut dropped = Vec::new();
        for id in rows.ids().filter(|id| !self.rows.has(*id)) {
            if let Some(vertex) = rows.get(id) {
                gone.push(Arc::clone(&vertex.identity));
                self.removed.insert(id, vertex.clone());
            }
            if groups.leader(id) != id {
                dropped.push(id);
            }
        }
        self.replaced.push((rows, pending.loaded));
        SwapResult { dropped, change: pending.change, differs: pending.differs, gone }
    }

    /// Takes the replaced graphs, so that the caller can free them.
    pub(in crate::driver) fn take_replaced(&mut self) -> Vec<OldGraph> {
        std::mem::take(&mut self.replaced)
    }

    /// Drops the waiting graph and frees the vertex numbers that only it had.
    pub(in crate::driver) fn drop_pending(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        for id in pending.renamed.iter().chain(&pending.alone) {
            if let Some(vertex) = pending.rows.get(*id) {
                self.numbers.remove(&vertex.identity);
            }
        }
        self.free.extend(pending.alone);
        self.replaced.push((pending.rows, pending.loaded));
    }

    /// Forgets a vertex that has left the graph; returns its identity.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) -> Option<Arc<str>> {
        let vertex = self.removed.remove(&id)?;
        self.removed_ids.remove(&id);
        let waiting = self.pending.as_mut().filter(|pending| pending.rows.has(id));
        let is_called_so = |other: &Vertex| other.identity == vertex.identity;
        let keeps_name = waiting.as_ref().and_then(|it| it.rows.get(id)).is_some_and(is_called_so);
        match waiting {
            Some(pending) => pending.alone.push(id),
            None => self.free.push(id),
        }
        if !keeps_name {
            self.numbers.remove(&vertex.identity);
        }
        Some(vertex.identity)
    }

    /// Translates stored records into the engine's restored state for the vertices of the waiting graph.
    #[must_use]
    pub(in crate::driver) fn recall(
        &self,
        kept: &BTreeMap<String, crate::store::ResourceRecord>,
    ) -> BTreeMap<VertexId, RestoredState> {
        let by_name = |name: &str| self.number(name);
        let each = kept
            .iter()
            .filter_map(|(identity, r)| {
                let id = by_name(identity)?;
                // A refresh owed to a removed resource is dropped.
                let entry = self.waiting(id).filter(|entry| !entry.removes)?;
                let owed = r.owed.as_ref().map(|(stamp, cause)| (Stamp(*stamp), by_name(cause)));
                // An interrupted run counts only under the same definition, unless the resource declares a state.
                let interrupted = r.interrupted.is_some_and(|definition| {
                    entry.resource.traits().repeat == RunPolicy::State
                        || definition == entry.definition
                });
                let pays = r.cut_pays.map_or(Stamp::NEVER, Stamp);
                Some((id, RestoredState { owed, interrupted, pays, done: r.done }))
            })
            .collect();
        self.pending.as_ref().map(|pending| pending.recall(each)).unwrap_or_default()
    }
}

impl PendingGraph {
    /// Combines the restored state of group members into that of their group: the latest refresh owed, and interrupted
    /// if any member was.
    fn recall(
        &self,
        mut each: BTreeMap<VertexId, RestoredState>,
    ) -> BTreeMap<VertexId, RestoredState> {
        for (leader, group) in self.groups.iter() {
            let mut whole =
                RestoredState { done: Some(group.definition), ..RestoredState::default() };
            for member in &group.members {
                let recall = each.remove(member).unwrap_or_default();
                whole.owed = whole.owed.max(recall.owed);
                whole.interrupted |= recall.interrupted;
                whole.pays = whole.pays.max(recall.pays);
                if recall.done != self.rows.get(*member).map(|vertex| vertex.definition) {
                    whole.done = None;
                }
            }
            each.insert(leader, whole);
        }
        each
    }
}

/// Returns the engine's specification of a vertex.
pub(in crate::driver) fn declare(id: VertexId, vertex: &Vertex) -> VertexSpec {
    let (definition, meta) = (vertex.definition, Arc::clone(&vertex.meta));
    let mut traits = vertex.resource.traits();
    traits.failure_blocks |= vertex.failure_blocks;
    VertexSpec { id, definition, meta, traits }
}

impl Vertex {
    /// Returns the deadline of one run.
    pub(in crate::driver) fn timeout(&self) -> Option<Duration> {
        self.meta.timeout.or_else(|| self.resource.traits().timeout)
    }
}
