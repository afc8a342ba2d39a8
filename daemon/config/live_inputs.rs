//! The facts and probe values that the running graph uses: their changes, the facts that wait for a reload, and the
//! inputs that change too often.
//!
//! A fact has two values: the present one, and that of the last load, which static fields keep.
//!
//! This file must never read a clock or the host: times and values are arguments.

use super::{Options, UsedInputs};
use crate::expressions::Value;
use crate::facts::changed_facts;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::ResourceId;

/// The number of changes of the graph within [`CONTENTION`] that one input may cause.
const MOST_CHANGES: usize = 5;

/// The time in which changes are counted. An input that was quiet for this time is used again.
pub(crate) const CONTENTION: Duration = Duration::from_mins(10);

/// The difference between a new value of an input and the value in use.
enum InputChange {
    None,
    /// The new value; none if the input has no value any more.
    To(Option<Value>),
}

/// An input whose last value stays in use, because it changed the graph too often.
#[derive(Clone, Debug, PartialEq)]
struct ContendedInput {
    /// The last value that the host had.
    last_seen: Option<Value>,
    /// The time of the last change.
    changed_at: Duration,
}

/// The values of probes, by name.
type ProbeValues = BTreeMap<String, Value>;

/// The inputs of the running graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveInputs {
    used: UsedInputs,
    /// The facts in use.
    facts: Option<Arc<Value>>,
    /// The facts of the last load.
    facts_at_load: Option<Arc<Value>>,
    /// The values of probes in use.
    probes: Arc<ProbeValues>,
    /// The inputs whose change is not expanded yet, such as `facts.hostname`.
    pending: BTreeSet<String>,
    /// The times at which an input changed the graph.
    changes: BTreeMap<String, VecDeque<Duration>>,
    contended: BTreeMap<String, ContendedInput>,
}

impl LiveInputs {
    /// Takes the inputs of a graph that was read from its files. Values of probes that the graph still uses stay.
    pub(crate) fn take_graph(&mut self, used: UsedInputs) {
        self.facts.clone_from(&used.facts);
        self.facts_at_load = used.facts_at_load.clone().or_else(|| used.facts.clone());
        Arc::make_mut(&mut self.probes).retain(|name, _| used.probes.contains(name));
        let is_used = |name: &String| match name.split_once('.') {
            Some(("probe", probe)) => used.probes.contains(probe),
            _ => false,
        };
        // A reload uses the present facts, so that none of them is behind.
        self.contended.retain(|name, _| is_used(name));
        self.changes.retain(|name, _| is_used(name));
        self.pending.clear();
        self.used = used;
    }

    /// Returns the names of the used facts that can change while the graph runs.
    pub(crate) fn fact_names(&self) -> impl Iterator<Item = &str> {
        self.used.fact_names.iter().map(String::as_str)
    }

    /// Returns true if an answer differs from the value in use.
    pub(crate) fn is_new_answer(&self, probe: &str, value: &Value) -> bool {
        let is_contended = self.contended.contains_key(&format!("probe.{probe}"));
        self.uses_probe(probe) && (is_contended || self.probes.get(probe) != Some(value))
    }

    /// Returns true if the graph uses a probe.
    fn uses_probe(&self, name: &str) -> bool {
        self.used.probes.contains(name)
    }

