//! Names and numbers: which identity has which number in the engine, and which resource stands behind it.

use super::assign_ids::IdAssignment;
use super::diff::GraphDiff;
use super::to_engine::{nature_for_engine, renumber};
use super::vertices::VertexTable;
use crate::config::{LoadedGraph, Vertex, Window};
use crate::driver::groups::Groups;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{
    Edge, Graph, GraphError, RestoredState, SemaphoreId, Stamp, VertexId, VertexSpec, WindowId,
};
use steadfast_resources::{RunPolicy, WatchSource};

/// The table of all that runs, and of a graph that waits to run.
#[derive(Debug, Default)]
pub(in crate::driver) struct GraphRegistry {
    /// What runs.
    pub(in crate::driver) rows: VertexTable,
    /// What has left the graph that runs, and is there for the engine still.
    removed: BTreeMap<VertexId, Vertex>,
    pub(in crate::driver) numbers: HashMap<Arc<str>, VertexId>,
    /// How many numbers were ever given.
    pub(in crate::driver) given: u32,
    free: Vec<VertexId>,
    semaphores: HashMap<String, SemaphoreId>,
    pub(in crate::driver) counts: Vec<u32>,
    /// Windows by number; one that is used no more keeps its own.
    windows: Vec<(String, Window)>,
    /// The graph that waits.
    pending: Option<PendingGraph>,
    /// Which of the running graph are one transaction.
    pub(in crate::driver) groups: Groups,
    /// The same as it will be when the engine has taken it.
    pub(in crate::driver) regrouped: Option<Groups>,
    /// Its edges between resources, where some of them can be grouped.
    pub(in crate::driver) edges: Vec<Edge>,
    /// Who is in no group for now.
    pub(in crate::driver) apart: BTreeSet<VertexId>,
    /// The name of the running graph.
    name: String,
    /// What was removed, and is there no more but for the engine.
    buried: BTreeSet<VertexId>,
    /// Of graphs that were replaced, until somebody drops it.
    replaced: Vec<OldGraph>,
}

/// A graph that waits to run.
#[derive(Debug)]
struct PendingGraph {
    rows: VertexTable,
    groups: Groups,
    edges: Vec<Edge>,
    change: GraphDiff,
    /// Who is new, or said otherwise in anything that is kept of it.
    differs: Vec<VertexId>,
    /// Numbers that nobody has who runs.
    alone: Vec<VertexId>,
    /// Numbers of those who run under another name.
    renamed: Vec<VertexId>,
    /// All that was loaded besides its vertices.
    loaded: LoadedGraph,
}

/// What is left of a graph that was replaced: to free a hundred thousand resources takes a while.
pub(in crate::driver) type OldGraph = (VertexTable, LoadedGraph);

/// What a graph that runs from now on means for the one before.
#[derive(Debug, Default)]
pub(in crate::driver) struct SwapResult {
    /// Members of groups that are in no graph any more; the engine does not know of them.
    pub(in crate::driver) dropped: Vec<VertexId>,
    /// What differs.
    pub(in crate::driver) change: GraphDiff,
    /// Who is new, or said otherwise in anything that is kept of it.
    pub(in crate::driver) differs: Vec<VertexId>,
    /// Under which names nobody runs any more.
    pub(in crate::driver) gone: Vec<Arc<str>>,
}

impl GraphRegistry {
    /// What stands behind a vertex of the running graph.
    #[must_use]
    pub(in crate::driver) fn get(&self, id: VertexId) -> Option<&Vertex> {
        self.rows.get(id).or_else(|| self.removed.get(&id))
    }

    /// What stands behind a vertex of the graph that waits.
    #[must_use]
    pub(in crate::driver) fn waiting(&self, id: VertexId) -> Option<&Vertex> {
        self.pending.as_ref()?.rows.get(id)
    }

    /// The name of the graph that waits, and what it means for the one that runs.
    pub(in crate::driver) fn change(&self) -> Option<(&str, &GraphDiff)> {
        self.pending.as_ref().map(|pending| (pending.loaded.name.as_str(), &pending.change))
    }

    /// Those of the graph that waits who receive anything.
    pub(in crate::driver) fn waiting_receivers(&self) -> impl Iterator<Item = (VertexId, &Vertex)> {
        let pending = self.pending.iter();
        pending.flat_map(|pending| {
            let receivers = pending.rows.receivers().iter();
            receivers.filter_map(|id| Some((*id, pending.rows.get(*id)?)))
        })
    }

    /// Those who run and receive anything; ascending.
    pub(in crate::driver) fn receivers(&self) -> Vec<VertexId> {
        let left = self.removed.iter().filter(|(_, vertex)| vertex.recipe.is_some());
        let mut all: Vec<VertexId> =
            left.map(|(id, _)| *id).chain(self.rows.receivers().iter().copied()).collect();
        all.sort_unstable();
        all
    }

    /// The identity of a vertex.
    #[must_use]
    pub(in crate::driver) fn name(&self, id: VertexId) -> &str {
        self.get(id).map_or("?", |entry| &entry.identity)
    }

    /// The name of the running graph.
    #[must_use]
    pub(in crate::driver) fn graph(&self) -> &str {
        &self.name
    }

    /// The number of an identity, if it has one.
    #[must_use]
    pub(in crate::driver) fn number(&self, identity: &str) -> Option<VertexId> {
        self.numbers.get(identity).copied()
    }

