//! `${ … }` in the text of a value.

use crate::expressions::environment::Environment;
use crate::expressions::error::{Cause, ExpressionError};
use crate::expressions::expression::Expression;
use crate::expressions::scope::Scope;
use crate::expressions::value::Value;
use crate::expressions::value_type::ValueType;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPart {
    /// Text as it stands; `$${` has become `${`.
    Literal(String),
    /// The expression between `${` and `}`.
    Expression {
        /// The expression.
        expression: Expression,
        /// The byte of the text at which the expression's own offsets begin.
        offset: usize,
    },
}

/// Splits a text into literal parts and expressions.
///
/// ```
/// use steadfast::expressions::{TextPart, split_text};
/// let parts = split_text("a $${x} ${vars.b}").expect("parts");
/// assert_eq!(parts[0], TextPart::Literal("a ${x} ".to_owned()));
/// assert!(matches!(&parts[1], TextPart::Expression { offset: 10, .. }));
/// ```
///
/// # Errors
/// An [`ExpressionError`] with offsets from the start of the text.
pub fn split_text(text: &str) -> Result<Vec<TextPart>, ExpressionError> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(found) = rest.find("${") else {
            literal.push_str(rest);
            break;
        };
        let before = rest.get(..found).unwrap_or_default();
        if let Some(before) = before.strip_suffix('$') {
            literal.push_str(before);
            literal.push_str("${");
            at += found + 2;
            continue;
        }
        literal.push_str(before);
        let start = at + found + 2;
        let inner = text.get(start..).unwrap_or_default();
        let Some(length) = expression_length(inner) else {
            let range = (start - 2, text.len());
            return Err(ExpressionError::new(Cause::Syntax, range, "`${` without `}`")
                .hint("close the expression; for a literal `${` write `$${`"));
        };
        if !literal.is_empty() {
            parts.push(TextPart::Literal(std::mem::take(&mut literal)));
        }
        let inner = inner.get(..length).unwrap_or_default();
        let expression = Expression::parse(inner).map_err(|error| error.shifted(start))?;
        parts.push(TextPart::Expression { expression, offset: start });
        at = start + length + 1;
    }
    if !literal.is_empty() {
        parts.push(TextPart::Literal(literal));
    }
    Ok(parts)
}

/// Returns the number of bytes before the `}` that closes the expression. A `}` within a text does not close it.
fn expression_length(inner: &str) -> Option<usize> {
    let mut quote = None;
    let mut letters = inner.char_indices();
    while let Some((index, letter)) = letters.next() {
        match (quote, letter) {
            (None, '}') => return Some(index),
            (None, '"' | '\'') => quote = Some(letter),
            (Some(_), '\\') => {
                letters.next();
            }
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
    }
    // The quote may be wrong: the parser then says where the text begins.
    if quote.is_some() { inner.find('}') } else { None }
}

/// Returns the type of a text: the type of its expression, if the text is nothing else, else string.
///
/// # Errors
/// The problem of the first wrong expression, and a list, map or float within text; offsets count from the start of the
/// text.
pub fn check_text(
    parts: &[TextPart],
    environment: &Environment,
) -> Result<ValueType, ExpressionError> {
    if let [TextPart::Expression { expression, offset }] = parts {
        return expression.check(environment).map_err(|error| error.shifted(*offset));
    }
    for part in parts {
        let TextPart::Expression { expression, offset } = part else { continue };
        let found = expression.check(environment).map_err(|error| error.shifted(*offset))?;
        if !matches!(found, ValueType::Text | ValueType::Int | ValueType::Bool) {
            return Err(not_embedded(&found.to_string(), expression, *offset));
        }
    }
    Ok(ValueType::Text)
}

/// Evaluates a text.
///
/// # Errors
/// The problem of the first expression that fails; offsets count from the start of the text.
pub fn evaluate_text(parts: &[TextPart], scope: &Scope<'_>) -> Result<Value, ExpressionError> {
    if let [TextPart::Expression { expression, offset }] = parts {
        return expression.evaluate(scope).map_err(|error| error.shifted(*offset));
    }
    let mut text = String::new();
    for part in parts {
        match part {
            TextPart::Literal(literal) => text.push_str(literal),
            TextPart::Expression { expression, offset } => {
                let value = expression.evaluate(scope).map_err(|error| error.shifted(*offset))?;
                let Some(embedded) = value.embedded_text() else {
                    return Err(not_embedded(&value.value_type().to_string(), expression, *offset));
                };
                text.push_str(&embedded);
            }
        }
    }
    Ok(Value::Text(text))
}

fn not_embedded(found: &str, expression: &Expression, offset: usize) -> ExpressionError {
    let range = (offset, offset + expression.text().len());
    let message = format!("only string, int and bool stand within text, this is {found}");
    let error = ExpressionError::new(Cause::Type, range, message);
    match found {
        "float" => error.hint("add `| round` or `| string`"),
        _ if found.starts_with("list") => error.hint("add `| join(\", \")`"),
        _ => error,
    }
}
