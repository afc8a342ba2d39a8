//! The resources whose expressions use a fact that a step of the plan changes: they are unknown until that step.

use super::plan_report::Found;
use crate::api::{Action, Step};
use crate::config::{self, LoadedGraph, Options, Text, UsedInputs};
use std::collections::{BTreeMap, HashMap};

/// The inputs for a second expansion of a planned graph.
pub(super) struct PlannedInputs {
    texts: Vec<Text>,
    used: UsedInputs,
    options: Options,
}

impl PlannedInputs {
    /// Creates the inputs from those of the first expansion. A graph without facts is not expanded again.
    pub(super) fn new(loaded: &LoadedGraph, options: Options) -> Self {
        let used = loaded.used.clone();
        let texts = if used.fact_names.is_empty() { Vec::new() } else { loaded.texts.clone() };
        Self { texts, used, options }
    }

    /// Returns the resources that depend on unknown facts, each with the resource that changes the fact. `unknown`
    /// holds these facts, each with that resource. Names and paths depend on no unknown fact: one apply keeps them.
    pub(super) fn find_dependents(
        self,
        unknown: BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        if unknown.is_empty() {
            return BTreeMap::new();
        }
        let causes: Vec<String> = unknown.values().cloned().collect();
        let options = Options {
            facts: self.used.facts,
            unknown_facts: unknown,
            refuse_empty: false,
            ..self.options
        };
        // A graph that is wrong without these values has no dependents to show: the facts themselves are shown.
        let Ok(graph) = config::load_texts(self.texts, &options) else { return BTreeMap::new() };
        let dependent = |it: config::Inactive| {
            let until = it.unknown_until.filter(|until| causes.contains(until))?;
            (*it.identity != *until).then(|| (it.identity.to_string(), until))
        };
        graph.inactive.into_iter().filter_map(dependent).collect()
    }
}

impl Found {
    /// Marks the steps of dependents as unknown. A dependent without a step gets one, because a later value of the fact
    /// may change it.
    pub(super) fn mark_dependents(
        &mut self,
        dependents: &BTreeMap<String, String>,
        order: &HashMap<&str, usize>,
    ) {
        let known: HashMap<String, usize> =
            self.steps.iter().map(|step| step.resource.clone()).zip(0..).collect();
        for (resource, until) in dependents {
            let is_failed = self.failed.iter().any(|one| one.resource == *resource);
            if is_failed || !order.contains_key(resource.as_str()) {
                continue;
            }
            let at = known.get(resource).copied().unwrap_or_else(|| {
                self.steps.push(unknown_step(resource));
                self.steps.len() - 1
            });
            let Some(step) = self.steps.get_mut(at).filter(|step| step.action != Action::Held)
            else {
                continue;
            };
            step.removes = step.is_removal();
            step.creates = false;
            step.action = Action::Unknown;
            step.until = Some(until.clone());
        }
        self.sort_steps(order);
    }
}

/// Returns a step without differences.
fn unknown_step(resource: &str) -> Step {
    Step {
        resource: resource.to_owned(),
        action: Action::Unknown,
        until: None,
        pending_removal: false,
        removes: false,
        differences: Vec::new(),
        premise_digest: 0,
        creates: false,
        follows: false,
    }
}
