//! Variables: their definitions in layers, and their values. The lowest definition gives the type, the highest the
//! value.

use crate::config::document::tree::Node;
use crate::config::expand::evaluate::{Outcome, Scope, Vars};
use crate::config::expand::sources::probe_types::with_types;
use crate::config::expand::values::{kind_of, shown};
use crate::config::expand::{Context, Expander};
use crate::config::problem::code::Code;
use crate::config::problem::{Place, Problem, quoted};
use crate::config::scalar::Scalar;
use crate::config::source_file::SourceFile;
use crate::expressions::{Value, ValueType};
use crate::nearest_name::nearest;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The definitions of all variables, and the values so far.
#[derive(Default)]
pub(in crate::config::expand) struct Variables {
    /// The definitions by name, the lowest first.
    defined: BTreeMap<String, Vec<Definition>>,
    values: BTreeMap<String, Option<Value>>,
    unknown: BTreeMap<String, String>,
    /// The types of the variables that wait for a probe, as far as they are known.
    pub(super) unknown_types: BTreeMap<String, ValueType>,
    from_probes: BTreeSet<String>,
    /// The variables that are being evaluated.
    open: Vec<String>,
    /// The result, as long as no definition is added.
    evaluated: Option<Arc<Vars>>,
}

/// One definition of a variable.
#[derive(Clone)]
struct Definition {
    /// The layer: 0 for `vars:`, 1 for its `vars_files:`, 2 for `--vars`, 3 for `--var`.
    layer: u8,
    written: Source,
}

/// The value of a definition as written.
#[derive(Clone)]
enum Source {
    /// A node of a file.
    Node(Box<Context>, usize),
    /// A text of the command line.
    Text(String),
}

