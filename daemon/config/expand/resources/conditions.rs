//! Conditions (`when:`) and assertions.

use crate::config::document::Inactivity;
use crate::config::document::tree::Node;
use crate::config::expand::names::value_ref;
use crate::config::expand::outcome::Outcome;
use crate::config::expand::values::shown;
use crate::config::expand::written::Written;
use crate::config::expand::{Context, Expander};
use crate::config::hidden::names_secret;
use crate::config::problem::code::Code;
use crate::config::problem::{Place, Problem, quoted};
use crate::expressions::{Expression, Value, ValueType};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

/// The bytes that a name of a condition with its value takes besides their texts.
const BYTES_OF_VALUE: usize = 64;

/// The keys of an assertion.
pub(in crate::config::expand) const ASSERT_KEYS: [&str; 2] = ["that", "message"];

/// The result of a condition.
pub(in crate::config::expand) enum Condition {
    /// The condition holds; with its text.
    Holds(Arc<str>),
    /// The condition does not hold, or its value is not known yet.
    Fails(Arc<Inactivity>),
    /// A problem, already reported.
    Wrong,
}

/// Returns a condition without the braces of templates; a name alone gets its root.
fn without_braces(context: &Context, text: &str) -> String {
    let open = text.replace("${", "{{");
    let mut inner = String::new();
    let mut rest = open.as_str();
    while let Some((before, after)) = rest.split_once("{{") {
        inner.push_str(before);
        let (part, end) = after.split_once('}').unwrap_or((after, ""));
        inner.push_str(part.trim());
        rest = end.strip_prefix('}').unwrap_or(end);
    }
    inner.push_str(rest);
    let inner = inner.trim().to_owned();
    let root = value_ref(&context.scope, &format!("vars.{inner}"));
    if root.is_some() { format!("vars.{inner}") } else { inner }
}

/// Returns the bool that a literal stands for in other tools.
fn truth_of_literal(text: &str) -> Option<&'static str> {
    match text.trim_matches(['"', '\'']).to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some("true"),
        "0" | "false" | "no" | "off" | "" => Some("false"),
        _ => None,
    }
}

/// Returns the file and the line of a condition.
fn place_of(context: &Context, node: usize) -> String {
    let file = &context.parsed.file;
    format!("{}:{}", file.display, file.line(context.tree().span(node).start))
}

/// Returns the bytes of the names and the values of a condition, which each item of a loop has for itself.
fn bytes_of_values(inactivity: &Inactivity) -> usize {
    let bytes = |(name, value): &(String, String)| BYTES_OF_VALUE + name.len() + value.len();
    inactivity.values.iter().map(bytes).fold(0, usize::saturating_add)
}

/// Returns the sum of a condition. The same text has another meaning in another instance and for another item.
fn sum_of(context: &Context, text: &str) -> u64 {
    let mut sum = std::hash::DefaultHasher::new();
    (text.trim(), &context.origin.instance).hash(&mut sum);
    let item = context.scope.item.as_ref().filter(|_| text.contains("item"));
    item.map(|item| (&item.of, &item.key)).hash(&mut sum);
    sum.finish()
}