    /// Drops the answers of probes that are inactive: they answer no more, and a restart would not have them. Returns
    /// true if there was one.
    pub(crate) fn forget_answers<'a>(&mut self, inactive: impl Iterator<Item = &'a str>) -> bool {
        let mut has_dropped = false;
        for id in inactive.filter_map(ResourceId::parse).filter(|id| id.kind == "probe") {
            let name = match id.instance {
                "" => id.name.to_owned(),
                instance => format!("{instance}/{}", id.name),
            };
            if self.probes.contains_key(&name) {
                Arc::make_mut(&mut self.probes).remove(&name);
                has_dropped = true;
            }
        }
        has_dropped
    }

    /// Returns true if an input is contended, so that its end must be noticed.
    pub(crate) fn is_contended(&self) -> bool {
        !self.contended.is_empty()
    }

    /// Takes newly collected facts. Returns true if the graph must be expanded again.
    pub(crate) fn take_facts(&mut self, now: Duration, collected: &Value) -> bool {
        let Some(before) = self.facts.clone() else { return false };
        let names: Vec<String> = self.used.fact_names.iter().cloned().collect();
        let changed = changed_facts(&before, collected, names.iter().map(String::as_str));
        let mut facts = collected.clone();
        for name in &names {
            let changed = changed.iter().find(|change| change.name == *name);
            let old = before.at_path(name).cloned();
            let change =
                changed.map_or(InputChange::None, |change| InputChange::To(change.after.clone()));
            if !self.admit_change(now, &format!("facts.{name}"), change) {
                set_at_path(&mut facts, name, old);
            }
        }
        self.facts = Some(Arc::new(facts));
        !self.pending.is_empty()
    }

    /// Takes the answer of a probe. Returns true if the graph must be expanded again.
    pub(crate) fn take_answer(&mut self, now: Duration, probe: &str, value: Value) -> bool {
        if !self.uses_probe(probe) {
            return false;
        }
        let changed = self.probes.get(probe) != Some(&value);
        let is_first = !self.probes.contains_key(probe);
        let name = format!("probe.{probe}");
        let change = if changed { InputChange::To(Some(value.clone())) } else { InputChange::None };
        if self.admit_change(now, &name, change) && changed {
            Arc::make_mut(&mut self.probes).insert(probe.to_owned(), value);
            if is_first {
                // The first answer is no change of the host.
                self.changes.remove(&name);
            }
        }
        !self.pending.is_empty()
    }

    /// Decides about the new value of an input. Returns false if the value in use stays.
    fn admit_change(&mut self, now: Duration, name: &str, change: InputChange) -> bool {
        if let Some(contended) = self.contended.get_mut(name) {
            if let InputChange::To(value) = &change
                && contended.last_seen != *value
            {
                *contended = ContendedInput { last_seen: value.clone(), changed_at: now };
                return false;
            }
            if now.saturating_sub(contended.changed_at) < CONTENTION {
                return false;
            }
            self.contended.remove(name);
            self.changes.remove(name);
        }
        let InputChange::To(value) = change else { return true };
        let recent = self.changes.entry(name.to_owned()).or_default();
        recent.retain(|at| now.saturating_sub(*at) < CONTENTION);
        if recent.len() >= MOST_CHANGES {
            let contended = ContendedInput { last_seen: value, changed_at: now };
            self.contended.insert(name.to_owned(), contended);
            return false;
        }
        self.pending.insert(name.to_owned());
        true
    }

    /// Returns options with the values for the next expansion of the running graph.
    pub(crate) fn options(&self, options: Options) -> Options {
        // Equal facts need one evaluation only.
        let is_behind = !self.used.static_names.is_empty()
            && self.used.fact_names.iter().any(|name| self.is_behind(name));
        Options {
            facts: self.facts.clone().or(options.facts),
            facts_at_load: self.facts_at_load.clone().filter(|_| is_behind),
            probes: Some(Arc::clone(&self.probes)),
            ..options
        }
    }

    /// Returns options with the last answers of the probes, for a reload of the files. The host's facts are collected
    /// anew.
    pub(crate) fn reload_options(&self, options: Options) -> Options {
        Options { probes: Some(Arc::clone(&self.probes)), ..options }
    }

    /// Returns true if a fact has changed since the last load.
    fn is_behind(&self, name: &str) -> bool {
        value_at(self.facts_at_load.as_ref(), name) != value_at(self.facts.as_ref(), name)
    }

    /// Takes the names of an expansion of the running graph: a condition may hide other ones.
    pub(crate) fn take_names(&mut self, used: &UsedInputs) {
        self.used.fact_names.clone_from(&used.fact_names);
        self.used.static_names.clone_from(&used.static_names);
        self.used.probes.clone_from(&used.probes);
        if self.facts.is_none() {
            self.facts.clone_from(&used.facts);
            self.facts_at_load.clone_from(&used.facts);
        }
    }

    /// Ends an expansion. A change that led to another graph is counted. Returns the names of the changed inputs.
    pub(crate) fn end_expansion(&mut self, now: Duration, differs: bool) -> Vec<String> {
        let pending = std::mem::take(&mut self.pending);
        for name in pending.iter().filter(|_| differs) {
            let recent = self.changes.entry(name.clone()).or_default();
            recent.push_back(now);
            while recent.len() > MOST_CHANGES {
                recent.pop_front();
            }
        }
        pending.into_iter().collect()
    }

    /// Returns a line for each changed fact that static fields do not have yet. `until` names what gives it to them: `a
    /// reload`.
    pub(crate) fn waiting_lines(&self, until: &str) -> Vec<String> {
        let line = |name: &String| {
            let from = shown(value_at(self.facts_at_load.as_ref(), name));
            let to = shown(value_at(self.facts.as_ref(), name));
            format!("waits for {until}: facts.{name} changed from {from} to {to}")
        };
        self.used.static_names.iter().filter(|name| self.is_behind(name)).map(line).collect()
    }

    /// Returns a line for each contended input.
    pub(crate) fn contended_lines(&self) -> Vec<String> {
        let line = |name: &String| {
            let minutes = CONTENTION.as_secs() / 60;
            format!(
                "contended: {name} changed the graph more than {MOST_CHANGES} times in {minutes} minutes; its last value stays in use"
            )
        };
        self.contended.keys().map(line).collect()
    }
}

/// Returns the value of a fact.
fn value_at<'facts>(facts: Option<&'facts Arc<Value>>, name: &str) -> Option<&'facts Value> {
    facts?.at_path(name)
}