    /// Which of the running graph are one transaction.
    #[must_use]
    pub(in crate::driver) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Under which number the engine would know this resource in the graph that waits.
    #[must_use]
    pub(in crate::driver) fn waiting_leader(&self, id: VertexId) -> VertexId {
        let waiting = self.pending.as_ref().map(|pending| &pending.groups);
        waiting.or(self.regrouped.as_ref()).map_or(id, |groups| groups.leader(id))
    }

    /// Where the events of a vertex come from: for a group, those of all its members.
    #[must_use]
    pub(in crate::driver) fn sources(&self, id: VertexId) -> Vec<WatchSource> {
        let mut sources = Vec::new();
        let members = self.groups.members(&id).iter().filter_map(|id| self.get(*id));
        // What is removed is removed once: what comes to that place later is not ours.
        for entry in members.filter(|entry| !entry.removes) {
            let alone = sources.is_empty();
            for source in entry.resource.watch() {
                if alone || !sources.contains(&source) {
                    sources.push(source);
                }
            }
        }
        sources
    }

    /// All vertices of the running graph that the engine knows: a group is one, under the number of its leader.
    pub(in crate::driver) fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.ids().filter(|id| self.groups.leader(*id) == *id)
    }

    /// All resources of the running graph.
    pub(in crate::driver) fn ids(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.numbers_in_use().filter(|id| !self.buried.contains(id))
    }

    fn numbers_in_use(&self) -> impl Iterator<Item = VertexId> + '_ {
        let all = (0..self.given).map(VertexId);
        all.filter(|id| self.rows.has(*id) || self.removed.contains_key(id))
    }

    /// What this one was to remove is gone.
    pub(in crate::driver) fn mark_removed(&mut self, id: VertexId) {
        self.buried.insert(id);
    }

    /// It is there, or will be, as it turns out.
    pub(in crate::driver) fn unmark_removed(&mut self, id: VertexId) {
        self.buried.remove(&id);
    }

    /// Whether it was removed.
    pub(in crate::driver) fn is_removed(&self, id: VertexId) -> bool {
        self.buried.contains(&id)
    }

    /// All that were.
    pub(in crate::driver) fn buried(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.buried.iter().copied()
    }

    /// Gives numbers to a new graph, of which the first have been looked for, and makes it ready; [`GraphRegistry::install`] follows when the
    /// engine has taken it.
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
        // Until this one can be taken, the engine has the one that waits, and so has this table.
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
        let change = GraphDiff::between(self, &rows, &differs);
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

    /// What the engine is to know of a graph. Semaphores and windows have the numbers of this table from now on.
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
                // The one before is kept: its address must be nobody else's.
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

    /// How a semaphore is called.
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

    /// Every window that any graph of this daemon has named, by number.
    pub(in crate::driver) fn windows(&self) -> &[(String, Window)] {
        &self.windows
    }

    /// How the times are written in which a resource of the running graph may be changed.
    pub(in crate::driver) fn window_of(&self, vertex: &Vertex) -> Option<&str> {
        let window = self.windows.get(vertex.meta.window?.0 as usize);
        window.map(|(text, _)| text.as_str())
    }

    /// The graph that waits runs from now on.
    pub(in crate::driver) fn install(&mut self) -> SwapResult {
        let Some(mut pending) = self.pending.take() else { return SwapResult::default() };
        self.name = std::mem::take(&mut pending.loaded.name);
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
        self.buried.retain(|id| !self.rows.has(*id));
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

    /// What nobody needs any more.
    pub(in crate::driver) fn take_replaced(&mut self) -> Vec<OldGraph> {
        std::mem::take(&mut self.replaced)
    }

    /// The graph that waited will not run: numbers that only it had are free again.
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

    /// A vertex has left the graph.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) -> Option<Arc<str>> {
        let vertex = self.removed.remove(&id)?;
        self.buried.remove(&id);
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

    /// What the store remembers, by number, for those that wait to run.
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
                // What its resource was owed matters no more.
                let entry = self.waiting(id).filter(|entry| !entry.removes)?;
                let owed = r.owed.as_ref().map(|(stamp, cause)| (Stamp(*stamp), by_name(cause)));
                // A deed that was cut off under another definition is another deed now.
                let interrupted = r.interrupted.is_some_and(|definition| {
                    entry.resource.nature().repeat == RunPolicy::State
                        || definition == entry.definition
                });
                Some((id, RestoredState { owed, interrupted, done: r.done }))
            })
            .collect();
        self.pending.as_ref().map(|pending| pending.recall(each)).unwrap_or_default()
    }
}

impl PendingGraph {
    /// What is remembered of the members is remembered of their group: the last that any is owed, whether any was cut off.
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
                if recall.done != self.rows.get(*member).map(|vertex| vertex.definition) {
                    whole.done = None;
                }
            }
            each.insert(leader, whole);
        }
        each
    }
}

/// A vertex as the engine is to have it.
pub(in crate::driver) fn declare(id: VertexId, vertex: &Vertex) -> VertexSpec {
    let (definition, meta) = (vertex.definition, Arc::clone(&vertex.meta));
    VertexSpec { id, definition, meta, nature: nature_for_engine(vertex.resource.nature()) }
}

impl Vertex {
    /// The deadline of one run.
    pub(in crate::driver) fn timeout(&self) -> Option<Duration> {
        self.meta.timeout.or_else(|| self.resource.nature().timeout)
    }
}
