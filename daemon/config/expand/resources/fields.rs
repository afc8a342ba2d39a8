//! Fields of resources: the mode of a field decides about the expressions in it.

use crate::config::ast::Relation;
use crate::config::checks::metaparams::{ALIASES, LABELS, META};
use crate::config::document::tree::{Node, Tree};
use crate::config::expand::names::is_from_probe;
use crate::config::expand::outcome::{AllOutcomes, Outcome};
use crate::config::expand::resources::field_parts::is_map_form;
use crate::config::expand::text::Part;
use crate::config::expand::values::{kind_of, push_value};
use crate::config::expand::written::Written;
use crate::config::expand::{Context, Expander, copy_nodes};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::config::scalar;
use crate::expressions::{Value, ValueType};
use steadfast_resources::{FieldMode, FieldSpec, FieldType, Interpreter, KindSpec, Receives};

/// The resource that an expansion makes.
pub(in crate::config::expand) struct Target {
    pub(in crate::config::expand) spec: &'static KindSpec,
    /// The node of the resource as written.
    pub(in crate::config::expand) item: usize,
    /// The entries of the expanded resource.
    pub(in crate::config::expand) pairs: Vec<(usize, usize)>,
    /// The probe that a value waits for.
    pub(in crate::config::expand) unknown: Option<String>,
    /// The fields whose values wait.
    pub(in crate::config::expand) unknown_fields: Vec<Box<str>>,
}

impl Target {
    /// Notes that the value of a field is not known until a resource has run.
    pub(in crate::config::expand) fn wait_for(&mut self, until: String, field: &str) {
        self.unknown = Some(until);
        self.unknown_fields.push(field.into());
    }
}

/// The roots of names that no shell variable has.
pub(super) const NAMES: [&str; 5] = ["vars", "facts", "params", "probe", "item"];
/// The names by which a text may mean a secret.
const SECRETS: [&str; 2] = ["secrets", "secret"];

/// Returns the offset of the first `${` of a text that begins with a name below a root: `${vars.a}`,
/// `${ facts.hostname }`, `${vars["a"]}`.
pub(super) fn find_name(text: &str, roots: &[&str]) -> Option<usize> {
    let mut all = text.match_indices("${").filter(|(at, _)| {
        let inner = text.get(at + 2..).unwrap_or_default().trim_start();
        roots.iter().any(|root| is_below(inner, root))
    });
    all.next().map(|(at, _)| at)
}

/// Returns true if a text begins with a name below a root.
fn is_below(text: &str, root: &str) -> bool {
    text.strip_prefix(root).is_some_and(|rest| {
        rest.starts_with('.') || rest.starts_with("[\"") || rest.starts_with("['")
    })
}

