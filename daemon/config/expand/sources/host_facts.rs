//! The facts of the host with their types, and the values of probes: the present facts, those of the last load, and
//! those that a step of a plan changes.

use crate::config::expand::evaluate::Root;
use crate::expressions::{Value, ValueType};
use crate::facts::{self, HostRoot, SystemAnswers};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The facts, collected at the first use, and the values of probes.
#[derive(Debug)]
pub(in crate::config::expand) struct Facts {
    given: Option<Value>,
    probes: BTreeMap<String, Value>,
    /// The facts of the last load, for static fields; none if they are the present ones.
    at_load: Option<Arc<Self>>,
    /// The facts that a resource will change, each with the resource.
    unknown: BTreeMap<String, String>,
    is_used: AtomicBool,
    root: OnceLock<Root>,
}

impl Facts {
    /// Creates the facts from those that the caller gives; else the facts of the host are used.
    pub(in crate::config::expand) fn new(
        given: Option<Value>,
        probes: Option<BTreeMap<String, Value>>,
    ) -> Self {
        let probes = probes.unwrap_or_default();
        let (at_load, unknown) = (None, BTreeMap::new());
        let (is_used, root) = (AtomicBool::new(false), OnceLock::new());
        Self { given, probes, at_load, unknown, is_used, root }
    }

    /// Sets the facts of the last load. Facts that are equal to the present ones need no evaluation of their own.
    pub(in crate::config::expand) fn with_load(self, at_load: Option<Value>) -> Self {
        let at_load = at_load.filter(|at_load| self.given.as_ref() != Some(at_load));
        Self { at_load: at_load.map(|given| Arc::new(Self::new(Some(given), None))), ..self }
    }

    /// Sets the facts that a resource will change, each with the resource. Static fields keep the present values.
    pub(in crate::config::expand) fn with_unknown(self, unknown: BTreeMap<String, String>) -> Self {
        let given = (!unknown.is_empty()).then(|| self.given.clone());
        let present = || Some(Arc::new(Self::new(given?, None)));
        Self { at_load: self.at_load.clone().or_else(present), unknown, ..self }
    }

    /// Returns the facts of the last load, if they are other ones than the present facts.
    pub(in crate::config::expand) const fn at_load(&self) -> Option<&Arc<Self>> {
        self.at_load.as_ref()
    }

    /// Returns the resource that will change a fact, or some fact for the name `facts` alone.
    pub(in crate::config::expand) fn unknown_until(&self, name: &str) -> Option<&String> {
        if self.unknown.is_empty() {
            return None;
        }
        if name == "facts" {
            return self.unknown.values().next();
        }
        let name = name.strip_prefix("facts.")?;
        let changed = self.unknown.iter().find(|(fact, _)| facts::names_overlap(fact, name));
        changed.map(|(_, until)| until)
    }

    pub(in crate::config::expand) fn root(&self) -> &Root {
        self.is_used.store(true, Ordering::Relaxed);
        self.root.get_or_init(|| {
            let value = self.given.clone().unwrap_or_else(collect);
            let value_type = schema_type(&value);
            Root { value: Arc::new(value), value_type }
        })
    }

    /// Collects the facts, if that did not happen before.
    pub(in crate::config::expand) fn use_root(&self) {
        self.root();
    }

    /// Returns true after the facts were collected.
    pub(in crate::config::expand) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Returns the facts.
    pub(in crate::config::expand) fn shared_value(&self) -> Arc<Value> {
        Arc::clone(&self.root().value)
    }

    /// Returns the values of the probes of an instance and of those within it, by their names as seen from it.
    pub(in crate::config::expand) fn probes_of(&self, instance: &str) -> BTreeMap<String, Value> {
        let prefix = if instance.is_empty() { String::new() } else { format!("{instance}/") };
        let own = |(name, value): (&String, &Value)| {
            let name = name.strip_prefix(&prefix)?;
            Some((name.to_owned(), value.clone()))
        };
        self.probes.iter().filter_map(own).collect()
    }

    /// Returns the values of probes.
    pub(in crate::config::expand) const fn probes(&self) -> &BTreeMap<String, Value> {
        &self.probes
    }
}

/// Collects the facts of this host.
fn collect() -> Value {
    facts::collect(&HostRoot::of_this_host(), &SystemAnswers::of_this_host()).values
}

/// Returns the type of facts.
fn schema_type(facts: &Value) -> Arc<ValueType> {
    Arc::new(facts::facts_type(facts))
}
