//! The conditions in a plan: inactive resources, and used facts that a step of the plan changes.

use crate::api::{InactiveStatus, Step, UnknownFact};
use crate::cli::output::plain;
use crate::config::LoadedGraph;
use crate::facts;
use std::collections::BTreeSet;

/// The inactive resources of a plan, and the facts that are unknown until a step.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    /// The inactive resources, each with its condition.
    inactive: Vec<(String, String)>,
    /// The names of the facts that expressions use.
    used: BTreeSet<String>,
    /// The used facts, each with the resource that changes it.
    unknown: Vec<(String, String)>,
}

impl Conditions {
    /// Returns the conditions of a graph.
    pub(super) fn of(loaded: &LoadedGraph) -> Self {
        let inactive = loaded.inactive.iter().map(|it| (it.identity.to_string(), it.to_string()));
        let inactive = inactive.collect();
        Self { inactive, used: loaded.used.fact_names.clone(), unknown: Vec::new() }
    }

    /// Adds the facts that the steps of a plan change.
    pub(super) fn with_steps(mut self, steps: &[Step]) -> Self {
        if self.used.is_empty() {
            return self;
        }
        for step in steps {
            let name = step.resource.split_once('[');
            let Some((kind, name)) = name.map(|(kind, name)| (kind, name.trim_end_matches(']')))
            else {
                continue;
            };
            let kind = kind.rsplit('/').next().unwrap_or(kind);
            for fact in facts::facts_changed_by_kind(kind, Some(name)) {
                if self.used.iter().any(|used| overlaps(used, fact)) {
                    self.unknown.push((fact.to_owned(), step.resource.clone()));
                }
            }
        }
        self
    }

    /// Returns the lines for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let unknown = self.unknown.iter().map(|(fact, until)| {
            format!(
                "! facts.{fact}: unknown until {}; expressions that use it may change",
                plain(until)
            )
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

/// Returns true if one dotted name is the other one or leads into it.
fn overlaps(one: &str, other: &str) -> bool {
    let below = |name: &str, above: &str| {
        name.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    below(one, other) || below(other, one)
}

#[cfg(test)]
mod tests {
    use super::overlaps;

    #[test]
    fn names_overlap_by_whole_parts() {
        assert!(overlaps("os.id", "os") && overlaps("mounts", "mounts./srv"));
        assert!(!overlaps("os", "osx"));
    }
}
