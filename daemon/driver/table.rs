//! Names and numbers: which identity has which number in the engine, and which resource stands behind it.

use super::graph_change::GraphChange;
use super::groups::Groups;
use crate::config::{Loaded, Vertex, Window};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine as engine;
use steadfast_engine::{
    Declared, Edge, Graph, GraphError, Recall, SemaphoreId, Stamp, VertexId, WindowId,
};
use steadfast_resources::{Nature, OnInterrupt, Recipe, Repeat, Resource, Seat, Source};

/// What stands behind a vertex.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Entry {
    /// `kind[name]`.
    pub(super) identity: Arc<str>,
    /// The resource.
    pub(super) resource: Arc<dyn Resource>,
    /// How it is made anew for each run, where it receives values.
    pub(super) recipe: Option<Arc<Recipe>>,
    /// What its kind says of it.
    pub(super) nature: Nature,
    /// The deadline of one run.
    pub(super) timeout: Option<Duration>,
    /// The definition.
    pub(super) definition: u64,
    /// A watch that failed is tried again at each swap and sweep.
    pub(super) rewatch: bool,
    /// It is only looked at.
    pub(super) noop: bool,
    /// What was made of it is deleted when it leaves.
    pub(super) delete: bool,
    /// It must not leave.
    pub(super) protect: bool,
    /// No graph declares it: it removes what one did declare.
    pub(super) removes: bool,
    /// When it may be changed, as written.
    pub(super) window: Option<Arc<str>>,
    /// Those that it comes after, as far as any of them, or what they come after, is deleted when it leaves; sorted.
    pub(super) after: Arc<[Arc<str>]>,
}

/// The table of all that runs, and of a graph that waits to run.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: Vec<Option<Entry>>,
    numbers: HashMap<Arc<str>, VertexId>,
    free: Vec<VertexId>,
    semaphores: HashMap<String, SemaphoreId>,
    counts: Vec<u32>,
    /// Windows by number; one that is used no more keeps its own.
    windows: Vec<(String, Window)>,
    /// The graph that waits.
    pending: Option<Pending>,
    /// Which of the running graph are one transaction.
    groups: Groups,
    /// The name of the running graph.
    name: String,
    /// What was removed, and is there no more but for the engine.
    buried: BTreeSet<VertexId>,
}

/// A graph that waits to run.
#[derive(Debug)]
struct Pending {
    name: String,
    entries: BTreeMap<VertexId, Entry>,
    groups: Groups,
    change: GraphChange,
}

/// What a graph that runs from now on means for the one before.
#[derive(Debug, Default)]
pub(super) struct Installed {
    /// Members of groups that are in no graph any more; the engine does not know of them.
    pub(super) dropped: Vec<VertexId>,
    /// What differs.
    pub(super) change: GraphChange,
}

impl Table {
    /// What stands behind a vertex of the running graph.
    #[must_use]
    pub(super) fn get(&self, id: VertexId) -> Option<&Entry> {
        self.entries.get(id.0 as usize)?.as_ref()
    }

    /// What stands behind a vertex of the graph that waits.
    #[must_use]
    pub(super) fn waiting(&self, id: VertexId) -> Option<&Entry> {
        self.pending.as_ref()?.entries.get(&id)
    }

    /// The name of the graph that waits, and what it means for the one that runs.
    pub(super) fn change(&self) -> Option<(&str, &GraphChange)> {
        self.pending.as_ref().map(|pending| (pending.name.as_str(), &pending.change))
    }

    /// What stands behind all vertices of the graph that waits.
    pub(super) fn all_waiting(&self) -> impl Iterator<Item = &Entry> {
        self.pending.iter().flat_map(|pending| pending.entries.values())
    }

    /// The identity of a vertex.
    #[must_use]
    pub(super) fn name(&self, id: VertexId) -> &str {
        self.get(id).map_or("?", |entry| &entry.identity)
    }

    /// The name of the running graph.
    #[must_use]
    pub(super) fn graph(&self) -> &str {
        &self.name
    }

    /// The number of an identity, if it has one.
    #[must_use]
    pub(super) fn number(&self, identity: &str) -> Option<VertexId> {
        self.numbers.get(identity).copied()
    }

    /// Which of the running graph are one transaction.
    #[must_use]
    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Under which number the engine would know this resource in the graph that waits.
    #[must_use]
    pub(super) fn waiting_leader(&self, id: VertexId) -> VertexId {
        self.pending.as_ref().map_or(id, |pending| pending.groups.leader(id))
    }

    /// Where the events of a vertex come from: for a group, those of all its members.
    #[must_use]
    pub(super) fn sources(&self, id: VertexId) -> Vec<Source> {
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
    pub(super) fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.ids().filter(|id| self.groups.leader(*id) == *id)
    }

    /// All resources of the running graph.
    pub(super) fn ids(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.numbers_in_use().filter(|id| !self.buried.contains(id))
    }