/// Returns a value for messages.
fn shown(value: Option<&Value>) -> String {
    const LONGEST: usize = 80;
    let Some(value) = value else { return "absent".to_owned() };
    let text = value.embedded_text();
    let text = text.unwrap_or_else(|| serde_json::to_string(value).unwrap_or_default());
    if text.chars().count() <= LONGEST {
        return text;
    }
    format!("{}…", text.chars().take(LONGEST).collect::<String>())
}

/// Sets or removes the value at a dotted path of maps.
fn set_at_path(top: &mut Value, path: &str, value: Option<Value>) {
    match value {
        Some(value) => top.insert_path(path, value),
        None => top.remove_path(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(host_name: &str, mounts: i64) -> Value {
        let json =
            serde_json::json!({"hostname": host_name, "os": {"id": "debian"}, "mounts": mounts});
        Value::from_json(json).expect("facts")
    }

    fn loaded(names: &[&str], static_names: &[&str]) -> LiveInputs {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut live = LiveInputs::default();
        live.take_graph(UsedInputs {
            facts: Some(Arc::new(facts("a", 1))),
            facts_at_load: None,
            fact_names: set(names),
            static_names: set(static_names),
            probes: set(&["old_tls"]),
        });
        live
    }

    fn present(live: &LiveInputs) -> Value {
        live.options(Options::default()).facts.as_deref().expect("facts").clone()
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn only_used_facts_lead_to_an_expansion() {
        let mut live = loaded(&["mounts"], &[]);
        assert!(!live.take_facts(at(1), &facts("b", 1)));
        assert!(live.take_facts(at(2), &facts("b", 2)));
        assert_eq!(present(&live), facts("b", 2));
        assert_eq!(live.options(Options::default()).facts_at_load, None);
        assert_eq!(live.end_expansion(at(2), true), ["facts.mounts"]);
        assert!(!live.take_facts(at(3), &facts("b", 2)));
    }

    #[test]
    fn a_fact_of_a_static_field_has_two_values() {
        let mut live = loaded(&["hostname", "mounts"], &["hostname"]);
        assert!(live.take_facts(at(1), &facts("b", 1)));
        assert_eq!(
            live.waiting_lines("a reload"),
            ["waits for a reload: facts.hostname changed from a to b"]
        );
        let options = live.options(Options::default());
        assert_eq!(options.facts.as_deref(), Some(&facts("b", 1)));
        assert_eq!(options.facts_at_load.as_deref(), Some(&facts("a", 1)));
        live.end_expansion(at(2), true);
        assert!(live.take_facts(at(3), &facts("a", 1)));
        assert_eq!(live.waiting_lines("a reload"), Vec::<String>::new());
        assert_eq!(live.options(Options::default()).facts_at_load, None);
    }

    #[test]
    fn an_input_that_changes_too_often_is_contended() {
        let mut live = loaded(&["mounts"], &[]);
        for change in 0..5 {
            assert!(
                live.take_facts(
                    at(change),
                    &facts("a", 10 + i64::try_from(change).expect("small"))
                )
            );
            live.end_expansion(at(change), true);
        }
        assert!(!live.take_facts(at(6), &facts("a", 20)));
        assert_eq!(present(&live), facts("a", 14));
        assert_eq!(live.contended_lines().len(), 1);
        // Quiet for ten minutes: the value of the host is used again.
        assert!(!live.take_facts(at(300), &facts("a", 20)));
        assert!(live.take_facts(at(606), &facts("a", 20)));
        assert_eq!(live.contended_lines().len(), 0);
    }

    #[test]
    fn changes_that_lead_to_the_same_graph_are_not_counted() {
        let mut live = loaded(&["mounts"], &[]);
        for change in 0..20 {
            assert!(live.take_facts(at(1), &facts("a", 10 + change)));
            live.end_expansion(at(1), false);
        }
        assert_eq!(live.contended_lines().len(), 0);
    }

    #[test]
    fn the_first_answer_of_a_probe_is_no_change() {
        let mut live = loaded(&[], &[]);
        assert!(!live.take_answer(at(1), "unused", Value::Int(1)));
        assert!(live.take_answer(at(1), "old_tls", Value::Bool(true)));
        live.end_expansion(at(1), true);
        assert!(!live.take_answer(at(2), "old_tls", Value::Bool(true)));
        assert!(live.take_answer(at(3), "old_tls", Value::Bool(false)));
        let probes = live.options(Options::default()).probes.expect("probes");
        assert_eq!(probes.get("old_tls"), Some(&Value::Bool(false)));
    }

    #[test]
    fn values_are_set_at_paths() {
        let mut top = facts("a", 1);
        set_at_path(&mut top, "os.id", Some(Value::Int(1)));
        set_at_path(&mut top, "os.no", None);
        set_at_path(&mut top, "new.part", None);
        set_at_path(&mut top, "mounts", None);
        let json = serde_json::json!({"hostname": "a", "os": {"id": 1}});
        assert_eq!(top, Value::from_json(json).expect("facts"));
    }
}
