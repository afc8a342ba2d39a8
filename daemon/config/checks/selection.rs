//! The selection by `--only` and `--skip`: a part of a graph, with edges that hold across skipped resources.

use crate::config::problem::code::Code;
use crate::config::problem::{Problem, Problems, quoted};
use crate::config::{Link, LoadedGraph, Options, Origin, Vertex};
use crate::nearest_name::nearest;
use crate::selection::{LabelSource, label_in, resolve};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use steadfast_engine::Meta;
use steadfast_resources::{ResourceId, printable};

/// The labels of the resources of a graph.
struct GraphLabels<'a>(HashMap<&'a str, &'a [(String, String)]>);

impl LabelSource for GraphLabels<'_> {
    fn label(&self, identity: &str, key: &str) -> Option<&str> {
        label_in(self.0.get(identity)?, key)
    }
}

impl<'a> GraphLabels<'a> {
    fn of(vertices: &'a [Vertex]) -> Self {
        let labelled = vertices.iter().filter(|vertex| !vertex.labels.is_empty());
        Self(labelled.map(|vertex| (&*vertex.identity, &*vertex.labels)).collect())
    }
}

/// Returns the selected part of a graph.
pub(in crate::config) fn select(
    loaded: LoadedGraph,
    options: &Options,
    problems: &mut Problems,
) -> Option<LoadedGraph> {
    if options.only.is_empty() && options.skip.is_empty() {
        return Some(loaded);
    }
    let mut keep = vec![options.only.is_empty(); loaded.vertices.len()];
    let errors = problems.errors();
    let identities: Vec<&str> =
        loaded.vertices.iter().map(|vertex| vertex.identity.as_ref()).collect();
    let labels = GraphLabels::of(&loaded.vertices);
    for (flag, texts, kept) in [("--only", &options.only, true), ("--skip", &options.skip, false)] {
        match resolve(texts, &identities, &labels) {
            Ok(selected) => mark(&loaded.vertices, &selected, kept, &mut keep),
            Err(wrong) => {
                let ambiguous = wrong.candidates().into_iter().map(|words| ambiguous(flag, &words));
                let unknown = wrong.unknown.iter().map(|text| unknown(&identities, flag, text));
                unknown.chain(ambiguous).for_each(|problem| problems.push(problem));
            }
        }
    }
    if problems.errors() > errors {
        return None;
    }
    if !loaded.vertices.is_empty() && !keep.contains(&true) {
        let what = "--only and --skip together select no resource";
        problems
            .push(Problem::new(Code::Selection, what).hint("exclude fewer resources with --skip"));
        return None;
    }
    Some(reduce(loaded, &keep))
}

/// Marks the selected resources.
fn mark(vertices: &[Vertex], selected: &[String], value: bool, keep: &mut [bool]) {
    let selected: HashSet<&str> = selected.iter().map(String::as_str).collect();
    for (vertex, keep) in vertices.iter().zip(keep) {
        if selected.contains(vertex.identity.as_ref()) {
            *keep = value;
        }
    }
}

fn unknown(identities: &[&str], flag: &str, name: &str) -> Problem {
    let kinds = identities.iter().filter_map(|identity| Some(ResourceId::parse(identity)?.kind));
    let near = nearest(name, identities.iter().copied().chain(kinds));
    let what = format!("{flag} {}: the graph has no such resource or kind", quoted(name));
    let hint = near.map(|near| format!("did you mean `{}`?", quoted(near)));
    Problem::new(Code::Selection, what).hint_if(hint)
}

fn ambiguous(flag: &str, words: &str) -> Problem {
    let what = format!("{flag}: {}", printable(words));
    Problem::new(Code::Selection, what).hint("name one of them: `kind[name]`")
}

impl LoadedGraph {
    /// Turns the graph into one for a plan: every vertex has noop. Also returns the resources that are declared `noop`.
    #[must_use]
    pub fn into_plan(mut self) -> (Self, BTreeSet<Arc<str>>) {
        let noop = self.vertices.iter().filter(|vertex| vertex.meta.noop);
        let noop = noop.map(|vertex| Arc::clone(&vertex.identity)).collect();
        self.look_only(true);
        (self, noop)
    }

