//! The values of variables. With changed facts there are two passes: one with the present facts, and one with the
//! facts of the last load, for static fields.

use super::variables::{Definition, Source};
use crate::config::document::tree::Node;
use crate::config::expand::evaluate::Vars;
use crate::config::expand::names::is_from_probe;
use crate::config::expand::outcome::Outcome;
use crate::config::expand::sources::probe_types::with_types;
use crate::config::expand::values::{kind_of, shown};
use crate::config::expand::{Context, Expander};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::config::scalar::Scalar;
use crate::config::source_file::SourceFile;
use crate::expressions::{Shared, Value, ValueType};
use crate::nearest_name::nearest;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The values of variables with one set of facts.
#[derive(Default)]
pub(in crate::config::expand) struct VariablePass {
    /// True for the facts of the last load.
    is_at_load: bool,
    /// The values, which the root of the variables shares.
    known: Shared<BTreeMap<String, Value>>,
    /// The variables whose problem is reported.
    failed: BTreeSet<String>,
    /// The variables that wait for a resource, with the resource.
    unknown: BTreeMap<String, String>,
    /// The known parts of the maps that wait for a resource.
    partial: BTreeMap<String, Value>,
    /// The types of the variables that wait for a resource, as far as they are known.
    pub(super) unknown_types: BTreeMap<String, ValueType>,
    /// The variables that use a probe.
    from_probes: BTreeSet<String>,
}

/// The longest chain of variables that use each other: each one is evaluated inside the evaluation of another.
const LONGEST_CHAIN: usize = 100;

fn too_deep() -> Problem {
    let what = format!("variables use each other more than {LONGEST_CHAIN} levels deep");
    Problem::new(Code::Variable, what).hint("shorten the chain")
}