impl Expander<'_> {
    /// Evaluates `when:`: an expression, or a list of expressions that must all hold.
    pub(in crate::config::expand) fn evaluate_condition(
        &mut self,
        context: &Context,
        node: usize,
    ) -> Condition {
        let items = match context.tree().node(node) {
            Some(Node::List(items)) if items.is_empty() => {
                let what = "a list of conditions needs at least one condition";
                let hint = "write when: true, or remove `when`: a condition is a bool expression";
                self.report(context, node, Problem::new(Code::Condition, what).hint(hint));
                return Condition::Wrong;
            }
            Some(Node::List(items)) => items.clone(),
            _ => vec![node],
        };
        let mut texts = Vec::new();
        let mut failed = None;
        // All problems are reported in one run.
        let mut is_wrong = false;
        for item in items {
            let Some(text) = self.condition_text(context, item) else {
                is_wrong = true;
                continue;
            };
            let written = Written::find(context, &text, context.tree().span(item));
            match self.evaluate(context, written) {
                Outcome::Known(Value::Bool(true)) => {}
                Outcome::Known(Value::Bool(false)) => {
                    let inner = self.inactivity(context, &text, item);
                    failed = Some(Inactivity::join(failed, Arc::new(inner)));
                }
                Outcome::Known(other) => {
                    self.report_truth(context, item, (&text, &other.value_type()));
                    is_wrong = true;
                }
                Outcome::Unknown(until) => {
                    let found = self.type_of_unknown(context, written);
                    if let Some(found) = found.filter(|found| *found != ValueType::Bool) {
                        self.report_truth(context, item, (&text, &found));
                        is_wrong = true;
                        continue;
                    }
                    let condition = self.shared_condition(context, item, &text);
                    let (unknown_until, at) = (Some(until), Some(place_of(context, item)));
                    let inner = Inactivity {
                        condition,
                        unknown_until,
                        at,
                        waiting: [sum_of(context, &text)].into(),
                        ..Inactivity::default()
                    };
                    failed = Some(Inactivity::join(failed, Arc::new(inner)));
                }
                Outcome::Failed => is_wrong = true,
            }
            texts.push(text);
        }
        let bytes = failed.as_ref().map_or(0, |reason| bytes_of_values(reason));
        if bytes > 0 && !self.count_copies(context, node, bytes) {
            return Condition::Wrong;
        }
        match failed {
            _ if is_wrong => Condition::Wrong,
            Some(inactivity) => Condition::Fails(inactivity),
            None => {
                let text = texts.join(" and ");
                Condition::Holds(self.shared_condition(context, node, &text))
            }
        }
    }

    /// Returns the text of a condition; reports the usual mistakes.
    fn condition_text(&mut self, context: &Context, node: usize) -> Option<String> {
        let scalar = context.tree().scalar(node).cloned();
        let Some(scalar) = scalar.filter(|scalar| !scalar.is_null()) else {
            if self.has_tag_before(context, node) {
                self.is_complete = false;
                return None;
            }
            let what = "a condition should be an expression, such as `when: vars.tls`";
            let is_flow = context.tree().entries(node).iter().any(|(key, _)| *key > 0);
            let span = context.tree().span(node);
            let bare = context.parsed.file.bracketed(span.start);
            let bare = bare.filter(|text| text.starts_with("{{"));
            let hint = match bare {
                Some(bare) => format!("write: when: {}", without_braces(context, bare)),
                None => match context.tree().node(node) {
                    Some(Node::Map(_)) if is_flow => "quote the expression as a whole".to_owned(),
                    Some(Node::List(_)) => "a list of conditions has no list in it".to_owned(),
                    _ => "write true, or an expression such as `vars.tls`, behind the colon"
                        .to_owned(),
                },
            };
            self.report(context, node, Problem::new(Code::Condition, what).hint(hint));
            return None;
        };
        let text = scalar.text.to_string();
        let bare = text.trim();
        let has_braces = bare.contains("${") || bare.contains("{{");
        if has_braces && Expression::parse(bare).is_err() {
            let braces = if bare.contains("${") { "${ }" } else { "{{ }}" };
            let inner = without_braces(context, bare);
            let what = format!("a condition has no `{braces}`: write `when: {}`", quoted(&inner));
            self.report(context, node, Problem::new(Code::Condition, what));
            return None;
        }
        Some(text)
    }

    /// Returns true if a YAML tag in the same line is reported: `!x` leaves an empty value.
    fn has_tag_before(&self, context: &Context, node: usize) -> bool {
        let place = context.place(context.tree().span(node));
        let is_same = |it: &Place| it.file == place.file && it.line == place.line;
        let mut tags = self.problems.list.iter().filter(|it| it.code == Code::Tag);
        tags.any(|tag| tag.places.iter().any(is_same))
    }

    /// Reports a condition that is not bool.
    fn report_truth(&mut self, context: &Context, node: usize, (text, found): (&str, &ValueType)) {
        let text = quoted(text.trim());
        if let Some(instead) = truth_of_literal(&text) {
            let what = format!("a condition must be bool, `{text}` is not; write `{instead}`");
            self.report(context, node, Problem::new(Code::Condition, what));
            return;
        }
        let (kind, instead) = match found {
            ValueType::Int => ("int", format!("{text} > 0")),
            ValueType::Float => ("float", format!("{text} > 0")),
            ValueType::Text => ("string", format!("{text} != \"\"")),
            ValueType::List(_) => ("list", format!("{text} | length > 0")),
            ValueType::Map(_) | ValueType::AnyMap(_) => ("map", format!("{text} | length > 0")),
            ValueType::Bool | ValueType::Nothing | ValueType::Unknown => ("of no known type", text),
        };
        let what = format!("a condition must be bool, this is {kind}; write `{instead}`");
        self.report(context, node, Problem::new(Code::Condition, what));
    }

    /// Describes a condition that does not hold.
    fn inactivity(&mut self, context: &Context, text: &str, node: usize) -> Inactivity {
        let written =
            Written { text, start: None, span: crate::config::source_file::Span::default() };
        let expression = self.parse_expression(context, written);
        let names = expression.map(|it| it.dependencies()).unwrap_or_default();
        // Members of the socket's group see the condition with its values.
        let is_private = |name: &str| {
            name == "facts.machine_id" || name.rsplit('.').next().is_some_and(names_secret)
        };
        let value = |name: String| {
            let value = value_ref(&context.scope, &name)?;
            let value = if is_private(&name) { "not shown".to_owned() } else { shown(value) };
            Some((name, value))
        };
        Inactivity {
            condition: self.shared_condition(context, node, text),
            values: names.into_iter().filter_map(value).collect(),
            at: Some(place_of(context, node)),
            ..Inactivity::default()
        }
    }

    /// Returns the text of a condition, which all items of a loop and all instances of a module share.
    fn shared_condition(&mut self, context: &Context, node: usize, text: &str) -> Arc<str> {
        let at = (context.parsed.source, node);
        Arc::clone(self.conditions.entry(at).or_insert_with(|| text.trim().into()))
    }

    /// Checks `assert:`, a list of `{that: EXPR, message: …}`.
    pub(in crate::config::expand) fn check_asserts(&mut self, context: &Context, node: usize) {
        let inactive = context.inactive.as_ref();
        // An assertion whose condition waits for a probe is checked, and may be false until the answer.
        let is_waiting = inactive.is_some_and(|reason| reason.ends_with_answer());
        if inactive.is_some() && !is_waiting || context.is_null(node) {
            return;
        }
        let Some(Node::List(items)) = context.tree().node(node) else {
            let what = "`assert` should be a list of {that: EXPRESSION, message: TEXT}";
            self.report(context, node, Problem::new(Code::Assert, what));
            return;
        };
        for item in items.clone() {
            let that = context.tree().entry(item, ASSERT_KEYS[0]).map(|(_, value)| value);
            let message = context.tree().entry(item, ASSERT_KEYS[1]).map(|(_, value)| value);
            let (Some(that), Some(message)) = (that, message) else {
                let what = "an assertion needs `that` and `message`";
                let that = that.map_or(item, |that| that);
                let that = context.text_of(that).unwrap_or("CONDITION");
                let hint = format!("write {{that: {}, message: \"…\"}}", quoted(that));
                self.report(context, item, Problem::new(Code::Assert, what).hint_with_value(hint));
                continue;
            };
            if let Condition::Fails(reason) = self.evaluate_condition(context, that) {
                if is_waiting || reason.unknown_until.is_some() {
                    continue;
                }
                let message = match self.evaluate_scalar(context, message) {
                    Outcome::Known(value) => value.embedded_text().unwrap_or_default(),
                    _ => continue,
                };
                let hint = crate::config::Inactive {
                    identity: "".into(),
                    condition: Arc::clone(&reason.condition),
                    values: Arc::clone(&reason.values),
                    unknown_until: None,
                    condition_at: None,
                    place: (0, 0),
                }
                .condition_with_values();
                let problem = Problem::new(Code::Assert, message).hint(format!("false: {hint}"));
                self.report(context, that, problem);
            }
        }
    }
}