    fn numbers_in_use(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.entries
            .iter()
            .zip(0..)
            .filter(|(entry, _)| entry.is_some())
            .map(|(_, id)| VertexId(id))
    }

    /// What this one was to remove is gone.
    pub(super) fn bury(&mut self, id: VertexId) {
        self.buried.insert(id);
    }

    /// Whether it was removed.
    pub(super) fn is_buried(&self, id: VertexId) -> bool {
        self.buried.contains(&id)
    }

    /// All that were.
    pub(super) fn buried(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.buried.iter().copied()
    }

    /// Gives numbers to a new graph and makes it ready; [`Table::install`] follows when the engine has taken it.
    pub(super) fn prepare(&mut self, loaded: Loaded) -> Result<Graph, GraphError> {
        self.drop_pending();
        let (graph, groups) = self.number_all(&loaded)?;
        let ids: Vec<VertexId> = loaded.vertices.iter().map(|v| self.number_of(v)).collect();
        let afters = afters(&loaded);
        let windows = loaded.windows;
        let rows = loaded.vertices.into_iter().zip(ids).zip(afters);
        let entries = rows.map(|((v, id), after)| (id, entry(v, after, &windows))).collect();
        let change = GraphChange::between(self, &entries);
        self.pending = Some(Pending { name: loaded.name, entries, groups, change });
        Ok(graph)
    }

    fn number_all(&mut self, loaded: &Loaded) -> Result<(Graph, Groups), GraphError> {
        let semaphores: Vec<SemaphoreId> =
            loaded.semaphores.iter().map(|(name, count)| self.semaphore(name, *count)).collect();
        let windows: Vec<WindowId> =
            loaded.windows.iter().map(|(text, window)| self.window(text, window)).collect();
        let mut metas = HashMap::new();
        let mut declared = Vec::with_capacity(loaded.vertices.len());
        for vertex in &loaded.vertices {
            let meta = metas
                .entry(Arc::as_ptr(&vertex.meta))
                .or_insert_with(|| renumber(&vertex.meta, &semaphores, &windows));
            declared.push(Declared {
                id: self.number_of(vertex),
                definition: vertex.definition,
                meta: Arc::clone(meta),
                nature: nature_for_engine(vertex.resource.nature()),
            });
        }
        let mut edges = loaded
            .edges
            .iter()
            .map(|link| Edge {
                from: declared[link.from].id,
                to: declared[link.to].id,
                notify: link.notify,
            })
            .collect();
        let groups = Groups::find(loaded, &mut declared, &mut edges, &self.groups);
        Ok((Graph::new(declared, edges, self.counts.clone())?, groups))
    }

    /// Its number, that of its former name, or a new one.
    fn number_of(&mut self, vertex: &Vertex) -> VertexId {
        let identity = &vertex.identity;
        if let Some(id) = self.numbers.get(identity) {
            return *id;
        }
        let mut former = vertex.aliases.iter().filter_map(|(name, _)| self.number(name));
        if let Some(id) = former.find(|id| self.get(*id).is_some()) {
            self.numbers.insert(Arc::clone(identity), id);
            return id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            VertexId(u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX))
        });
        self.numbers.insert(Arc::clone(identity), id);
        id
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
    pub(super) fn semaphore_name(&self, id: SemaphoreId) -> Option<&str> {
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
    pub(super) fn windows(&self) -> &[(String, Window)] {
        &self.windows
    }

    /// The graph that waits runs from now on.
    pub(super) fn install(&mut self) -> Installed {
        let Some(Pending { name, entries, groups, change }) = self.pending.take() else {
            return Installed::default();
        };
        let before = std::mem::replace(&mut self.groups, groups);
        let gone = |id: &VertexId| before.leader(*id) != *id && !entries.contains_key(id);
        let dropped = if before.is_empty() {
            Vec::new()
        } else {
            self.numbers_in_use().filter(gone).collect()
        };
        self.name = name;
        for (id, entry) in entries {
            let Some(slot) = self.entries.get_mut(id.0 as usize) else { continue };
            self.buried.remove(&id);
            let identity = Arc::clone(&entry.identity);
            if let Some(before) = slot.replace(entry)
                && before.identity != identity
            {
                self.numbers.remove(&before.identity);
            }
        }
        Installed { dropped, change }
    }

    /// The graph that waited will not run: numbers that only it had are free again.
    pub(super) fn drop_pending(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        for (id, entry) in pending.entries {
            match self.get(id) {
                None => {
                    self.numbers.remove(&entry.identity);
                    self.free.push(id);
                }
                Some(running) if running.identity != entry.identity => {
                    self.numbers.remove(&entry.identity);
                }
                Some(_) => {}
            }
        }
    }

    /// A vertex has left the graph.
    pub(super) fn forget(&mut self, id: VertexId) -> Option<Arc<str>> {
        let entry = self.entries.get_mut(id.0 as usize)?.take()?;
        self.buried.remove(&id);
        if self.waiting(id).is_none() {
            self.numbers.remove(&entry.identity);
            self.free.push(id);
        }
        Some(entry.identity)
    }

    /// What the store remembers, by number, for those that wait to run.
    #[must_use]
    pub(super) fn recall(
        &self,
        kept: &BTreeMap<String, crate::store::Remembered>,
    ) -> BTreeMap<VertexId, Recall> {
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
                    entry.nature.repeat == Repeat::State || definition == entry.definition
                });
                Some((id, Recall { owed, interrupted, done: r.done }))
            })
            .collect();
        self.pending.as_ref().map(|pending| pending.recall(each)).unwrap_or_default()
    }
}

