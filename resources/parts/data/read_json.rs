//! Reads JSON with comments.

use super::nodes::{Entry, Node, What};
use super::tree::{Tree, is_json_number};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// Reads a text; none if there is no value in it.
///
/// # Errors
///
/// Returns the first error of the syntax.
pub(super) fn read(text: &str) -> Result<Option<Node>, String> {
    let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
    // The message may quote the text, which may be secret.
    let parsed = parsed.map_err(|error| {
        let before = text.get(..error.range().start).unwrap_or_default();
        format!("line {}: expected valid JSON", before.matches('\n').count() + 1)
    })?;
    Ok(parsed.value.as_ref().map(node))
}

fn node(value: &Value<'_>) -> Node {
    let range = value.range();
    let what = match value {
        Value::StringLit(it) => What::Scalar(Tree::Text(it.value.to_string())),
        Value::NumberLit(it) if is_json_number(it.value) => {
            What::Scalar(Tree::Number(it.value.to_owned()))
        }
        Value::NumberLit(it) => What::Scalar(Tree::Other(it.value.to_owned())),
        Value::BooleanLit(it) => What::Scalar(Tree::Bool(it.value)),
        Value::NullKeyword(_) => What::Scalar(Tree::Null),
        Value::Array(it) => {
            What::List { items: it.elements.iter().map(node).collect(), is_flow: true }
        }
        Value::Object(it) => {
            let entries = it.properties.iter().map(|property| {
                let name = property.name.range();
                Entry {
                    key: property.name.as_str().to_owned(),
                    key_span: name.start..name.end,
                    value: node(&property.value),
                }
            });
            What::Map { entries: entries.collect(), is_flow: true }
        }
    };
    Node { span: range.start..range.end, what, locked: None }
}
