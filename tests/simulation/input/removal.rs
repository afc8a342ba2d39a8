//! Removals, renames and owed refreshes: drawn for the graphs, and checked afterwards.

use crate::environment::here;
use crate::input::chance::Chance;
use crate::input::shape::{Content, Shape, Thing};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use steadfast::api::{Action, Step};
use steadfast::config::LoadedGraph;
use steadfast::store::{Entry, MemoryStore, Origin, Store as _, StoredState, Verb};
use steadfast_resources::host::simulated::What;

/// Marks many resources `on_remove: delete` and a few as protected.
pub(crate) fn marked(mut shape: Shape, chance: &mut Chance) -> Shape {
    for declared in shape.resources.values_mut() {
        let can_leave = !matches!(declared.thing, Thing::Absent { .. });
        if can_leave && declared.thing.path().is_some() && chance.percent(60) {
            declared.meta.0.insert("on_remove", "delete".to_owned());
        }
        if chance.percent(1) {
            declared.meta.0.insert("protect", "true".to_owned());
        }
    }
    shape
}

/// Removes some resources of a graph and renames others.
pub(crate) fn without_some(mut shape: Shape, chance: &mut Chance) -> Shape {
    let names: Vec<String> = shape.resources.keys().cloned().collect();
    for name in names {
        if chance.percent(25) {
            shape.remove(&name);
        } else if chance.percent(20) {
            rename(&mut shape, &name);
        } else if chance.percent(50) {
            shape.former.remove(&name);
        }
    }
    without_wrong_names(shape)
}

fn rename(shape: &mut Shape, name: &str) {
    let mut new = format!("{name}r");
    while shape.resources.contains_key(&new) {
        new.push('r');
    }
    let Some(declared) = shape.resources.remove(name) else { return };
    for other in shape.resources.values_mut() {
        if let Thing::File { content: Content::Of(value), .. } = &mut other.thing
            && value == name
        {
            value.clone_from(&new);
        }
    }
    let called = |old: String| if old == name { new.clone() } else { old };
    let edges = std::mem::take(&mut shape.edges).into_iter();
    shape.edges = edges.map(|((from, to), how)| ((called(from), called(to)), how)).collect();
    shape.former.remove(name);
    shape.former.insert(new.clone(), name.to_owned());
    shape.resources.insert(new, declared);
}

/// Drops each former name that a current resource has, or whose resource is gone.
pub(crate) fn without_wrong_names(mut shape: Shape) -> Shape {
    let resources = &shape.resources;
    shape
        .former
        .retain(|name, former| resources.contains_key(name) && !resources.contains_key(former));
    shape
}

/// Records an interrupted apply of a notifying resource; returns false if the graph has none.
pub(crate) fn cut_off(kept: &mut MemoryStore, loaded: &LoadedGraph, chance: &mut Chance) -> bool {
    let applies = |from: usize| !loaded.vertices[from].meta.noop;
    let notifying = loaded.edges.iter().filter(|edge| edge.notify && applies(edge.from));
    let notifying: Vec<usize> = notifying.map(|edge| edge.from).collect();
    if notifying.is_empty() {
        return false;
    }
    let from = *chance.pick(&notifying);
    let owes = loaded.edges.iter().filter(|edge| edge.from == from && edge.notify);
    let owes = owes.map(|edge| Arc::clone(&loaded.vertices[edge.to].identity)).collect();
    let stamp = told(kept).stamp + 1;
    let vertex = &loaded.vertices[from];
    let (identity, definition) = (Arc::clone(&vertex.identity), vertex.definition);
    let verb = Verb::Update;
    kept.commit(&[Entry::Begin { identity, definition, stamp, verb, owes, pays: None }])
        .expect("memory keeps all");
    true
}

/// Returns the stored state as a start would read it.
pub(crate) fn told(kept: &MemoryStore) -> StoredState {
    kept.fork().recall().expect("memory tells all")
}