impl Pending {
    /// What is remembered of the members is remembered of their group: the last that any is owed, whether any was cut off.
    fn recall(&self, mut each: BTreeMap<VertexId, Recall>) -> BTreeMap<VertexId, Recall> {
        for (leader, group) in self.groups.iter() {
            let mut whole = Recall { done: Some(group.definition), ..Recall::default() };
            for member in &group.members {
                let recall = each.remove(member).unwrap_or_default();
                whole.owed = whole.owed.max(recall.owed);
                whole.interrupted |= recall.interrupted;
                if recall.done != self.entries.get(member).map(|entry| entry.definition) {
                    whole.done = None;
                }
            }
            each.insert(leader, whole);
        }
        each
    }
}

/// Of each vertex, those that it comes after, as far as that will matter when one of them is removed.
fn afters(loaded: &Loaded) -> Vec<Arc<[Arc<str>]>> {
    let mut matters: Vec<bool> = loaded.vertices.iter().map(|vertex| vertex.delete).collect();
    let mut afters: Vec<Vec<Arc<str>>> = vec![Vec::new(); matters.len()];
    if !matters.contains(&true) {
        let none: Arc<[Arc<str>]> = Arc::default();
        return vec![none; matters.len()];
    }
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); matters.len()];
    for link in &loaded.edges {
        children[link.from].push(link.to);
    }
    let mut next: Vec<usize> = (0..matters.len()).filter(|vertex| matters[*vertex]).collect();
    while let Some(vertex) = next.pop() {
        for child in &children[vertex] {
            if !std::mem::replace(&mut matters[*child], true) {
                next.push(*child);
            }
        }
    }
    let removes = |vertex: usize| loaded.vertices[vertex].removes;
    for link in loaded.edges.iter().filter(|link| matters[link.from] && !removes(link.to)) {
        afters[link.to].push(Arc::clone(&loaded.vertices[link.from].identity));
    }
    for after in &mut afters {
        after.sort_unstable();
    }
    afters.into_iter().map(Into::into).collect()
}

fn entry(vertex: Vertex, after: Arc<[Arc<str>]>, windows: &[(String, Window)]) -> Entry {
    let nature = vertex.resource.nature();
    let window = vertex.meta.window.and_then(|id| windows.get(id.0 as usize));
    Entry {
        noop: vertex.meta.noop,
        delete: vertex.delete,
        protect: vertex.protect,
        removes: vertex.removes,
        window: window.map(|(text, _)| text.as_str().into()),
        after,
        identity: vertex.identity,
        resource: vertex.resource,
        recipe: vertex.recipe,
        nature,
        timeout: vertex.meta.timeout.or(nature.timeout),
        definition: vertex.definition,
        rewatch: vertex.rewatch,
    }
}

/// The same metaparams with the numbers that semaphores have in the engine.
fn renumber(
    meta: &Arc<engine::Meta>,
    semaphores: &[SemaphoreId],
    windows: &[WindowId],
) -> Arc<engine::Meta> {
    if meta.semaphores.is_empty() && meta.window.is_none() {
        return Arc::clone(meta);
    }
    let mut mine = engine::Meta::clone(meta);
    for id in &mut mine.semaphores {
        *id = semaphores.get(id.0 as usize).copied().unwrap_or(*id);
    }
    mine.window = meta.window.and_then(|id| windows.get(id.0 as usize).copied());
    mine.semaphores.sort_unstable();
    mine.semaphores.dedup();
    Arc::new(mine)
}

fn nature_for_engine(nature: Nature) -> engine::Nature {
    engine::Nature {
        slot: match nature.seat {
            Seat::Thread => engine::SlotClass::Thread,
            Seat::Command => engine::SlotClass::Command,
        },
        check: match nature.repeat {
            Repeat::State => engine::Check::State,
            Repeat::Once => engine::Check::Once,
            Repeat::EachStart => engine::Check::EachStart,
            Repeat::Events => engine::Check::Events,
        },
        interrupted: match nature.on_interrupt {
            OnInterrupt::Again => engine::Interrupted::Again,
            OnInterrupt::Skip => engine::Interrupted::Skip,
            OnInterrupt::Wait => engine::Interrupted::Wait,
        },
        cancellable: nature.cancellable,
        timeout: nature.timeout,
    }
}