impl Expander<'_> {
    /// Expands one entry of a resource.
    pub(in crate::config::expand) fn expand_key(
        &mut self,
        context: &Context,
        (key, name, value): (usize, &str, usize),
        into: &mut Tree<'static>,
        target: &mut Target,
    ) -> Option<()> {
        let field = target.spec.fields.iter().find(|field| field.name == name);
        let is_identity = name == "name" || name == ALIASES.name || Relation::parse(name).is_some();
        if crate::config::expand::resources::templates::is_template_key(target.spec, name) {
            return self.expand_template_key(context, (key, name, value), into, target);
        }
        let expanded = if is_identity {
            Outcome::Known(self.expand_static(context, value, into, name)?)
        } else if name == "meta" {
            self.expand_meta(context, value, into)
        } else if name == LABELS.name && field.is_none() {
            self.expand_value(context, (value, &LABELS), into)
        } else if let Some(field) = field {
            match Self::mode_of(context, target, field) {
                FieldMode::Static if field.takes == FieldType::Text => {
                    Outcome::Known(self.expand_static(context, value, into, name)?)
                }
                FieldMode::Static => {
                    self.check_static(context, value, name)?;
                    self.expand_value(&context.at_load(), (value, field), into)
                }
                FieldMode::Literal(by) => {
                    Outcome::Known(self.expand_literal(context, (value, name, by), into)?)
                }
                FieldMode::Argv(_) if is_map_form(context, field, value) => {
                    self.expand_parts(context, (target.spec, field, value), into)
                }
                FieldMode::Argv(_) => {
                    return self.expand_command(context, (key, field, value), into, target);
                }
                FieldMode::Value => self.expand_value(context, (value, field), into),
            }
        } else if name == "recv" {
            Outcome::Known(self.expand_receives(context, value, into)?)
        } else {
            // The reader reports unknown keys.
            Outcome::Known(copy_nodes(context.tree(), value, into))
        };
        match expanded {
            Outcome::Known(node) => {
                let key = copy_nodes(context.tree(), key, into);
                target.pairs.push((key, node));
                Some(())
            }
            Outcome::Unknown(until) => {
                target.wait_for(until, name);
                Some(())
            }
            Outcome::Failed => None,
        }
    }

    /// Returns the mode of a field in a resource: with a shell, a command is a text.
    fn mode_of(context: &Context, target: &Target, field: &FieldSpec) -> FieldMode {
        match field.mode.unwrap_or(FieldMode::Value) {
            FieldMode::Argv(shell)
                if !shell.is_empty() && context.tree().entry(target.item, shell).is_some() =>
            {
                FieldMode::Literal(Interpreter::Shell)
            }
            mode => mode,
        }
    }

    fn expand_meta(
        &mut self,
        context: &Context,
        node: usize,
        into: &mut Tree<'static>,
    ) -> Outcome<usize> {
        let Some(Node::Map(pairs)) = context.tree().node(node) else {
            return Outcome::Known(copy_nodes(context.tree(), node, into));
        };
        let mut all = AllOutcomes::default();
        for (key, value) in pairs.clone() {
            let name = context.text_of(key).unwrap_or_default().to_owned();
            let expanded = match META.iter().find(|field| field.name == name) {
                Some(field) => self.expand_value(context, (value, field), into),
                None => Outcome::Known(copy_nodes(context.tree(), value, into)),
            };
            all.add(expanded.map(|value| (copy_nodes(context.tree(), key, into), value)));
        }
        all.finish().map(|copied| into.push(Node::Map(copied), context.tree().span(node)))
    }

    /// Expands the value of a field that takes expressions.
    pub(in crate::config::expand) fn expand_value(
        &mut self,
        context: &Context,
        (node, field): (usize, &FieldSpec),
        into: &mut Tree<'static>,
    ) -> Outcome<usize> {
        let span = context.tree().span(node);
        match context.tree().node(node) {
            Some(Node::Scalar(scalar)) if scalar.text.contains("${") => {
                let Some(parts) = self.split_node(context, node) else { return Outcome::Failed };
                let is_exact = matches!(parts.as_slice(), [Part::Expression(_)]);
                match self.evaluate_parts(context, node, &parts) {
                    Outcome::Known(value) => {
                        if !self.value_fits(context, node, (field, &value), (is_exact, &parts)) {
                            return Outcome::Failed;
                        }
                        Outcome::Known(push_value(into, &value, span))
                    }
                    Outcome::Unknown(until) => {
                        if self.unknown_fits(context, node, (field, &parts)) {
                            Outcome::Unknown(until)
                        } else {
                            Outcome::Failed
                        }
                    }
                    Outcome::Failed => Outcome::Failed,
                }
            }
            Some(Node::Scalar(_)) => {
                self.doubt_text(context, node, field.name);
                Outcome::Known(copy_nodes(context.tree(), node, into))
            }
            Some(Node::List(items)) => {
                let item_field = FieldSpec { takes: item_type(field.takes), ..copy_of(field) };
                let mut all = AllOutcomes::default();
                for item in items.clone() {
                    all.add(self.expand_value(context, (item, &item_field), into));
                }
                all.finish().map(|copied| into.push(Node::List(copied), span))
            }
            Some(Node::Map(_)) => self.expand_value_map(context, (node, field), into),
            _ => Outcome::Known(copy_nodes(context.tree(), node, into)),
        }
    }

    /// Expands a map: a secret, a parameter that is a secret, or the entries of a map field.
    fn expand_value_map(
        &mut self,
        context: &Context,
        (node, field): (usize, &FieldSpec),
        into: &mut Tree<'static>,
    ) -> Outcome<usize> {
        let pairs = context.tree().entries(node).to_vec();
        if let Some(result) = self.secret_value(context, node, into) {
            return result;
        }
        let item_field = FieldSpec { takes: item_type(field.takes), ..copy_of(field) };
        let mut all = AllOutcomes::default();
        for (key, value) in pairs {
            if context.tree().scalar(key).is_none() {
                let what = "a key should be a string, found a map";
                let hint = "an expression is written ${…}, not {{ … }}";
                self.report(context, key, Problem::new(Code::Type, what).hint(hint));
                return Outcome::Failed;
            }
            let value = self.expand_value(context, (value, &item_field), into);
            all.add(value.map(|value| (copy_nodes(context.tree(), key, into), value)));
        }
        all.finish().map(|copied| into.push(Node::Map(copied), context.tree().span(node)))
    }

    /// Copies a text that another program interprets; only the map forms are values.
    fn expand_literal(
        &mut self,
        context: &Context,
        (node, name, by): (usize, &str, Interpreter),
        into: &mut Tree<'static>,
    ) -> Option<usize> {
        match context.tree().node(node)? {
            Node::Scalar(scalar) => {
                let text = scalar.text.to_string();
                self.check_literal(context, (node, &text), name, by)?;
                if by == Interpreter::None {
                    self.doubt_template(context, node, name);
                }
                Some(copy_nodes(context.tree(), node, into))
            }
            Node::List(items) => {
                let copied: Option<Vec<usize>> = items
                    .clone()
                    .into_iter()
                    .map(|item| self.expand_literal(context, (item, name, by), into))
                    .collect();
                Some(into.push(Node::List(copied?), context.tree().span(node)))
            }
            _ => match self.secret_value(context, node, into) {
                Some(Outcome::Known(node)) => Some(node),
                Some(_) => None,
                None => Some(copy_nodes(context.tree(), node, into)),
            },
        }
    }

    /// Reports an expression in a text that is copied as it is.
    fn check_literal(
        &mut self,
        context: &Context,
        (node, text): (usize, &str),
        name: &str,
        by: Interpreter,
    ) -> Option<()> {
        let names = find_name(text, &NAMES).or_else(|| find_name(text, &SECRETS));
        let found = names.or_else(|| text.find("${item}").filter(|_| context.scope.item.is_some()));
        let Some(at) = found else { return Some(()) };
        let end =
            text.get(at..).and_then(|rest| rest.find('}')).map_or(text.len(), |it| at + it + 1);
        let expression = text.get(at..end).unwrap_or_default().to_owned();
        let inner = expression.trim_start_matches("${").trim_end_matches('}').trim();
        let written = Written::find(context, &expression, context.tree().span(node));
        let span = match written.start {
            Some(start) => crate::config::source_file::Span::new(start, start + expression.len()),
            None => written.span,
        };
        let shown = quoted(&expression);
        // Cron gives the line to a shell.
        let is_shell = matches!(by, Interpreter::Shell | Interpreter::Cron);
        let problem = if SECRETS.iter().any(|root| is_below(inner, root)) {
            let what =
                format!("`{shown}` in `{name}` is copied as it is: no expression has a secret");
            let hint = "a field takes a secret as {secret: NAME}, a template by `values:`";
            Problem::new(Code::Doubt, what).warning().hint(hint)
        } else if is_shell && expression != "${item}" {
            let variable = inner.rsplit('.').next().unwrap_or("value").to_ascii_uppercase();
            let what = format!(
                "a shell would read `{shown}`; pass it as `env: {{{variable}: \"{shown}\"}}`"
            );
            Problem::new(Code::Literal, what).hint(format!("and write \"${variable}\" in the text"))
        } else if is_shell {
            let what = format!("`{shown}` is a variable of the shell here, not the item");
            Problem::new(Code::Doubt, what)
                .warning()
                .hint("pass the item as env: {ITEM: \"${item}\"}")
        } else {
            let what = format!("`{shown}` in `{name}` is copied as it is, and not evaluated");
            let hint = "for a value inside of a file, use `template:` with {{ … }}";
            Problem::new(Code::Doubt, what).warning().hint(hint)
        };
        let is_error = problem.severity == crate::config::Severity::Error;
        self.report_at(context, span, problem);
        (!is_error).then_some(())
    }

    /// Reports the names below a node that are not known at load.
    fn check_static(&mut self, context: &Context, node: usize, field: &str) -> Option<()> {
        match context.tree().node(node)? {
            Node::Scalar(scalar) if scalar.text.contains("${") => {
                let names = self.names_in(context, node);
                self.names_are_static(context, node, (field, &names)).then_some(())
            }
            Node::List(items) => {
                let mut items = items.clone().into_iter();
                items.try_for_each(|item| self.check_static(context, item, field))
            }
            _ => Some(()),
        }
    }

    /// Reports a name that is not known at load.
    pub(in crate::config::expand) fn names_are_static(
        &mut self,
        context: &Context,
        node: usize,
        (field, names): (&str, &[String]),
    ) -> bool {
        let at_load = context.at_load();
        let Some(name) = names.iter().find(|name| is_from_probe(&at_load.scope, name)) else {
            self.uses.note_static(names);
            return true;
        };
        let subject = match field {
            "name" => "an identity".to_owned(),
            field if field.starts_with("a ") || field.starts_with("an ") => field.to_owned(),
            field => format!("`{field}`"),
        };
        let what = if name.starts_with("probe") {
            format!("{subject} must be known at load; a probe is not")
        } else {
            format!("{subject} must be known at load; `{}` uses a probe", quoted(name))
        };
        let hint = "use variables, params, facts or the item of a loop here";
        self.report(context, node, Problem::new(Code::Expression, what).hint(hint));
        false
    }

    /// Returns true if an expression may stand where its value must be known at load.
    pub(in crate::config::expand) fn is_static(
        &mut self,
        context: &Context,
        written: Written<'_>,
        what: &str,
        node: usize,
    ) -> bool {
        let Some(expression) = self.parse_expression(context, written) else { return false };
        let names: Vec<String> = expression.dependencies().into_iter().collect();
        let field = what.trim_matches('`');
        self.names_are_static(context, node, (field, &names))
    }

    /// Reports an expression whose value is not known yet, and whose type does not fit into a field.
    fn unknown_fits(
        &mut self,
        context: &Context,
        node: usize,
        (field, parts): (&FieldSpec, &[Part]),
    ) -> bool {
        let found = match parts {
            [Part::Expression(text)] => {
                let written = Written::find(context, text, context.tree().span(node));
                self.type_of_unknown(context, written)
            }
            _ => Some(ValueType::Text),
        };
        let typical = found.as_ref().and_then(typical_value);
        let is_exact = parts.len() == 1;
        typical
            .is_none_or(|value| self.value_fits(context, node, (field, &value), (is_exact, parts)))
    }

    /// Reports a value that does not fit into a field.
    fn value_fits(
        &mut self,
        context: &Context,
        node: usize,
        (field, value): (&FieldSpec, &Value),
        (is_exact, parts): (bool, &[Part]),
    ) -> bool {
        if fits(field.takes, value) {
            return true;
        }
        let name = field.name;
        let wants = scalar::wants(field.takes);
        let problem = if is_exact {
            let what = format!("`{name}` wants {wants}, the expression is {}", plain_kind(value));
            Problem::new(Code::Expression, what)
        } else {
            let what = match joined_expression(parts) {
                Some(instead) => format!("mixed text is a string; write `{instead}`"),
                None => format!("mixed text is a string; `{name}` wants {wants}"),
            };
            let hint = format!("`{name}` wants {wants}");
            Problem::new(Code::Expression, what).hint(hint)
        };
        self.report(context, node, problem);
        false
    }
}

