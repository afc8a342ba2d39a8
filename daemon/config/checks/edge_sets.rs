//! Edges that name a set of resources: `user[*]`, `file[web-*]`, `shop/*`, `shop/file[*]`, `*/file[vhost]`.

use super::edges::DraftEdge;
use super::metaparams::Own;
use super::set_index::{Pattern, SetIndex};
use super::{DraftVertex, Validator};
use crate::config::ast::Relation;
use crate::config::document::ModuleEdge;
use crate::config::hash::Stable;
use crate::config::problem::code::Code;
use crate::config::problem::location::{Element, Location};
use crate::config::problem::{Problem, quoted, shorten};
use crate::nearest_name::nearest;
use std::sync::Arc;
use steadfast_resources::{Fields, Place};

/// The maximum number of edges that one notification to or from a set makes.
const MOST_NOTIFIED: usize = 10_000;
/// The number of plain edges of a set, beyond those of its first user: above, a vertex that stands for the set is
/// cheaper.
const MOST_PLAIN: usize = 1000;

/// The maximum number of plain edges that all sets of a graph make: each takes some hundred bytes.
const MOST_OF_SETS: usize = 300_000;

/// The edges of one declaration: their key, their direction and their position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub(super) notify: bool,
    pub(super) key: &'static str,
    pub(super) at: Location,
}

/// One side of an edge as written: one resource, or a set.
#[derive(Clone)]
pub(super) struct Targets {
    /// The text of the target; none for one resource.
    set: Option<Arc<str>>,
    pub(super) members: Arc<[usize]>,
}

/// The edges between one set and others, in one direction.
#[derive(Debug, Default)]
pub(super) struct SetUse {
    /// The number of plain edges.
    plain: usize,
    /// True if plain edges would be too many from now on.
    is_wide: bool,
    /// The vertex that stands for the set, once plain edges would be more.
    barrier: Option<usize>,
    /// The number of members that wait for the set, or before it.
    waiting_members: usize,
}

/// The direction of the edges of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    /// The set runs before the other resource.
    Before,
    /// The set runs after the other resource.
    After,
}

impl Side {
    /// Returns the side of the targets of a key.
    pub(super) const fn of(relation: Relation) -> Self {
        if relation.is_forward() { Self::After } else { Self::Before }
    }
}

