//! The inputs that the expressions of a graph use, and the shape of a graph, by which a daemon decides about a swap.

use super::LoadedGraph;
use super::hash::Stable;
use crate::expressions::{Shared, Value};
use std::collections::BTreeSet;
use std::hash::{Hash as _, Hasher};
use std::sync::Arc;
use steadfast_resources::{ResourceId, Sent, SentValue, Value as FieldValue};

/// The facts and probes that the expressions of a graph use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsedInputs {
    /// All facts of the host as the expressions saw them; `None` if no expression uses a fact.
    pub facts: Option<Arc<Value>>,
    /// The facts of the last load, which static fields keep; `None` if they are the present ones.
    pub facts_at_load: Option<Arc<Value>>,
    /// The dotted names of the used facts, without `facts.` in front.
    pub fact_names: BTreeSet<String>,
    /// The used facts that a static field uses, also through a variable. They change at a reload only.
    pub static_names: BTreeSet<String>,
    /// The names of the used probes.
    pub probes: BTreeSet<String>,
}

impl UsedInputs {
    /// Returns the values of the used facts alone, as they are stored with a graph.
    #[must_use]
    pub(super) fn used_facts(&self, facts: Option<&Value>) -> Option<Value> {
        let facts = facts?;
        let mut used = Value::Map(Shared::default());
        for name in &self.fact_names {
            if let Some(value) = facts.at_path(name) {
                used.insert_path(name, value.clone());
            }
        }
        Some(used)
    }
}

/// Returns the name and the value of a probe, for an identity such as `probe[old_tls]` or `shop/probe[old_tls]` and its
/// sent values. The name of the second one is `shop/old_tls`.
#[must_use]
pub fn probe_answer(identity: &str, sent: &Sent) -> Option<(String, Value)> {
    let id = ResourceId::parse(identity).filter(|id| id.kind == "probe")?;
    let name = match id.instance {
        "" => id.name.to_owned(),
        instance => format!("{instance}/{}", id.name),
    };
    let shown = |key: &str| match &sent.iter().find(|(name, _)| *name == key)?.1 {
        SentValue::Shown(value) => Some(value),
        SentValue::Secret { .. } | SentValue::TooLong => None,
    };
    let json = |value: &FieldValue| match value {
        FieldValue::Text(text) => Value::from_json(serde_json::from_str(text).ok()?).ok(),
        _ => None,
    };
    let plain = |value: &FieldValue| match value {
        FieldValue::Text(text) => Some(Value::Text(text.clone())),
        FieldValue::Int(number) => Some(Value::Int(*number)),
        FieldValue::Float(number) => Some(Value::Float(*number)),
        FieldValue::Bool(truth) => Some(Value::Bool(*truth)),
        _ => None,
    };
    let typed = ["bool", "int", "float", "output"].into_iter().find_map(shown);
    let value = match shown("json") {
        Some(value) => json(value),
        None => plain(typed?),
    };
    Some((name, value?))
}

/// A standard hasher over [`Stable`], for types that implement `Hash`.
struct ShapeHasher(Stable);

impl Hasher for ShapeHasher {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.0 = self.0.number(u64::from_le_bytes(word));
        }
    }
}

impl LoadedGraph {
    /// Returns a hash of everything that the driver sees of this graph. Two expansions with the same shape run the same
    /// way, so the second one is not swapped in.
    #[must_use]
    pub fn shape(&self) -> u64 {
        let mut hasher = ShapeHasher(Stable::new());
        self.name.hash(&mut hasher);
        for vertex in &self.vertices {
            vertex.identity.hash(&mut hasher);
            vertex.definition.hash(&mut hasher);
            vertex.meta.hash(&mut hasher);
            (vertex.rewatch, vertex.autogroup, vertex.delete, vertex.protect).hash(&mut hasher);
            vertex.aliases.hash(&mut hasher);
            vertex.after.hash(&mut hasher);
            vertex.notifies.hash(&mut hasher);
        }
        self.edges.hash(&mut hasher);
        self.semaphores.hash(&mut hasher);
        for (window, _) in &self.windows {
            window.hash(&mut hasher);
        }
        self.usual.hash(&mut hasher);
        hasher.finish()
    }
}