/// Returns a value of a type that has no parts.
fn typical_value(of: &ValueType) -> Option<Value> {
    match of {
        ValueType::Bool => Some(Value::Bool(true)),
        ValueType::Int => Some(Value::Int(1)),
        ValueType::Float => Some(Value::Float(1.0)),
        ValueType::Text => Some(Value::Text(String::new())),
        _ => None,
    }
}

/// Names the type of a value as messages about fields do.
fn plain_kind(value: &Value) -> &'static str {
    match value {
        Value::Int(_) => "an integer",
        other => kind_of(other),
    }
}

/// Returns `${vars.workers / 2}` for the parts of `${vars.workers}/2`.
fn joined_expression(parts: &[Part]) -> Option<String> {
    let (expression, rest) = match parts {
        [Part::Expression(expression), Part::Literal(rest)] => (expression.trim(), rest.trim()),
        _ => return None,
    };
    let operator = rest.chars().next().filter(|it| "+-*/%".contains(*it))?;
    let operand = rest.get(1..)?.trim();
    let is_number = operand.parse::<f64>().is_ok();
    is_number.then(|| format!("${{{expression} {operator} {operand}}}"))
}

/// Returns the type of the items of a field.
fn item_type(takes: FieldType) -> FieldType {
    match takes {
        FieldType::Texts | FieldType::TextMap => FieldType::Text,
        other => other,
    }
}

