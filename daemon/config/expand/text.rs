//! Scalars with `${ }`: a scalar that is one expression keeps the type of its value, any other becomes a string.

use super::budget::LONGEST_TEXT;
use super::{Context, Expander};
use crate::config::expand::outcome::Outcome;
use crate::config::expand::written::Written;
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::Value;

/// A part of a scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Text as it is.
    Literal(String),
    /// The text of an expression, without the braces.
    Expression(String),
}

/// Splits a scalar; `$${` is a literal `${`. `None` means that an expression has no end.
pub(super) fn split_scalar(text: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        let after = after.get(2..)?;
        if let Some(before) = before.strip_suffix('$') {
            literal.push_str(before);
            literal.push_str("${");
            rest = after;
            continue;
        }
        literal.push_str(before);
        if !literal.is_empty() {
            parts.push(Part::Literal(std::mem::take(&mut literal)));
        }
        let end = expression_end(after)?;
        parts.push(Part::Expression(after.get(..end)?.to_owned()));
        rest = after.get(end + 1..)?;
    }
    literal.push_str(rest);
    if !literal.is_empty() || parts.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Some(parts)
}

/// Returns the offset of the brace that closes an expression; braces and quotes within are skipped.
pub(super) fn expression_end(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

/// Appends a value to a text; returns false if the text would be too long.
pub(super) fn append_text(joined: &mut String, text: &str) -> bool {
    let fits = joined.len() + text.len() <= LONGEST_TEXT;
    if fits {
        joined.push_str(text);
    }
    fits
}

impl Expander<'_> {
    /// Splits a scalar; reports an expression without an end.
    pub(super) fn split_node(&mut self, context: &Context, node: usize) -> Option<Vec<Part>> {
        let text = context.tree().scalar(node)?.text.to_string();
        let parts = split_scalar(&text);
        if parts.is_none() {
            let what = "`${` without `}`";
            let hint = "close the expression: ${…}; for a literal ${ write $${";
            self.report(context, node, Problem::new(Code::Expression, what).hint(hint));
        }
        parts
    }

    /// Evaluates a scalar with expressions.
    pub(super) fn evaluate_scalar(&mut self, context: &Context, node: usize) -> Outcome<Value> {
        let Some(parts) = self.split_node(context, node) else { return Outcome::Failed };
        self.evaluate_parts(context, node, &parts)
    }

    /// Evaluates the parts of a scalar.
    pub(super) fn evaluate_parts(
        &mut self,
        context: &Context,
        node: usize,
        parts: &[Part],
    ) -> Outcome<Value> {
        let span = context.tree().span(node);
        if let [Part::Expression(text)] = parts {
            return self.evaluate(context, Written::find(context, text, span));
        }
        let mut joined = String::new();
        let (mut unknown, mut from, mut has_failed) = (None, 0, false);
        for part in parts {
            let text = match part {
                Part::Literal(text) => {
                    joined.push_str(text);
                    continue;
                }
                Part::Expression(text) => text,
            };
            let written = Written::find_next(context, text, (span, &mut from));
            match self.evaluate(context, written) {
                Outcome::Known(value) => match value.embedded_text() {
                    Some(text) if append_text(&mut joined, &text) => {}
                    Some(_) => return self.too_long(context, node),
                    None => return self.not_embedded(context, node, (text, &value)),
                },
                Outcome::Unknown(until) => unknown = Some(until),
                // The other expressions may have problems too.
                Outcome::Failed => has_failed = true,
            }
        }
        match unknown {
            _ if has_failed => Outcome::Failed,
            Some(until) => Outcome::Unknown(until),
            None => Outcome::Known(Value::Text(joined)),
        }
    }

    /// Reports a value that cannot stand within text.
    fn not_embedded(
        &mut self,
        context: &Context,
        node: usize,
        (text, value): (&str, &Value),
    ) -> Outcome<Value> {
        let kind = crate::config::expand::values::kind_of(value);
        let what = format!("`${{{}}}` is {kind}, within text", quoted(text));
        let is_secret =
            matches!(value, Value::Map(it) if it.len() == 1 && it.contains_key("secret"));
        let hint = if is_secret {
            "no expression has a secret: a field takes it as {secret: NAME}, a template by `values:`"
        } else {
            "only strings, integers and bools are embedded in text"
        };
        self.report(context, node, Problem::new(Code::Expression, what).hint(hint));
        Outcome::Failed
    }

    /// Reports a text that its expressions make too long.
    pub(super) fn too_long<T>(&mut self, context: &Context, node: usize) -> Outcome<T> {
        let what = format!("the text would be longer than {} MiB", LONGEST_TEXT >> 20);
        let hint = "embed shorter values";
        self.report(context, node, Problem::new(Code::Expression, what).hint(hint));
        Outcome::Failed
    }

    /// Evaluates a scalar whose value must be known now.
    pub(super) fn scalar_expression(&mut self, context: &Context, node: usize) -> Option<Value> {
        let outcome = self.evaluate_scalar(context, node);
        self.known_now(context, node, outcome)
    }

    /// Reports a value that waits for a probe where it must be known now.
    pub(super) fn known_now(
        &mut self,
        context: &Context,
        node: usize,
        outcome: Outcome<Value>,
    ) -> Option<Value> {
        match outcome {
            Outcome::Known(value) => Some(value),
            Outcome::Unknown(until) => {
                let what = format!("the value must be known at load; `{until}` is not");
                self.report(context, node, Problem::new(Code::Expression, what));
                None
            }
            Outcome::Failed => None,
        }
    }

    /// Returns the names that the expressions of a scalar use.
    pub(super) fn names_in(&mut self, context: &Context, node: usize) -> Vec<String> {
        let Some(parts) = self.split_node(context, node) else { return Vec::new() };
        let span = context.tree().span(node);
        let (mut names, mut from) = (Vec::new(), 0);
        for part in &parts {
            if let Part::Expression(text) = part {
                let written = Written::find_next(context, text, (span, &mut from));
                if let Some(expression) = self.parse_expression(context, written) {
                    names.extend(expression.dependencies());
                }
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, split_scalar};

    #[test]
    fn scalars_are_split_at_expressions() {
        let literal = |text: &str| Part::Literal(text.to_owned());
        let expression = |text: &str| Part::Expression(text.to_owned());
        for (text, parts) in [
            ("a", vec![literal("a")]),
            ("", vec![literal("")]),
            ("${a}", vec![expression("a")]),
            ("x${a}y", vec![literal("x"), expression("a"), literal("y")]),
            ("$${a}", vec![literal("${a}")]),
            ("$$${a}", vec![literal("$${a}")]),
            ("${\"}\"}", vec![expression("\"}\"")]),
            ("${a}${b}", vec![expression("a"), expression("b")]),
            ("$a {b}", vec![literal("$a {b}")]),
        ] {
            assert_eq!(split_scalar(text), Some(parts), "{text}");
        }
        for text in ["${", "${a", "${'}", "a${b}${c"] {
            assert_eq!(split_scalar(text), None, "{text}");
        }
    }
}