impl Expander<'_> {
    /// Evaluates all variables, and returns them as a root of names.
    pub(in crate::config::expand) fn evaluate_variables(&mut self) -> Arc<Vars> {
        if let Some(known) = &self.variables.evaluated {
            return Arc::clone(known);
        }
        let mut evaluated = self.evaluate_pass();
        if self.facts.at_load().is_some() && evaluated.failed.is_empty() {
            let used = self.used.clone();
            self.swap_passes(true);
            evaluated.at_load = Some(Arc::new(self.evaluate_pass()));
            self.swap_passes(false);
            // The budget holds for the present facts: the load was within it.
            self.used = used;
        }
        let evaluated = Arc::new(evaluated);
        self.variables.evaluated = Some(Arc::clone(&evaluated));
        evaluated
    }

    /// Begins or ends the pass with the facts of the last load.
    fn swap_passes(&mut self, is_at_load: bool) {
        std::mem::swap(&mut self.variables.pass, &mut self.variables.other_pass);
        self.variables.pass.is_at_load = is_at_load;
    }

    /// Evaluates all variables of one pass.
    fn evaluate_pass(&mut self) -> Vars {
        let names: Vec<String> = self.variables.defined.keys().cloned().collect();
        for name in &names {
            self.evaluate_variable(name);
        }
        let pass = &self.variables.pass;
        let mut known = pass.known.clone();
        if !pass.partial.is_empty() {
            // The root no longer shares its values with the pass.
            known.extend(pass.partial.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        Vars {
            root: with_types(known, &pass.unknown_types),
            unknown: pass.unknown.clone(),
            partial: pass.partial.keys().cloned().collect(),
            from_probes: pass.from_probes.clone(),
            failed: pass.failed.clone(),
            at_load: None,
        }
    }

    /// Evaluates one variable, and before it the variables that it uses.
    fn evaluate_variable(&mut self, name: &str) {
        let pass = &self.variables.pass;
        if pass.known.contains_key(name)
            || pass.failed.contains(name)
            || pass.unknown.contains_key(name)
        {
            return;
        }
        let Some(definitions) = self.variables.defined.get(name).cloned() else { return };
        self.variables.open.push(name.to_owned());
        let lowest = definitions.first().cloned();
        let highest = definitions.last().cloned();
        let value = match (lowest, highest) {
            (Some(lowest), Some(highest)) => self.value_of_layers(name, &lowest, &highest),
            _ => Outcome::Failed,
        };
        self.variables.open.pop();
        match value {
            Outcome::Known(value) => {
                self.variables.pass.known.insert(name.to_owned(), value);
            }
            Outcome::Unknown(until) => {
                self.variables.pass.unknown.insert(name.to_owned(), until);
            }
            Outcome::Failed => {
                self.is_complete = false;
                self.variables.pass.failed.insert(name.to_owned());
            }
        }
    }

    fn value_of_layers(
        &mut self,
        name: &str,
        lowest: &Definition,
        highest: &Definition,
    ) -> Outcome<Value> {
        if let Source::Text(_) = &lowest.written {
            let known = self.variables.defined.iter();
            let known = known.filter(|(_, it)| it.iter().any(|d| d.layer < 3));
            let near = nearest(name, known.map(|(name, _)| name.as_str()));
            let near = near.map(|near| format!("did you mean `{near}`?"));
            let what = format!("--var {}: the graph has no such variable", quoted(name));
            let hint = near.unwrap_or_else(|| "define it in `vars:` of the graph".to_owned());
            self.problems.push(Problem::new(Code::Variable, what).hint(hint));
            return Outcome::Failed;
        }
        let base = self.value_of_definition(name, lowest);
        if lowest.layer == highest.layer && lowest.is_same(highest) {
            return base;
        }
        let base = match base {
            Outcome::Known(base) => base,
            other => return other,
        };
        let mut hint = "the lowest definition of a variable gives its type".to_owned();
        let (value, shown_value) = match &highest.written {
            Source::Text(text) => (convert_text(text, &base), format!("\"{}\"", quoted(text))),
            Source::Node(..) => match self.value_of_definition(name, highest) {
                Outcome::Known(value) => {
                    let shown = shown(&value);
                    if let (Value::Text(_), Value::Int(_) | Value::Float(_) | Value::Bool(_)) =
                        (&base, &value)
                    {
                        hint = format!("write `{}: \"{shown}\"`: {hint}", quoted(name));
                    }
                    (adapt(value, &base), shown)
                }
                other => return other,
            },
        };
        if let Some(value) = value {
            return Outcome::Known(value);
        }
        let first = lowest.place();
        let at = first.as_ref().map(|it| format!(" ({}:{})", short_name(&it.file), it.line));
        let at = at.unwrap_or_default();
        let what = format!("`{}` is {}{at}, got {shown_value}", quoted(name), kind_of(&base));
        let problem = Problem::new(Code::Variable, what).hint(hint);
        self.problems.push(problem.at(highest.place()).at(first));
        Outcome::Failed
    }

    fn value_of_definition(&mut self, name: &str, definition: &Definition) -> Outcome<Value> {
        let Source::Node(context, node) = &definition.written else { return Outcome::Failed };
        let mut names = Vec::new();
        self.names_below(context, *node, &mut names);
        self.uses.note_variable(name, &names);
        let mut own = BTreeMap::new();
        let (mut unknown, mut partial) = (BTreeMap::new(), BTreeSet::new());
        for used in &names {
            if is_from_probe(&context.scope, used) {
                self.variables.pass.from_probes.insert(name.to_owned());
            }
            let Some(variable) = used.strip_prefix("vars.") else { continue };
            let variable = variable.split('.').next().unwrap_or_default();
            if self.variables.open.iter().any(|open| open == variable) {
                let mut chain = self.variables.open.clone();
                chain.push(variable.to_owned());
                let what = format!("variables use each other: {}", chain.join(" → "));
                self.report(context, *node, Problem::new(Code::Variable, what));
                return Outcome::Failed;
            }
            if self.variables.open.len() >= LONGEST_CHAIN {
                self.report(context, *node, too_deep());
                return Outcome::Failed;
            }
            if !self.variables.defined.contains_key(variable) {
                let names = self.variables.defined.keys().map(String::as_str);
                let near = self.wants_hints().then(|| nearest(variable, names));
                let near = near.flatten();
                let hint = near.map(|near| format!("did you mean `vars.{near}`?"));
                let what = format!("no variable `{}`", quoted(variable));
                let problem = Problem::new(Code::Variable, what).hint_if(hint);
                self.report(context, *node, problem);
                return Outcome::Failed;
            }
            self.evaluate_variable(variable);
            if self.variables.pass.from_probes.contains(variable) {
                self.variables.pass.from_probes.insert(name.to_owned());
            }
            match self.variables.pass.known.get(variable) {
                Some(value) => drop(own.insert(variable.to_owned(), value.clone())),
                None if self.variables.pass.failed.contains(variable) => return Outcome::Failed,
                None => {
                    let pass = &self.variables.pass;
                    let until = pass.unknown.get(variable).cloned().unwrap_or_default();
                    unknown.insert(variable.to_owned(), until);
                    if let Some(parts) = pass.partial.get(variable) {
                        own.insert(variable.to_owned(), parts.clone());
                        partial.insert(variable.to_owned());
                    }
                }
            }
        }
        if names.is_empty() {
            return self.node_outcome(context, *node);
        }
        let pass = &self.variables.pass;
        if pass.is_at_load && pass.from_probes.contains(name) {
            // No static field may use the variable.
            return Outcome::Unknown("a probe".to_owned());
        }
        let mut context = Context::clone(context);
        if pass.is_at_load {
            context = context.at_load().into_owned();
        }
        self.see_probes(&mut context);
        let from_probes = BTreeSet::new();
        let types = &self.variables.pass.unknown_types;
        let types = types.iter().filter(|(variable, _)| unknown.contains_key(*variable));
        let types = types.map(|(variable, of)| (variable.clone(), of.clone())).collect();
        context.scope.vars = Arc::new(Vars {
            root: with_types(own.into(), &types),
            unknown,
            partial,
            from_probes,
            failed: BTreeSet::new(),
            at_load: None,
        });
        self.value_with_parts(name, &context, *node)
    }

    /// Evaluates the definition of a variable; notes the type, or the known parts, of one that waits.
    fn value_with_parts(&mut self, name: &str, context: &Context, node: usize) -> Outcome<Value> {
        if context.tree().scalar(node).is_some() {
            return self.typed_variable(name, context, node);
        }
        let outcome = self.node_outcome(context, node);
        if let Outcome::Unknown(_) = outcome {
            let parts = self.run_quietly(|expander| expander.known_parts(context, node));
            self.variables.pass.partial.extend(parts.map(|parts| (name.to_owned(), parts)));
        }
        outcome
    }

    /// Returns the known parts of a map of which another part waits.
    fn known_parts(&mut self, context: &Context, node: usize) -> Option<Value> {
        let Some(Node::Map(pairs)) = context.tree().node(node) else { return None };
        let mut known = BTreeMap::new();
        for (key, value) in pairs.clone() {
            let part = match self.node_outcome(context, value) {
                Outcome::Known(value) => Some(value),
                Outcome::Unknown(_) => self.known_parts(context, value),
                Outcome::Failed => None,
            };
            let name = context.text_of(key).map(str::to_owned);
            known.extend(name.zip(part));
        }
        Some(Value::Map(known.into()))
    }

    /// Collects the names that the expressions below a node use.
    pub(in crate::config::expand) fn names_below(
        &mut self,
        context: &Context,
        node: usize,
        names: &mut Vec<String>,
    ) {
        match context.tree().node(node) {
            Some(Node::Scalar(scalar)) if scalar.text.contains("${") => {
                names.extend(self.names_in(context, node));
            }
            Some(Node::List(items)) => {
                for item in items.clone() {
                    self.names_below(context, item, names);
                }
            }
            Some(Node::Map(pairs)) => {
                for (_, value) in pairs.clone() {
                    self.names_below(context, value, names);
                }
            }
            _ => {}
        }
    }
}

/// Converts a text of the command line to the type of a value.
fn convert_text(text: &str, like: &Value) -> Option<Value> {
    let scalar = Scalar { text: Cow::Borrowed(text), plain: true };
    match like {
        Value::Text(_) => Some(Value::Text(text.to_owned())),
        Value::Int(_) => scalar.int().map(Value::Int),
        Value::Bool(_) => scalar.boolean().map(Value::Bool),
        Value::Float(_) => scalar.float().filter(|it| it.is_finite()).map(Value::Float),
        Value::List(_) | Value::Map(_) => {
            let file = SourceFile::new(
                "--var",
                Path::new("-").into(),
                Path::new("").into(),
                text.to_owned(),
            );
            let json: serde_json::Value = serde_yaml::from_str(&file.text).ok()?;
            adapt(Value::from_json(json).ok()?, like)
        }
    }
}

/// Returns a value if its type is that of another, or fits there.
fn adapt(value: Value, like: &Value) -> Option<Value> {
    match (&value, like) {
        (Value::Int(number), Value::Float(_)) => {
            #[expect(clippy::cast_precision_loss, reason = "a number with a fraction is wanted")]
            let number = *number as f64;
            Some(Value::Float(number))
        }
        (Value::Bool(_), Value::Bool(_))
        | (Value::Int(_), Value::Int(_))
        | (Value::Float(_), Value::Float(_))
        | (Value::Text(_), Value::Text(_))
        | (Value::List(_), Value::List(_))
        | (Value::Map(_), Value::Map(_)) => Some(value),
        _ => None,
    }
}

/// Returns the last part of a path.
fn short_name(display: &str) -> &str {
    display.rsplit('/').next().unwrap_or(display)
}