/// Copies the description of a field.
fn copy_of(field: &FieldSpec) -> FieldSpec {
    FieldSpec { receives: Receives::Nothing, ..FieldSpec::new(field.name, field.takes, field.doc) }
}

/// Returns true if a value fits a field without a conversion that loses something.
fn fits(takes: FieldType, value: &Value) -> bool {
    let is_text = |value: &Value| matches!(value, Value::Text(_) | Value::Int(_) | Value::Bool(_));
    match takes {
        FieldType::Text | FieldType::Choice(_) => is_text(value),
        FieldType::Anything => true,
        FieldType::Bool => matches!(value, Value::Bool(_)),
        FieldType::Int => matches!(value, Value::Int(_)),
        FieldType::Seconds | FieldType::Milliseconds => {
            matches!(value, Value::Int(_) | Value::Text(_))
        }
        FieldType::Duration => matches!(value, Value::Int(_) | Value::Float(_) | Value::Text(_)),
        FieldType::Float => matches!(value, Value::Int(_) | Value::Float(_)),
        FieldType::Texts => match value {
            Value::List(items) => items.iter().all(is_text),
            other => is_text(other),
        },
        FieldType::TextMap => match value {
            Value::Map(entries) => entries.values().all(is_text),
            _ => false,
        },
    }
}
