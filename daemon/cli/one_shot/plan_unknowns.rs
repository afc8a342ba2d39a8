//! The conditions in a plan: inactive resources, and used facts that a step of the plan changes.

use crate::api::{InactiveStatus, Step, UnknownFact};
use crate::cli::output::plain;
use crate::config::{LoadedGraph, Vertex};
use crate::facts;
use std::collections::{BTreeMap, BTreeSet};
use steadfast_resources::{HostObject, ResourceId};

/// The inactive resources of a plan, and the facts that are unknown until a step.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    /// The inactive resources, each with its condition.
    inactive: Vec<(String, String)>,
    /// The names of the facts that expressions use.
    used: BTreeSet<String>,
    /// The names among them that static fields use.
    static_names: BTreeSet<String>,
    /// The paths that resources claim, for those whose name is another one.
    paths: BTreeMap<String, Vec<String>>,
    /// The used facts, each with the resource that changes it.
    unknown: Vec<(String, String)>,
}

impl Conditions {
    /// Returns the conditions of a graph.
    pub(super) fn of(loaded: &LoadedGraph) -> Self {
        let inactive = loaded.inactive.iter().map(|it| (it.identity.to_string(), it.to_string()));
        let inactive = inactive.collect();
        let used = loaded.used.fact_names.clone();
        let static_names = loaded.used.static_names.clone();
        let paths = if used.is_empty() { BTreeMap::new() } else { claimed_paths(loaded) };
        Self { inactive, used, static_names, paths, unknown: Vec::new() }
    }

    /// Adds the facts that the steps of a plan change.
    pub(super) fn with_steps(mut self, steps: &[Step]) -> Self {
        if self.used.is_empty() {
            return self;
        }
        for step in steps {
            let Some(ResourceId { kind, name, .. }) = ResourceId::parse(&step.resource) else {
                continue;
            };
            let paths = self.paths.get(step.resource.as_str()).into_iter().flatten();
            let names = std::iter::once(name).chain(paths.map(String::as_str));
            let changed = names.flat_map(|name| facts::facts_changed_by_kind(kind, Some(name)));
            let changed: BTreeSet<&str> = changed.collect();
            for fact in changed {
                if self.used.iter().any(|used| facts::names_overlap(used, fact)) {
                    self.unknown.push((fact.to_owned(), step.resource.clone()));
                }
            }
        }
        self
    }

    /// Returns the facts that steps change, each with the resource that changes it.
    pub(super) fn changed_facts(&self) -> BTreeMap<String, String> {
        self.unknown.iter().cloned().collect()
    }

    /// Replaces the conditions of inactive resources that depend on a changed fact.
    pub(super) fn mark_dependents(&mut self, dependents: &BTreeMap<String, String>) {
        for (resource, message) in &mut self.inactive {
            if let Some(until) = dependents.get(resource) {
                *message = format!("unknown until {until}");
            }
        }
    }

    /// Returns the lines for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let unknown = self.unknown.iter().map(|(fact, until)| {
            let is_static = self.static_names.iter().any(|name| facts::names_overlap(name, fact));
            let then = if is_static {
                "names and paths that use it change with the next apply"
            } else {
                "expressions that use it may change"
            };
            format!("! facts.{fact}: unknown until {}; {then}", plain(until))
        });
        let inactive =
            self.inactive.iter().map(|(name, why)| format!("  {}: {}", plain(name), plain(why)));
        unknown.chain(inactive).collect()
    }

    /// Returns the inactive resources as data.
    pub(super) fn inactive_status(&self) -> Vec<InactiveStatus> {
        let one = |(name, why): &(String, String)| InactiveStatus {
            resource: name.clone(),
            message: why.clone(),
        };
        self.inactive.iter().map(one).collect()
    }

    /// Returns the facts that steps change as data.
    pub(super) fn unknown_facts(&self) -> Vec<UnknownFact> {
        let one = |(fact, until): &(String, String)| UnknownFact {
            fact: fact.clone(),
            until: until.clone(),
        };
        self.unknown.iter().map(one).collect()
    }
}

/// Returns the paths that resources claim, by identity.
fn claimed_paths(loaded: &LoadedGraph) -> BTreeMap<String, Vec<String>> {
    let paths = |vertex: &Vertex| {
        let claims = vertex.resource.footprint().claims.into_iter();
        let paths = claims.filter_map(|claim| match claim.object {
            HostObject::Path(path) | HostObject::Content(path) => Some(path.display().to_string()),
            _ => None,
        });
        (vertex.identity.to_string(), paths.collect::<Vec<String>>())
    };
    loaded.vertices.iter().map(paths).filter(|(_, paths)| !paths.is_empty()).collect()
}