impl Expander<'_> {
    /// Collects `vars:` and `vars_files:` of a file.
    pub(in crate::config::expand) fn define_variables(&mut self, context: &Context) {
        let Some(root) = context.tree().root() else { return };
        if let Some((_, node)) = context.tree().entry(root, "vars") {
            self.define_all(context, node, 0);
        }
        let Some((_, node)) = context.tree().entry(root, "vars_files") else { return };
        let items = match context.tree().node(node) {
            Some(Node::List(items)) => items.clone(),
            _ if context.is_null(node) => Vec::new(),
            _ => vec![node],
        };
        for item in items {
            self.define_file(context, item);
        }
    }

    /// Collects one entry of `vars_files:`: a path, or a map with `file` and `optional`.
    fn define_file(&mut self, context: &Context, item: usize) {
        let (file, is_optional) = match context.tree().node(item) {
            Some(Node::Map(_)) => {
                let file = context.tree().entry(item, "file").map(|(_, value)| value);
                let optional = context.tree().entry(item, "optional").map(|(_, value)| value);
                let known = ["file", "optional"];
                for (key, _) in context.tree().entries(item).to_vec() {
                    let text = context.text_of(key).unwrap_or_default().to_owned();
                    if !known.contains(&text.as_str()) {
                        let what = format!("unknown key `{}` in `vars_files`", quoted(&text));
                        let hint = "valid keys: file, optional";
                        self.report(context, key, Problem::new(Code::UnknownKey, what).hint(hint));
                    }
                }
                let is_optional = optional.is_some_and(|it| context.text_of(it) == Some("true"));
                (file, is_optional)
            }
            _ => (Some(item), false),
        };
        let Some(file) = file else {
            let what = "an entry of `vars_files` needs `file`";
            self.report(context, item, Problem::new(Code::MissingKey, what));
            return;
        };
        let Some(path) = self.static_path(context, file) else { return };
        match self.open_file(context, &path) {
            Ok(Some(parsed)) => self.define_parsed(&parsed, context, 1),
            Ok(None) if is_optional => {}
            Ok(None) => {
                let problem = crate::config::expand::sources::inputs::missing_file(&path);
                let problem = problem.hint("add the file, or write {file: …, optional: true}");
                self.report(context, file, problem);
            }
            Err(problem) => self.report(context, file, problem),
        }
    }

    /// Collects the files of `--vars` and of the settings, and then the values of `--var`.
    pub(in crate::config::expand) fn define_given_variables(&mut self) {
        for path in self.inputs.vars_files.clone() {
            let display = path.display().to_string();
            let absolute = std::path::absolute(&path).unwrap_or(path);
            match self.inputs.read(&absolute, &display) {
                Ok(Some(number)) => {
                    if let Some(parsed) = self.parse_source(number) {
                        let context = self.context_of(parsed);
                        self.define_parsed_at(&context, 2);
                    }
                }
                Ok(None) => {
                    let problem = crate::config::expand::sources::inputs::missing_file(&display);
                    self.problems.push(problem.hint("`--vars` needs an existing file"));
                    self.is_complete = false;
                }
                Err(problem) => {
                    self.problems.push(problem);
                    self.is_complete = false;
                }
            }
        }
        for (name, text) in self.inputs.vars.clone() {
            let written = Source::Text(text);
            self.add_definition(name, Definition { layer: 3, written });
        }
    }

    fn define_parsed(
        &mut self,
        parsed: &Arc<crate::config::expand::Parsed>,
        from: &Context,
        layer: u8,
    ) {
        let context = Context { parsed: Arc::clone(parsed), ..from.clone() };
        self.define_parsed_at(&context, layer);
    }

    fn define_parsed_at(&mut self, context: &Context, layer: u8) {
        if let Some(root) = context.tree().root().filter(|root| !context.is_null(*root)) {
            self.define_all(context, root, layer);
        }
    }

    /// Returns the context of a file that no file of the graph names.
    pub(in crate::config::expand) fn context_of(
        &self,
        parsed: Arc<crate::config::expand::Parsed>,
    ) -> Context {
        Context {
            open: vec![parsed.file.path.clone()],
            parsed,
            scope: Scope::new(&self.facts, ""),
            origin: Arc::default(),
            inactive: None,
            item: None,
            probes: Arc::default(),
        }
    }

    /// Collects the entries of a map of variables.
    fn define_all(&mut self, context: &Context, node: usize, layer: u8) {
        if context.is_null(node) {
            return;
        }
        let Some(Node::Map(pairs)) = context.tree().node(node) else {
            let what = "variables should be a map, such as `vars: {workers: 4}`";
            self.report(context, node, Problem::new(Code::Variable, what));
            return;
        };
        for (key, value) in pairs.clone() {
            let Some(name) = context.text_of(key).map(str::to_owned) else { continue };
            if !is_name(&name) {
                let what = format!("`{}` cannot be the name of a variable", quoted(&name));
                let hint = "use letters, digits and `_`, beginning with a letter";
                self.report(context, key, Problem::new(Code::Variable, what).hint(hint));
                continue;
            }
            let is_twice = layer == 0
                && self
                    .variables
                    .defined
                    .get(&name)
                    .is_some_and(|it| it.iter().any(|d| d.layer == 0));
            if is_twice {
                let what = format!("the variable `{}` is given twice", quoted(&name));
                let first = self.variables.defined.get(&name).and_then(|it| it.first()?.place());
                let problem = Problem::new(Code::DuplicateKey, what).hint("keep one of them");
                let problem = problem.at(Some(context.place(context.tree().span(key)))).at(first);
                self.is_complete = false;
                self.problems.push(problem);
                continue;
            }
            let written = Source::Node(Box::new(context.clone()), value);
            self.add_definition(name, Definition { layer, written });
        }
    }

    /// Returns the definitions of a variable, the lowest first.
    pub(in crate::config::expand) fn layers_of(
        &self,
        name: &str,
    ) -> Vec<crate::config::expand::ask::Layer> {
        let definitions = self.variables.defined.get(name).map(Vec::as_slice).unwrap_or_default();
        let layers = definitions.iter().map(|definition| match &definition.written {
            Source::Text(text) => crate::config::expand::ask::Layer {
                place: "--var".to_owned(),
                written: text.clone(),
            },
            Source::Node(context, node) => {
                let span = context.tree().span(*node);
                let place = context.place(span);
                let written = context.parsed.file.text.get(span.start as usize..span.end as usize);
                crate::config::expand::ask::Layer {
                    place: format!("{}:{}:{}", place.file, place.line, place.column),
                    written: written.unwrap_or_default().trim_end().to_owned(),
                }
            }
        });
        layers.collect()
    }

    fn add_definition(&mut self, name: String, definition: Definition) {
        self.variables.evaluated = None;
        let all = self.variables.defined.entry(name).or_default();
        let at = all.partition_point(|known| known.layer <= definition.layer);
        all.insert(at, definition);
    }

    /// Evaluates all variables, and returns them as a root of names.
    pub(in crate::config::expand) fn evaluate_variables(&mut self) -> Arc<Vars> {
        if let Some(known) = &self.variables.evaluated {
            return Arc::clone(known);
        }
        let names: Vec<String> = self.variables.defined.keys().cloned().collect();
        for name in &names {
            self.evaluate_variable(name);
        }
        let failed = self.variables.values.iter().filter(|(_, value)| value.is_none());
        let failed = failed.map(|(name, _)| name.clone()).collect();
        let known = self.variables.values.iter();
        let known = known.filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        let evaluated = Arc::new(Vars {
            root: with_types(known.collect(), &self.variables.unknown_types),
            unknown: self.variables.unknown.clone(),
            from_probes: self.variables.from_probes.clone(),
            failed,
        });
        self.variables.evaluated = Some(Arc::clone(&evaluated));
        evaluated
    }

    /// Evaluates one variable, and before it the variables that it uses.
    fn evaluate_variable(&mut self, name: &str) {
        if self.variables.values.contains_key(name) || self.variables.unknown.contains_key(name) {
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
                self.variables.values.insert(name.to_owned(), Some(value));
            }
            Outcome::Unknown(until) => {
                self.variables.unknown.insert(name.to_owned(), until);
            }
            Outcome::Failed => {
                self.is_complete = false;
                self.variables.values.insert(name.to_owned(), None);
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
        if lowest.layer == highest.layer && lowest.place() == highest.place() {
            return base;
        }
        let base = match base {
            Outcome::Known(base) => base,
            other => return other,
        };
        let (value, shown_value) = match &highest.written {
            Source::Text(text) => (convert_text(text, &base), quoted(text)),
            Source::Node(..) => match self.value_of_definition(name, highest) {
                Outcome::Known(value) => {
                    let shown = shown(&value).trim_matches('"').to_owned();
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
        let what = format!("`{}` is {}{at}, got \"{shown_value}\"", quoted(name), kind_of(&base));
        let hint = "the lowest definition of a variable gives its type";
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
        let mut unknown = BTreeMap::new();
        for used in &names {
            if crate::config::expand::names::is_from_probe(&context.scope, used) {
                self.variables.from_probes.insert(name.to_owned());
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
            if !self.variables.defined.contains_key(variable) {
                let near = nearest(variable, self.variables.defined.keys().map(String::as_str));
                let hint = near.map(|near| format!("did you mean `vars.{near}`?"));
                let what = format!("no variable `{}`", quoted(variable));
                let problem = Problem::new(Code::Variable, what).hint_if(hint);
                self.report(context, *node, problem);
                return Outcome::Failed;
            }
            self.evaluate_variable(variable);
            if self.variables.from_probes.contains(variable) {
                self.variables.from_probes.insert(name.to_owned());
            }
            match self.variables.values.get(variable) {
                Some(Some(value)) => drop(own.insert(variable.to_owned(), value.clone())),
                Some(None) => return Outcome::Failed,
                None => {
                    let until = self.variables.unknown.get(variable).cloned().unwrap_or_default();
                    unknown.insert(variable.to_owned(), until);
                }
            }
        }
        if names.is_empty() {
            return self.node_value(context, *node).map_or(Outcome::Failed, Outcome::Known);
        }
        let mut context = Context::clone(context);
        self.see_probes(&mut context);
        let from_probes = BTreeSet::new();
        let types = &self.variables.unknown_types;
        let types = types.iter().filter(|(variable, _)| unknown.contains_key(*variable));
        let types = types.map(|(variable, of)| (variable.clone(), of.clone())).collect();
        context.scope.vars = Arc::new(Vars {
            root: with_types(own, &types),
            unknown: unknown.clone(),
            from_probes,
            failed: BTreeSet::new(),
        });
        let probe = names.iter().find_map(|used| {
            let probe = used.strip_prefix("probe.")?.split('.').next()?;
            (!self.facts.probes().contains_key(probe)).then(|| format!("probe[{probe}]"))
        });
        if let Some(until) = probe.or_else(|| unknown.into_values().next()) {
            if context.tree().scalar(*node).is_some() {
                return self.unknown_variable(name, &context, *node);
            }
            return Outcome::Unknown(until);
        }
        self.node_value(&context, *node).map_or(Outcome::Failed, Outcome::Known)
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

impl Definition {
    fn place(&self) -> Option<Place> {
        match &self.written {
            Source::Node(context, node) => Some(context.place(context.tree().span(*node))),
            Source::Text(_) => None,
        }
    }
}

/// Returns true for the name of a variable, a parameter or a key that expressions use.
pub(in crate::config::expand) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
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
