//! The check before a planned apply: the graph and the host still fit the plan.

use super::apply_guard::{moved, names};
use super::{Action, Plan, Step, Unusable};
use crate::config::LoadedGraph;
use std::collections::BTreeMap;

impl Plan {
    /// Checks that a graph is still the graph that was planned, and that it was made of the same inputs.
    ///
    /// # Errors
    /// [`Unusable::Moved`] with each resource that was added, removed or declared differently, and with each file, fact
    /// and answer of a probe that has changed.
    pub fn is_of(&self, loaded: &LoadedGraph) -> Result<(), Unusable> {
        let now = definitions(loaded);
        let mut moved = Vec::new();
        for (name, definition) in &self.definitions {
            match now.get(name) {
                None => moved.push(format!("{name}: no longer in the graph")),
                Some(other) if other != definition => {
                    moved.push(format!("{name}: the declaration has changed"));
                }
                Some(_) => {}
            }
        }
        let new = now.keys().filter(|name| !self.definitions.contains_key(*name));
        moved.extend(new.map(|name| format!("{name}: new in the graph")));
        moved.extend(changed_inputs(&self.inputs, &loaded.bound_inputs()));
        if moved.is_empty() { Ok(()) } else { Err(Unusable::Moved(moved)) }
    }

    /// Checks that the steps found now are the steps of the plan.
    ///
    /// # Errors
    /// [`Unusable::Moved`] with each resource whose step differs.
    pub fn is_still(&self, found: &[Step]) -> Result<(), Unusable> {
        let mut moved = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for step in found {
            seen.insert(step.resource.as_str());
            let what = match self.step(&step.resource) {
                None => {
                    Some(format!("it was converged, but differs now: {}", names(&step.differences)))
                }
                Some(planned) => planned.unlike(step),
            };
            moved.extend(what.map(|what| format!("{}: {what}", step.resource)));
        }
        let done = self.steps.iter().filter(|step| !seen.contains(step.resource.as_str()));
        moved.extend(done.map(|step| {
            let now = if step.is_removal() { "no longer to be removed" } else { "now converged" };
            format!("{}: {now}", step.resource)
        }));
        if moved.is_empty() { Ok(()) } else { Err(Unusable::Moved(moved)) }
    }
}

impl Step {
    /// Describes the step in words.
    fn in_words(&self) -> String {
        let until = |words: &str| match &self.until {
            Some(until) => format!("{words} ({until})"),
            None => words.to_owned(),
        };
        match self.action {
            Action::Change if self.removes => "a change that removes something".to_owned(),
            Action::Change => "a change".to_owned(),
            Action::Refresh => "a refresh".to_owned(),
            Action::Remove => "a removal".to_owned(),
            Action::Unknown => until("unknown until another resource is changed"),
            Action::Held => until("held"),
        }
    }

    /// Returns the first difference between this step and a step found now; `None` if they are equal.
    fn unlike(&self, other: &Self) -> Option<String> {
        for planned in &self.differences {
            match other.differences.iter().find(|one| one.aspect == planned.aspect) {
                _ if other.differences.contains(planned) => {}
                Some(one) => return Some(moved(planned, one)),
                None => return Some(format!("{}: now converged", planned.aspect)),
            }
        }
        if let Some(new) = other.differences.iter().find(|one| !self.differences.contains(one)) {
            return Some(format!("{}: was converged, but differs now", new.aspect));
        }
        if self.premise_digest != other.premise_digest {
            return Some("content: changed since the plan".to_owned());
        }
        let is_same = self.action == other.action && self.removes == other.removes;
        (!is_same || self.until != other.until)
            .then(|| format!("planned: {}; found: {}", self.in_words(), other.in_words()))
    }
}

/// Describes the inputs of a graph that have changed since a plan.
fn changed_inputs(
    planned: &BTreeMap<String, String>,
    present: &BTreeMap<String, String>,
) -> Vec<String> {
    let is_value = |name: &str| name.starts_with("facts.") || name.starts_with("probe.");
    let mut changed = Vec::new();
    for (name, before) in planned {
        match present.get(name) {
            Some(now) if now == before => {}
            Some(now) if is_value(name) => {
                changed.push(format!(
                    "{name}: was {}, is now {}",
                    shortened(before),
                    shortened(now)
                ));
            }
            Some(_) => changed.push(format!("{name}: the file has changed")),
            None if is_value(name) => changed.push(format!("{name}: no longer used by the graph")),
            None => changed.push(format!("{name}: the graph no longer reads the file")),
        }
    }
    for name in present.keys().filter(|name| !planned.contains_key(*name)) {
        changed.push(if is_value(name) {
            format!("{name}: not used by the planned graph")
        } else {
            format!("{name}: the planned graph did not read the file")
        });
    }
    changed
}

/// Returns the beginning of a long value.
fn shortened(value: &str) -> String {
    const LONGEST: usize = 80;
    let mut text: String = value.chars().take(LONGEST).collect();
    if text.len() < value.len() {
        text.push('…');
    }
    text
}

/// Returns a digest of the definition of each resource.
pub(super) fn definitions(loaded: &LoadedGraph) -> BTreeMap<String, String> {
    // Noop and the maintenance window count too: they decide if a change is made at all.
    let of = |vertex: &crate::config::Vertex| {
        let meta = &vertex.meta;
        let held = (meta.noop && !meta.planned, meta.window);
        format!("{:016x} {held:?}", vertex.definition)
    };
    loaded.vertices.iter().map(|vertex| (vertex.identity.to_string(), of(vertex))).collect()
}
