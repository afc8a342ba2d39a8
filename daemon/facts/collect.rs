//! The collection of all facts.

use super::check::{FactProblem, check_fact};
use super::host_root::{HostRoot, SystemAnswers};
use super::schema::find_fact;
use super::{cloud, hardware, local, network, os, platform, storage};
use crate::expressions::{Shared, Value};
use std::collections::BTreeMap;

/// The facts of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// A map with all facts: `facts.os.id` is the entry `id` of the entry `os`.
    pub values: Value,
    /// Facts that are absent because their value is wrong, and local facts that cannot be used.
    pub problems: Vec<FactProblem>,
}

impl Facts {
    /// Returns the facts without those that only the administrator sees.
    #[must_use]
    pub fn without_private(&self) -> Self {
        let mut values = self.values.clone();
        if let Value::Map(entries) = &mut values {
            entries.retain(|name, _| !find_fact(name).is_some_and(|spec| spec.private));
        }
        Self { values, problems: self.problems.clone() }
    }
}

/// Facts during the collection.
#[derive(Debug, Default)]
pub(super) struct FactTree {
    values: BTreeMap<&'static str, Value>,
    problems: Vec<FactProblem>,
}

impl FactTree {
    /// Adds a fact that has a row in the schema. A wrong value is reported, and the fact is absent.
    pub(super) fn put(&mut self, name: &'static str, value: impl Into<Value>) {
        let value = value.into();
        match check_fact(name, &value) {
            Ok(()) => {
                self.values.insert(name, value);
            }
            Err(problem) => self.problems.push(problem),
        }
    }

    /// Adds a fact if the host has it.
    pub(super) fn put_some(&mut self, name: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// Reports a problem of a fact.
    pub(super) fn report(&mut self, fact: impl Into<String>, message: impl Into<String>) {
        self.problems.push(FactProblem { fact: fact.into(), message: message.into() });
    }

    fn into_facts(self) -> Facts {
        let values = self.values.into_iter().map(|(name, value)| (name.to_owned(), value));
        Facts { values: nest_values(values), problems: self.problems }
    }
}

/// Converts facts by dotted name to a map of maps.
pub(super) fn nest_values(values: impl Iterator<Item = (String, Value)>) -> Value {
    let mut top = BTreeMap::new();
    for (name, value) in values {
        match name.split_once('.') {
            None => {
                top.insert(name, value);
            }
            Some((group, name)) => {
                let group =
                    top.entry(group.to_owned()).or_insert_with(|| Value::Map(Shared::default()));
                if let Value::Map(entries) = group {
                    entries.insert(name.to_owned(), value);
                }
            }
        }
    }
    Value::Map(top.into())
}

/// Collects all facts from files below the root and from the answers of the kernel. No process is started.
#[must_use]
pub fn collect(root: &HostRoot, answers: &SystemAnswers) -> Facts {
    let mut facts = FactTree::default();
    os::collect_os(root, &mut facts);
    os::collect_names(root, &answers.machine, &mut facts);
    hardware::collect_processors(root, &mut facts);
    hardware::collect_memory(root, &mut facts);
    hardware::collect_block_devices(root, &mut facts);
    network::collect_network(root, answers, &mut facts);
    storage::collect_mounts(root, &mut facts);
    platform::collect_platform(root, &mut facts);
    cloud::collect_cloud(root, &mut facts);
    local::collect_local(root, &mut facts);
    facts.into_facts()
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