/// Returns the resources that are owed a refresh, by their names in this graph.
pub(crate) fn owed(kept: &MemoryStore, shape: &Shape) -> BTreeSet<String> {
    let told = told(kept);
    let owed = told.resources.iter().filter(|(_, kept)| kept.owed.is_some());
    let called = former_names(shape);
    let owed = owed.map(|(name, _)| called.get(name).unwrap_or(name));
    let is_in = |name: &&String| {
        let names = shape.resources.keys();
        names.into_iter().any(|own| shape.identity(own) == **name)
    };
    owed.filter(is_in).cloned().collect()
}

/// Returns the present name for each former name.
fn former_names(shape: &Shape) -> BTreeMap<String, String> {
    let each = shape.former.iter().map(|(name, former)| {
        let (kind, identity) = (shape.resources[name].thing.kind(), shape.identity(name));
        (format!("{kind}[{former}]"), identity)
    });
    each.collect()
}

const fn is_link(what: &What) -> bool {
    matches!(what, What::Link(_))
}

/// The path of every resource that the graphs of a case have declared.
#[derive(Debug, Default)]
pub(crate) struct Places(BTreeMap<String, PathBuf>);

impl Places {
    pub(crate) fn note(&mut self, shape: &Shape) {
        for (name, declared) in &shape.resources {
            let path = declared.thing.path().map(ToOwned::to_owned);
            self.0.extend(path.map(|path| (shape.identity(name), path)));
        }
    }

    /// Lists the planned and applied removals whose objects still exist.
    pub(crate) fn left_behind(&self, steps: &[Step], not_done: &BTreeSet<&str>) -> Vec<String> {
        let leaves =
            steps.iter().filter(|step| step.pending_removal && step.action == Action::Remove);
        let leaves = leaves.filter(|step| !not_done.contains(step.resource.as_str()));
        let is_there = |path: &PathBuf| here().look(|tree| tree.at(path).is_some());
        leaves
            .filter(|step| self.0.get(&step.resource).is_some_and(is_there))
            .map(|step| format!("{}: its removal was planned, and it is there", step.resource))
            .collect()
    }

    /// Lists the created objects that leave with this graph, still exist, and are missing in the plan; and the
    /// planned removals whose objects stay under another name. Links give one object several paths: the checks judge
    /// those.
    pub(crate) fn unnamed(
        &self,
        (steps, not_planned): (&[Step], &BTreeSet<&str>),
        shape: &Shape,
        kept: &MemoryStore,
    ) -> Vec<String> {
        let leaving: BTreeSet<&str> = steps
            .iter()
            .filter(|step| step.pending_removal)
            .map(|step| step.resource.as_str())
            .collect();
        let called = former_names(shape);
        let renamed = leaving.iter().filter(|name| called.contains_key(**name));
        let mut wrong: Vec<String> =
            renamed.map(|name| format!("{name}: it is called otherwise, and would go")).collect();
        if here().look(|tree| tree.all().iter().any(|(_, node)| is_link(&node.what))) {
            return wrong;
        }
        let names: BTreeSet<String> =
            shape.resources.keys().map(|name| shape.identity(name)).collect();
        let paths: Vec<_> = shape.resources.values().filter_map(|d| d.thing.path()).collect();
        for (name, record) in told(kept).resources {
            let is_ours = record
                .owned
                .is_some_and(|owned| owned.delete && owned.origin == Some(Origin::Created));
            let Some(path) = self.0.get(&name).filter(|_| is_ours) else { continue };
            let stays = names.contains(&name) || called.contains_key(&name);
            let is_claimed = paths.iter().any(|other| other.starts_with(path));
            let is_told = leaving.contains(name.as_str()) || not_planned.contains(name.as_str());
            if !stays && !is_claimed && !is_told && here().look(|tree| tree.at(path).is_some()) {
                wrong.push(format!("{name}: it leaves and is there, and the plan is silent"));
            }
        }
        wrong
    }
}