    /// Turns the graph into one for `apply --noop`: nothing is changed, and the steps run as in a plan. Resources that
    /// are declared `noop` are no steps, unless all are.
    #[must_use]
    pub fn rehearsed(mut self) -> Self {
        let is_noop = self.vertices.iter().all(|vertex| vertex.meta.noop);
        for vertex in self.vertices.iter_mut().filter(|_| is_noop) {
            Arc::make_mut(&mut vertex.meta).noop = false;
        }
        self.look_only(true);
        self
    }

    /// Turns the graph into one in which every vertex has noop.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.look_only(false);
        self
    }

    fn look_only(&mut self, planned: bool) {
        let mut metas = HashMap::new();
        for vertex in self.vertices.iter_mut().filter(|vertex| !vertex.meta.noop) {
            let meta = metas.entry(Arc::as_ptr(&vertex.meta)).or_insert_with(|| {
                let mut meta = Meta::clone(&vertex.meta);
                (meta.noop, meta.planned) = (true, planned);
                (Arc::clone(&vertex.meta), Arc::new(meta))
            });
            vertex.meta = Arc::clone(&meta.1);
        }
        if !self.usual.noop {
            let mut usual = Meta::clone(&self.usual);
            (usual.noop, usual.planned) = (true, planned);
            self.usual = Arc::new(usual);
        }
    }

    /// Returns the graph without the unwanted resources; edges hold across them.
    #[must_use]
    pub fn subset(self, wanted: impl Fn(&Vertex) -> bool) -> Self {
        let keep: Vec<bool> = self.vertices.iter().map(wanted).collect();
        if keep.contains(&false) { reduce(self, &keep) } else { self }
    }
}

/// Removes vertices and connects their neighbours: A → B → C without B becomes A → C.
fn reduce(loaded: LoadedGraph, keep: &[bool]) -> LoadedGraph {
    let mut number = 0;
    let numbers: Vec<Option<usize>> = keep
        .iter()
        .map(|keep| {
            keep.then(|| {
                number += 1;
                number - 1
            })
        })
        .collect();
    let mut outgoing: HashMap<usize, Vec<Link>> = HashMap::new();
    for edge in &loaded.edges {
        outgoing.entry(edge.from).or_default().push(*edge);
    }
    let mut edges = Vec::new();
    for from in (0..keep.len()).filter(|vertex| keep[*vertex]) {
        let across = reach(from, keep, &outgoing);
        for (to, notify) in across {
            if let (Some(from), Some(to)) = (numbers[from], numbers[to]) {
                edges.push(Link { from, to, notify });
            }
        }
    }
    edges.sort_unstable();
    let across = |origin: Origin| {
        let (from, to) = (*numbers.get(origin.from)?, *numbers.get(origin.to)?);
        Some(Origin { from: from?, to: to?, ..origin })
    };
    let origins = loaded.origins.into_iter().filter_map(across).collect();
    let kept = |(vertex, keep): (Vertex, &bool)| keep.then_some(vertex);
    let vertices = loaded.vertices.into_iter().zip(keep).filter_map(kept).collect();
    LoadedGraph { vertices, edges, origins, ..loaded }.with_orders()
}

/// Returns the kept vertices reached over removed ones, each with true if some path notifies at each step.
fn reach(from: usize, keep: &[bool], outgoing: &HashMap<usize, Vec<Link>>) -> HashMap<usize, bool> {
    let mut reached: HashMap<usize, bool> = HashMap::new();
    let mut passed: HashMap<usize, bool> = HashMap::new();
    let mut walk = vec![(from, true)];
    while let Some((vertex, notified)) = walk.pop() {
        for edge in outgoing.get(&vertex).into_iter().flatten() {
            let notify = notified && edge.notify;
            let seen = if keep[edge.to] { &mut reached } else { &mut passed };
            let better = seen.get(&edge.to).is_none_or(|before| notify && !before);
            if better {
                seen.insert(edge.to, notify);
                if !keep[edge.to] {
                    walk.push((edge.to, notify));
                }
            }
        }
    }
    reached
}
