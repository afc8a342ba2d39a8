//! Edges that name a set of resources: `user[*]`, `file[web-*]`, `shop/*`, `shop/file[*]`, `*/file[vhost]`.

use super::edges::DraftEdge;
use super::metaparams::Own;
use super::{DraftVertex, Validator};
use crate::config::ast::Relation;
use crate::config::document::ModuleEdge;
use crate::config::hash::Stable;
use crate::config::problem::code::Code;
use crate::config::problem::location::{Element, Location};
use crate::config::problem::{Problem, quoted};
use std::collections::HashMap;
use std::sync::Arc;
use steadfast_resources::{Fields, Place, ResourceId};

/// The maximum number of edges that one notification to or from a set makes.
const MOST_NOTIFIED: usize = 10_000;
/// The number of pairs up to which two sets are ordered by plain edges; above, a vertex between them is cheaper.
const MOST_PLAIN: usize = 1000;

/// The maximum number of edges that all sets of a graph make: each takes some hundred bytes.
const MOST_OF_SETS: usize = 1_000_000;

/// The edges of one declaration: their key, their direction and their position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub(super) notify: bool,
    pub(super) key: &'static str,
    pub(super) at: Location,
}

/// A pattern of identities.
struct Pattern<'t> {
    /// The instance; an empty one means the resources outside of modules. A `*` at its end stands for the rest of a
    /// name, without the instances within.
    instance: &'t str,
    /// The kind; none for all resources of an instance, nested ones included.
    kind: Option<&'t str>,
    /// The name, or its beginning before a `*`.
    name: &'t str,
    is_whole_name: bool,
}

impl<'t> Pattern<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        if let Some(instance) = text.strip_suffix("/*") {
            let is_plain = !instance.is_empty() && !instance.contains('[');
            let (name, is_whole_name) = ("", false);
            return is_plain.then_some(Self { instance, kind: None, name, is_whole_name });
        }
        let id = ResourceId::parse(text)?;
        let prefix = id.name.strip_suffix('*');
        let is_whole_name = prefix.is_none();
        let is_set = !is_whole_name || id.instance.ends_with('*');
        let name = prefix.unwrap_or(id.name);
        is_set.then_some(Self { instance: id.instance, kind: Some(id.kind), name, is_whole_name })
    }

    fn matches(&self, identity: &str) -> bool {
        match self.kind {
            None => is_inside(identity, self.instance),
            Some(kind) => ResourceId::parse(identity).is_some_and(|id| {
                let is_named = if self.is_whole_name {
                    id.name == self.name
                } else {
                    id.name.starts_with(self.name)
                };
                id.kind == kind && self.matches_instance(id.instance) && is_named
            }),
        }
    }

    fn matches_instance(&self, instance: &str) -> bool {
        let Some(start) = self.instance.strip_suffix('*') else {
            return instance == self.instance;
        };
        !instance.is_empty() && instance.strip_prefix(start).is_some_and(|rest| !rest.contains('/'))
    }
}

/// Returns true if a resource belongs to an instance of a module, or to an instance within that one.
pub(super) fn is_inside(identity: &str, instance: &str) -> bool {
    let own = identity.split('[').next().unwrap_or_default();
    own.strip_prefix(instance).is_some_and(|rest| rest.starts_with('/'))
}