impl Validator<'_> {
    /// Returns the resources that a target names: one, or the members of a set. A resource whose whole name is the text
    /// wins over the set. An unknown name is reported.
    pub(super) fn find_targets(&mut self, target: &str, at: Location) -> Targets {
        let known = self.numbers.contains_key(target);
        let pattern = if known { None } else { Pattern::parse(target) };
        let Some(pattern) = pattern else {
            let members = self.find(target, at).into_iter().collect();
            return Targets { set: None, members };
        };
        if let Some((set, members)) = self.sets.get_key_value(target) {
            return Targets { set: Some(Arc::clone(set)), members: Arc::clone(members) };
        }
        let mut members = self.set_index().find(&pattern);
        if members.is_empty() && self.whole {
            let problem = self.empty_set(target, &pattern);
            self.problems.push(problem.at(self.atlas.place(at)));
        }
        if pattern.is_whole_name {
            members.retain(|(_, identity)| self.check_export(identity, at));
        }
        let members: Arc<[usize]> = members.into_iter().map(|(number, _)| number).collect();
        let set: Arc<str> = target.into();
        self.sets.insert(Arc::clone(&set), Arc::clone(&members));
        Targets { set: Some(set), members }
    }

    /// Returns the problem of a set without members. A kind or an instance that the graph cannot have is an error; a
    /// condition or an empty list of a loop may empty each other set.
    fn empty_set(&self, target: &str, pattern: &Pattern<'_>) -> Problem {
        let shown = quoted(target);
        if let Some(kind) = pattern.kind.filter(|kind| self.kinds.find(kind).is_none()) {
            let near = nearest(kind, self.kinds.names());
            let hint = near.map_or_else(
                || "`steadfast explain` lists the kinds".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            let what = format!("unknown kind `{}` in `{shown}`", shorten(kind, 20));
            return Problem::new(Code::UnknownKind, what).hint(hint);
        }
        let hint = "the edge has no effect; correct the pattern, or remove the edge";
        if !self.has_instance(pattern.instance) {
            let names = self.exporters.keys().map(|instance| &**instance);
            let near = nearest(pattern.instance, names);
            let near = near.map(|near| format!("did you mean `{near}`?"));
            let instance = shorten(pattern.instance, 20);
            let what = format!("`{shown}`: no use of a module is named `{instance}`");
            let problem = Problem::new(Code::Target, what);
            // The list of a loop may be empty on this host.
            let is_loop = self.atlas.documents.iter().any(|document| document.loops_modules);
            let problem = if is_loop { problem.warning() } else { problem };
            return problem.hint(near.unwrap_or_else(|| hint.to_owned()));
        }
        let what = format!("`{shown}` names no resource");
        Problem::new(Code::Doubt, what).warning().hint(hint)
    }

    /// Returns true if a use of a module has the name, or if the name is a pattern or empty.
    fn has_instance(&self, instance: &str) -> bool {
        instance.is_empty()
            || instance.ends_with('*')
            || self.exporters.contains_key(instance)
            || self
                .exporters
                .keys()
                .any(|known| known.strip_prefix(instance).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Returns the index of the declared resources.
    fn set_index(&mut self) -> &SetIndex {
        let numbers = &self.numbers;
        self.set_index.get_or_insert_with(|| SetIndex::new(numbers))
    }

    /// Adds the edges between resources and the targets of one of their keys. `side` is that of the targets.
    pub(super) fn connect(
        &mut self,
        own: &[usize],
        targets: &Targets,
        (side, declared): (Side, Declared),
    ) {
        let pairs = own.len().saturating_mul(targets.members.len());
        if declared.notify {
            if pairs > MOST_NOTIFIED {
                let what =
                    format!("one notification would make {pairs} edges; the limit is 10 000");
                let hint = "notify one resource that stands for the set, such as a noop";
                let problem = Problem::new(Code::Limit, what).hint(hint);
                self.problems.push(problem.at(self.atlas.place(declared.at)));
                return;
            }
            if pairs > 1 && !self.count_set_edges(pairs, declared.at) {
                return;
            }
            self.add_all_plain(own, targets, (side, declared));
            return;
        }
        match &targets.set {
            Some(set) if targets.members.len() > 1 => {
                let key = (Arc::clone(set), side);
                let mut used = self.set_uses.remove(&key).unwrap_or_default();
                used.is_wide |= own.len() > 1 && used.plain.saturating_add(pairs) > MOST_PLAIN;
                for vertex in own {
                    self.connect_to_set(*vertex, targets, (side, declared), &mut used);
                }
                self.set_uses.insert(key, used);
            }
            _ => {
                if pairs > 1 && !self.count_set_edges(pairs, declared.at) {
                    return;
                }
                self.add_all_plain(own, targets, (side, declared));
            }
        }
    }

    /// Adds an edge between each resource and each target. A resource of a module that is itself the target does not
    /// wait for itself.
    fn add_all_plain(
        &mut self,
        own: &[usize],
        targets: &Targets,
        (side, declared): (Side, Declared),
    ) {
        let is_other = |vertex: usize| own.len() == 1 || *targets.members != [vertex];
        for vertex in own.iter().copied().filter(|vertex| is_other(*vertex)) {
            self.add_plain(vertex, targets, (side, declared));
        }
    }

    /// Orders one resource and a set: by plain edges, or by the vertex that stands for the set, so that n resources and
    /// m members need n + m edges.
    fn connect_to_set(
        &mut self,
        vertex: usize,
        targets: &Targets,
        (side, declared): (Side, Declared),
        used: &mut SetUse,
    ) {
        let members = &targets.members;
        if members.binary_search(&vertex).is_ok() {
            // Two members that wait for the whole set wait for each other: more edges say nothing new.
            used.waiting_members += 1;
            if used.waiting_members <= 2 && self.count_set_edges(members.len(), declared.at) {
                self.add_plain(vertex, targets, (side, declared));
            }
            return;
        }
        let is_first = used.plain == 0;
        used.is_wide |= !is_first && used.plain + members.len() > MOST_PLAIN;
        if !used.is_wide {
            used.plain += members.len();
            if self.count_set_edges(members.len(), declared.at) {
                self.add_plain(vertex, targets, (side, declared));
            }
            return;
        }
        if used.barrier.is_none() {
            used.barrier = self.add_barrier(declared.at);
            if let Some(barrier) = used.barrier {
                self.add_plain(barrier, targets, (side, declared));
            }
        }
        if let Some(barrier) = used.barrier {
            let (from, to) = match side {
                Side::Before => (barrier, vertex),
                Side::After => (vertex, barrier),
            };
            self.add_edge(from, to, declared);
        }
    }

    /// Adds an edge between a resource and each target. A member of a set does not wait for itself.
    fn add_plain(&mut self, vertex: usize, targets: &Targets, (side, declared): (Side, Declared)) {
        let others = targets.members.iter();
        for other in others.filter(|other| targets.set.is_none() || **other != vertex) {
            match side {
                Side::Before => self.add_edge(*other, vertex, declared),
                Side::After => self.add_edge(vertex, *other, declared),
            }
        }
    }

    fn add_edge(&mut self, from: usize, to: usize, Declared { notify, key, at }: Declared) {
        self.ties.push(DraftEdge { from, to, notify, key, because: None, at });
    }

    /// Counts the edges of a set; returns false, and reports it once, if the graph has too many.
    fn count_set_edges(&mut self, pairs: usize, at: Location) -> bool {
        let before = self.set_edges;
        self.set_edges = before.saturating_add(pairs);
        if self.set_edges <= MOST_OF_SETS {
            return true;
        }
        if before <= MOST_OF_SETS {
            let what = "the edges with patterns are too many; the limit is 300 000";
            let hint = "order the sets by one resource between them, such as a noop";
            let problem = Problem::new(Code::Limit, what).hint(hint);
            self.problems.push(problem.at(self.atlas.place(at)));
        }
        false
    }

    /// Adds a vertex that stands for a set.
    pub(super) fn add_barrier(&mut self, at: Location) -> Option<usize> {
        let spec = self.kinds.find("noop")?;
        let name = self.free_barrier_name();
        let place = Place { base: std::path::PathBuf::from("/") };
        let resource = spec.build_resource(&name, Fields::default(), &place).ok()?;
        let identity: Arc<str> = format!("noop[{name}]").into();
        let Own { meta, rewatch, autogroup, .. } = self.barrier_meta();
        self.vertices.push(DraftVertex {
            identity: Arc::clone(&identity),
            at,
            spec,
            resource: Some(resource),
            roles: super::claims::PathRoles::default(),
            recipe: None,
            definition: Stable::new().text("noop").text(&name).finish(),
            meta,
            rewatch,
            autoedge: false,
            autogroup,
            delete: false,
            protect: false,
            aliases: Box::default(),
            condition: None,
            labels: Arc::default(),
            line: 0,
        });
        self.numbers.insert(identity, self.vertices.len() - 1);
        Some(self.vertices.len() - 1)
    }

    /// Returns the metaparameters of a vertex that no graph declares. The defaults of the settings are for declared
    /// resources: a barrier must not wait for a window, a permit or a limit.
    fn barrier_meta(&self) -> Own {
        self.metas.without_defaults()
    }

    /// Returns a name that no resource of the graph has.
    fn free_barrier_name(&mut self) -> String {
        loop {
            self.barriers += 1;
            let name = format!("barrier {}", self.barriers);
            if !self.numbers.contains_key(format!("noop[{name}]").as_str()) {
                return name;
            }
        }
    }

    /// Adds the edges that uses of modules give to all resources of the modules.
    pub(super) fn module_edges(&mut self, edges: &[ModuleEdge], file: usize) {
        for (index, edge) in edges.iter().enumerate() {
            let at = Location { file, part: Element::ModuleEdge(index) };
            let own = self.set_index().inside(&edge.instance).to_vec();
            let others = self.find_targets(&edge.target, at);
            let declared =
                Declared { notify: edge.relation.notifies(), key: edge.relation.key(), at };
            self.connect(&own, &others, (Side::of(edge.relation), declared));
        }
    }
}
