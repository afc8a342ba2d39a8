//! Values in YAML: nodes to values, and values to nodes.

use super::outcome::{AllOutcomes, Outcome};
use super::{Context, Expander};
use crate::config::document::tree::{Node, Tree};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::config::scalar::Scalar;
use crate::config::source_file::Span;
use crate::expressions::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Adds a value as nodes, all at one position.
pub(super) fn push_value(tree: &mut Tree<'static>, value: &Value, span: Span) -> usize {
    match value {
        Value::Bool(truth) => tree.push_text(truth.to_string(), true, span),
        Value::Int(number) => tree.push_text(number.to_string(), true, span),
        Value::Float(number) => tree.push_text(format!("{number:?}"), true, span),
        Value::Text(text) => tree.push_text(text.clone(), false, span),
        Value::List(items) => {
            let items = items.iter().map(|item| push_value(tree, item, span)).collect();
            tree.push(Node::List(items), span)
        }
        Value::Map(entries) => {
            let mut pairs = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                let key = tree.push_text(key.clone(), false, span);
                pairs.push((key, push_value(tree, value, span)));
            }
            tree.push(Node::Map(pairs), span)
        }
    }
}

/// Returns the value of a scalar as written; none for null.
pub(in crate::config) fn scalar_value(scalar: &Scalar<'_>) -> Option<Value> {
    if scalar.is_null() {
        return None;
    }
    let truth = scalar.boolean().map(Value::Bool);
    let number = || scalar.int().map(Value::Int);
    let float = || scalar.float().filter(|number| number.is_finite()).map(Value::Float);
    let is_number = scalar.plain && !scalar.text.starts_with('0')
        || scalar.text.starts_with("0.")
        || scalar.text == "0";
    let numeric = if is_number { number().or_else(float) } else { None };
    Some(truth.or(numeric).unwrap_or_else(|| Value::Text(scalar.text.to_string())))
}

/// Names the type of a value in messages, with an article.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "a bool",
        Value::Int(_) => "an int",
        Value::Float(_) => "a float",
        Value::Text(_) => "a string",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}

/// Returns a short text of a value for messages.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{}\"", quoted(text)),
        Value::List(items) => format!("a list of {}", items.len()),
        Value::Map(entries) => format!("a map of {}", entries.len()),
        other => other.embedded_text().unwrap_or_else(|| match other {
            Value::Float(number) => number.to_string(),
            _ => String::new(),
        }),
    }
}

impl Expander<'_> {
    /// Converts a node to a value, with its expressions evaluated. Problems are reported.
    pub(super) fn node_value(&mut self, context: &Context, node: usize) -> Option<Value> {
        let outcome = self.node_outcome(context, node);
        self.known_now(context, node, outcome)
    }

    /// Converts a node to a value, which may wait for a probe or a fact. All problems are reported in one run.
    pub(super) fn node_outcome(&mut self, context: &Context, node: usize) -> Outcome<Value> {
        match context.tree().node(node) {
            Some(Node::Scalar(scalar)) if scalar.text.contains("${") => {
                self.evaluate_scalar(context, node)
            }
            Some(Node::Scalar(scalar)) => {
                let value = scalar_value(scalar);
                self.doubt_text(context, node, "a value");
                if value.is_none() {
                    let problem = Problem::new(Code::Variable, "expected a value, found nothing");
                    let hint = "write a value, such as \"\" for an empty string";
                    self.report(context, node, problem.hint(hint));
                }
                value.map_or(Outcome::Failed, Outcome::Known)
            }
            Some(Node::List(items)) => {
                let mut all = AllOutcomes::default();
                for item in items.clone() {
                    all.add(self.node_outcome(context, item));
                }
                all.finish().map(|values| Value::List(values.into()))
            }
            Some(Node::Map(pairs)) => self.map_outcome(context, node, pairs.clone()),
            Some(Node::Alias(_)) | None => Outcome::Failed,
        }
    }

    fn map_outcome(
        &mut self,
        context: &Context,
        node: usize,
        pairs: Vec<(usize, usize)>,
    ) -> Outcome<Value> {
        if !self.count_map(context, node) {
            return Outcome::Failed;
        }
        let (mut names, mut all) = (BTreeSet::new(), AllOutcomes::default());
        for (key, value) in pairs {
            let Some(name) = context.text_of(key).map(str::to_owned) else {
                let what = "a key should be a string";
                let hint = "quote expressions inside of { }: \"${…}\"";
                self.report(context, key, Problem::new(Code::Type, what).hint(hint));
                return Outcome::Failed;
            };
            if !names.insert(name.clone()) {
                let what = format!("`{}` is given twice", quoted(&name));
                self.report(context, key, Problem::new(Code::DuplicateKey, what));
                return Outcome::Failed;
            }
            all.add(self.node_outcome(context, value).map(|value| (name, value)));
        }
        all.finish().map(|entries| {
            let entries: BTreeMap<String, Value> = entries.into_iter().collect();
            Value::Map(entries.into())
        })
    }
}