impl Validator<'_> {
    /// Returns the numbers that a target names: one resource, or the members of a set. A resource whose whole name is
    /// the text wins over the set. An unknown name is reported.
    pub(super) fn find_targets(&mut self, target: &str, at: Location) -> Vec<usize> {
        let known = self.numbers.contains_key(target);
        let pattern = if known { None } else { Pattern::parse(target) };
        let Some(pattern) = pattern else {
            return self.find(target, at).into_iter().collect();
        };
        if let Some(found) = self.sets.get(target) {
            return found.to_vec();
        }
        let members = self.numbers.iter().filter(|(identity, _)| pattern.matches(identity));
        let members = members.map(|(identity, number)| (*number, Arc::clone(identity)));
        let mut members: Vec<(usize, Arc<str>)> = members.collect();
        members.sort_unstable();
        if members.is_empty() && self.whole {
            let what = format!("`{}` names no resource", quoted(target));
            let hint = "the edge has no effect; correct the pattern, or remove the edge";
            let problem = Problem::new(Code::Doubt, what).warning().hint(hint);
            self.problems.push(problem.at(self.atlas.place(at)));
        }
        if pattern.is_whole_name {
            members.retain(|(_, identity)| self.check_export(identity, at));
        }
        let members: Vec<usize> = members.into_iter().map(|(number, _)| number).collect();
        self.sets.insert(target.to_owned(), members.as_slice().into());
        members
    }

    /// Adds the edges from each of one list to each of another.
    pub(super) fn connect(&mut self, froms: &[usize], tos: &[usize], declared: Declared) {
        let Declared { notify, key, at } = declared;
        let pairs = froms.len().saturating_mul(tos.len());
        if notify && pairs > MOST_NOTIFIED {
            let what = format!("one notification would make {pairs} edges; the limit is 10 000");
            let hint = "notify one resource that stands for the set, such as a noop";
            let problem = Problem::new(Code::Limit, what).hint(hint);
            self.problems.push(problem.at(self.atlas.place(at)));
            return;
        }
        let is_set = froms.len() > 1 || tos.len() > 1;
        let edge = |from, to| DraftEdge { from, to, notify, key, because: None, at };
        if !notify && froms.len() > 1 && tos.len() > 1 && pairs > MOST_PLAIN {
            if let Some(between) = self.add_barrier(froms, tos, at) {
                self.ties.extend(froms.iter().map(|from| edge(*from, between)));
                self.ties.extend(tos.iter().map(|to| edge(between, *to)));
            }
            return;
        }
        if is_set && !self.count_set_edges(pairs, at) {
            return;
        }
        for from in froms {
            // A member of a set does not wait for itself.
            let others = tos.iter().filter(|to| !is_set || *to != from);
            self.ties.extend(others.map(|to| edge(*from, *to)));
        }
    }

    /// Counts the edges of a set; returns false, and reports it once, if the graph has too many.
    fn count_set_edges(&mut self, pairs: usize, at: Location) -> bool {
        let before = self.set_edges;
        self.set_edges = before.saturating_add(pairs);
        if self.set_edges <= MOST_OF_SETS {
            return true;
        }
        if before <= MOST_OF_SETS {
            let what = "the edges with patterns are too many; the limit is 1 000 000";
            let hint = "order the sets by one resource between them, such as a noop";
            let problem = Problem::new(Code::Limit, what).hint(hint);
            self.problems.push(problem.at(self.atlas.place(at)));
        }
        false
    }

    /// Adds a vertex between two sets, so that n and m resources need n + m edges.
    fn add_barrier(&mut self, froms: &[usize], tos: &[usize], at: Location) -> Option<usize> {
        if let Some(both) = froms.iter().find(|from| tos.contains(from)) {
            let name = self.vertices.get(*both).map(|it| quoted(&it.identity)).unwrap_or_default();
            let what = format!("`{name}` is in both sets, and would wait for itself");
            let problem = Problem::new(Code::SelfEdge, what).hint("narrow one of the patterns");
            self.problems.push(problem.at(self.atlas.place(at)));
            return None;
        }
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
        let mut members: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        for (index, edge) in edges.iter().enumerate() {
            let at = Location { file, part: Element::ModuleEdge(index) };
            let own = members.entry(Arc::clone(&edge.instance)).or_insert_with(|| {
                let inside = self.numbers.iter().filter(|(id, _)| is_inside(id, &edge.instance));
                let mut inside: Vec<usize> = inside.map(|(_, number)| *number).collect();
                inside.sort_unstable();
                inside
            });
            let own = own.clone();
            let others = self.find_targets(&edge.target, at);
            let declared =
                Declared { notify: edge.relation.notifies(), key: edge.relation.key(), at };
            match edge.relation {
                Relation::Before | Relation::Notify => self.connect(&own, &others, declared),
                Relation::After | Relation::Subscribe => self.connect(&others, &own, declared),
            }
        }
    }
}
