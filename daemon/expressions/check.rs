//! The checker: the type of an expression, or the first reason to refuse it.

use crate::expressions::environment::{Environment, main_key};
use crate::expressions::error::{Cause, ExpressionError};
use crate::expressions::functions::table::{Argument, Function};
use crate::expressions::syntax::advice::shown_name;
use crate::expressions::syntax::node::{Node, NodeKind, Operator};
use crate::expressions::syntax::parse::shortened;
use crate::expressions::value_type::ValueType;
use std::sync::Arc;

type Typed = Result<ValueType, ExpressionError>;

/// Returns the type of a node.
pub(super) fn type_of(node: &Node, environment: &Environment) -> Typed {
    match &node.kind {
        NodeKind::Bool(_) => Ok(ValueType::Bool),
        NodeKind::Int(_) => Ok(ValueType::Int),
        NodeKind::Float(_) => Ok(ValueType::Float),
        NodeKind::Text(_) => Ok(ValueType::Text),
        NodeKind::List(items) => list_type(items, environment),
        NodeKind::Path(path) => {
            let found = environment.resolve(path, node.range())?;
            match found.optional {
                None => Ok(found.value_type.into_owned()),
                Some(absent) => {
                    let is_list =
                        |of: &ValueType| matches!(of, ValueType::Map(_) | ValueType::AnyMap(_));
                    let value = match &*found.value_type {
                        ValueType::Text => "\"\"",
                        ValueType::Int | ValueType::Float => "0",
                        ValueType::Bool => "false",
                        _ => "…",
                    };
                    let name = shown_name(path);
                    let map = path.get(..path.len().saturating_sub(1)).unwrap_or_default();
                    let key = path.last().map(String::as_str).unwrap_or_default();
                    let hint = if is_list(&found.value_type) {
                        format!("write `\"{}\" in {}`", shortened(key), shown_name(map))
                    } else {
                        format!("write `{name} | default({value})`")
                    };
                    let absent = shown_name(&absent);
                    Err(wrong(node, Cause::Type, format!("`{absent}` may be absent")).hint(hint))
                }
            }
        }
        NodeKind::Key(map, key) => {
            let map_type = type_of(map, environment)?;
            key_type(node, &map_type, key)
        }
        NodeKind::Index(list, index) => index_type(list, index, environment),
        NodeKind::Not(inner) => {
            want_bool(inner, environment, "`not`")?;
            Ok(ValueType::Bool)
        }
        NodeKind::Negate(inner) => match type_of(inner, environment)? {
            number @ (ValueType::Int | ValueType::Float) => Ok(number),
            other => Err(wrong(inner, Cause::Type, format!("`-` wants a number, found {other}"))),
        },
        NodeKind::Binary(operator, left, right) => {
            binary_type(node, *operator, left, right, environment)
        }
        NodeKind::If(value, condition, other) => {
            want_bool(condition, environment, "`if`")?;
            let (one, two) = (type_of(value, environment)?, type_of(other, environment)?);
            let joined = one.join(&two);
            if joined == ValueType::Unknown {
                let message = format!("`if` gives {one}, `else` gives {two}; both must be equal");
                return Err(wrong(node, Cause::Type, message));
            }
            Ok(joined)
        }
        NodeKind::Default(value, other) => default_type(value, other, environment),
        NodeKind::Call(function, arguments) => call_type(node, function, arguments, environment),
    }
}

fn wrong(node: &Node, cause: Cause, message: impl Into<String>) -> ExpressionError {
    ExpressionError::new(cause, node.range(), message)
}

fn list_type(items: &[Node], environment: &Environment) -> Typed {
    let mut joined: Option<ValueType> = None;
    for item in items {
        let found = type_of(item, environment)?;
        joined = Some(match joined {
            None => found,
            Some(before) => match before.join(&found) {
                ValueType::Unknown => {
                    let message =
                        format!("a list has items of one type, found {before} and {found}");
                    return Err(wrong(item, Cause::Type, message));
                }
                joined => joined,
            },
        });
    }
    Ok(ValueType::List(Arc::new(joined.unwrap_or(ValueType::Nothing))))
}

fn key_type(node: &Node, map: &ValueType, key: &str) -> Typed {
    let found = match map {
        ValueType::Map(keys) => keys.get(key),
        _ => None,
    };
    let key = shortened(key);
    match map {
        ValueType::Map(keys) => match found {
            Some(found) if !found.optional => Ok(found.value_type.clone()),
            Some(_) => Err(wrong(node, Cause::Type, format!("`{key}` may be absent"))),
            None => {
                let known: Vec<&str> = keys.keys().map(String::as_str).take(9).collect();
                let message = format!("the map has no `{key}`; it has {}", known.join(", "));
                Err(wrong(node, Cause::Name, message))
            }
        },
        ValueType::AnyMap(_) => Err(wrong(node, Cause::Type, format!("`{key}` may be absent"))),
        other => Err(wrong(node, Cause::Type, format!("this is {other}; it has no `{key}`"))),
    }
}

fn index_type(list: &Node, index: &Node, environment: &Environment) -> Typed {
    let index_type = type_of(index, environment)?;
    match (type_of(list, environment)?, index_type) {
        (ValueType::List(items), ValueType::Int) => Ok(ValueType::clone(&items)),
        (ValueType::List(_), other) => {
            Err(wrong(index, Cause::Type, format!("the index of a list is int, found {other}")))
        }
        (map @ (ValueType::Map(_) | ValueType::AnyMap(_)), _) => {
            Err(wrong(index, Cause::Type, format!("a key of {map} stands in quotes")))
        }
        (other, _) => Err(wrong(list, Cause::Type, format!("`[ ]` wants a list, found {other}"))),
    }
}

/// Fails unless the node is bool. `whose` names the operator.
fn want_bool(node: &Node, environment: &Environment, whose: &str) -> Result<(), ExpressionError> {
    match type_of(node, environment)? {
        ValueType::Bool => Ok(()),
        other => {
            let error = wrong(node, Cause::Type, format!("{whose} wants bool, found {other}"));
            Err(error.hint_if(as_condition(node, &other).map(|text| format!("write `{text}`"))))
        }
    }
}

/// Returns the condition that the author of a value probably meant.
fn as_condition(node: &Node, found: &ValueType) -> Option<String> {
    let NodeKind::Path(path) = &node.kind else { return None };
    let name = shortened(&path.join("."));
    Some(match found {
        ValueType::Int | ValueType::Float => format!("{name} > 0"),
        ValueType::Text => format!("{name} != \"\""),
        ValueType::List(_) | ValueType::Map(_) | ValueType::AnyMap(_) => {
            format!("{name} | length > 0")
        }
        ValueType::Bool | ValueType::Nothing | ValueType::Unknown => return None,
    })
}

/// Fails unless the whole expression is bool.
pub(super) fn check_condition(
    node: &Node,
    environment: &Environment,
) -> Result<(), ExpressionError> {
    match type_of(node, environment)? {
        ValueType::Bool => Ok(()),
        found => {
            let instead = as_condition(node, &found);
            let instead = instead.map(|text| format!("; write `{text}`")).unwrap_or_default();
            let message = format!("a condition must be bool, this is {found}{instead}");
            Err(wrong(node, Cause::Type, message))
        }
    }
}

/// Names a type in a message: a map with many keys by the word alone.
fn brief(found: &ValueType) -> String {
    let text = found.to_string();
    if text.chars().count() > 40 { "a map".to_owned() } else { text }
}

/// Refuses a comparison of two types, with the usual repair.
fn refuse_comparison(node: &Node, one: &ValueType, two: &ValueType) -> Typed {
    let is_text = |of: &ValueType| *of == ValueType::Text;
    let error = wrong(node, Cause::Type, format!("compares {} with {}", brief(one), brief(two)));
    let hint = match (one, two) {
        (text, number) | (number, text) if is_text(text) && is_number(number) => {
            "`| int` makes a number of a string; `x | version_ge(\"9\")` compares versions"
        }
        (ValueType::Bool, _) | (_, ValueType::Bool) => {
            "a bool needs no comparison: write `x` or `not x`"
        }
        _ => return Err(error.hint_if(hint_for_map(node, one, two))),
    };
    Err(error.hint(hint))
}

/// Returns the advice for the comparison of a named map: the key that was probably meant.
fn hint_for_map(node: &Node, one: &ValueType, two: &ValueType) -> Option<String> {
    let NodeKind::Binary(_, left, right) = &node.kind else { return None };
    let sides = [(left, one), (right, two)];
    sides.into_iter().find_map(|(side, found)| {
        let (NodeKind::Path(path), Some(key)) = (&side.kind, main_key(found)) else { return None };
        Some(format!("a map has keys: write `{}.{}`", shown_name(path), shortened(key)))
    })
}

/// Checks the order of two strings: a version or a number in a string has another order than its letters.
fn order_of_texts(node: &Node, sign: &str, sides: [&Node; 2]) -> Typed {
    let Some(text) = sides.into_iter().find_map(version_of) else { return Ok(ValueType::Bool) };
    let message = format!("`{sign}` orders strings by letters: \"13\" < \"9\"");
    let hint = format!("compare versions: `x | version_ge(\"{text}\")`; numbers: `x | int`");
    Err(wrong(node, Cause::Type, message).hint(hint))
}

/// Returns the text of a literal that looks like a version or a number.
fn version_of(node: &Node) -> Option<&str> {
    match &node.kind {
        NodeKind::Text(text) if text.starts_with(|letter: char| letter.is_ascii_digit()) => {
            Some(text)
        }
        _ => None,
    }
}

fn binary_type(
    node: &Node,
    operator: Operator,
    left: &Node,
    right: &Node,
    environment: &Environment,
) -> Typed {
    let sign = operator.sign();
    if matches!(operator, Operator::And | Operator::Or) {
        want_bool(left, environment, &format!("`{sign}`"))?;
        want_bool(right, environment, &format!("`{sign}`"))?;
        return Ok(ValueType::Bool);
    }
    let (one, two) = (type_of(left, environment)?, type_of(right, environment)?);
    let refuse = |message: String| Err(wrong(node, Cause::Type, message));
    match operator {
        Operator::And | Operator::Or => Ok(ValueType::Bool),
        Operator::Equal | Operator::NotEqual => {
            if are_comparable(&one, &two) {
                return Ok(ValueType::Bool);
            }
            refuse_comparison(node, &one, &two)
        }
        Operator::Less | Operator::LessEqual | Operator::Greater | Operator::GreaterEqual => {
            match (&one, &two) {
                (ValueType::Text, ValueType::Text) => order_of_texts(node, sign, [left, right]),
                _ if is_number(&one) && is_number(&two) => Ok(ValueType::Bool),
                _ if one == two => {
                    refuse(format!("`{sign}` wants numbers or strings, found {one}"))
                }
                _ => refuse_comparison(node, &one, &two),
            }
        }
        Operator::In | Operator::NotIn => match &two {
            ValueType::Text if one == ValueType::Text => Ok(ValueType::Bool),
            ValueType::Map(_) | ValueType::AnyMap(_) if one == ValueType::Text => {
                Ok(ValueType::Bool)
            }
            ValueType::List(items) if has_no_type(items) || are_comparable(&one, items) => {
                Ok(ValueType::Bool)
            }
            ValueType::List(items) => refuse(format!("looks for {one} in a list of {items}")),
            ValueType::Text | ValueType::Map(_) | ValueType::AnyMap(_) => {
                refuse(format!("looks for {one} in {two}"))
            }
            _ => refuse(format!("`{sign}` wants a list, map or string, found {two}")),
        },
        Operator::Concat => {
            let embedded = |found: &ValueType| {
                matches!(found, ValueType::Text | ValueType::Int | ValueType::Bool)
            };
            for (part, found) in [(left, &one), (right, &two)] {
                if !embedded(found) {
                    let message = format!("`~` wants string, int or bool, found {found}");
                    return Err(wrong(part, Cause::Type, message));
                }
            }
            Ok(ValueType::Text)
        }
        Operator::Add if matches!((&one, &two), (ValueType::Text, ValueType::Text)) => {
            Ok(ValueType::Text)
        }
        Operator::Add if matches!((&one, &two), (ValueType::List(_), ValueType::List(_))) => {
            match one.join(&two) {
                ValueType::List(items)
                    if *items == ValueType::Unknown && !(is_mixed(&one) || is_mixed(&two)) =>
                {
                    refuse(format!("joins {one} with {two}"))
                }
                joined => Ok(joined),
            }
        }
        Operator::Add
        | Operator::Subtract
        | Operator::Multiply
        | Operator::Divide
        | Operator::FloorDivide
        | Operator::Remainder => arithmetic_type(node, operator, &one, &two),
    }
}

fn arithmetic_type(node: &Node, operator: Operator, one: &ValueType, two: &ValueType) -> Typed {
    let sign = operator.sign();
    match (one, two) {
        (ValueType::Int, ValueType::Int) if operator == Operator::Divide => Ok(ValueType::Float),
        (ValueType::Int, ValueType::Int) => Ok(ValueType::Int),
        _ if is_number(one) && is_number(two) => Ok(ValueType::Float),
        _ => {
            let found = if is_number(one) { two } else { one };
            let error = wrong(node, Cause::Type, format!("`{sign}` wants numbers, found {found}"));
            let has_text = *one == ValueType::Text || *two == ValueType::Text;
            let hint = has_text && operator == Operator::Add;
            Err(error.hint_if(hint.then(|| "texts are joined by `~`".to_owned())))
        }
    }
}

/// Returns true for the type of a list with several types.
fn is_mixed(found: &ValueType) -> bool {
    matches!(found, ValueType::List(items) if **items == ValueType::Unknown)
}

const fn is_number(found: &ValueType) -> bool {
    matches!(found, ValueType::Int | ValueType::Float)
}

/// Returns true for the items of an empty list, or of a list with several types.
const fn has_no_type(items: &ValueType) -> bool {
    matches!(items, ValueType::Nothing | ValueType::Unknown)
}

/// Returns true if `==` has a meaning: equal types, two numbers, or an empty list.
fn are_comparable(one: &ValueType, two: &ValueType) -> bool {
    match (one, two) {
        _ if has_no_type(one) || has_no_type(two) => false,
        (ValueType::List(one), ValueType::List(two)) => {
            has_no_type(one) || has_no_type(two) || are_comparable(one, two)
        }
        _ => one == two || is_number(one) && is_number(two),
    }
}

fn default_type(value: &Node, other: &Node, environment: &Environment) -> Typed {
    let NodeKind::Path(path) = &value.kind else {
        let message = "`default` stands after a name, such as `params.x`";
        return Err(wrong(value, Cause::Type, message));
    };
    if environment.is_absent(path) {
        return type_of(other, environment);
    }
    let found = environment.resolve(path, value.range())?;
    let may_be_absent =
        path.first().is_some_and(|root| root == "params") || environment.is_open(path);
    if found.optional.is_none() && !may_be_absent {
        let name = shortened(&path.join("."));
        return Err(wrong(value, Cause::Type, format!("`{name}` is never absent"))
            .hint("remove `default`, or mark the key as optional in the declaration"));
    }
    let replacement = type_of(other, environment)?;
    let joined = found.value_type.join(&replacement);
    if joined == ValueType::Unknown {
        let message = format!("the value is {}, the default {replacement}", found.value_type);
        return Err(wrong(other, Cause::Type, message));
    }
    Ok(joined)
}

fn call_type(
    node: &Node,
    function: &Function,
    arguments: &[Node],
    environment: &Environment,
) -> Typed {
    let mut typed = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let literal = match &argument.kind {
            NodeKind::Text(text) => Some(text.as_str()),
            _ => None,
        };
        typed.push(Argument { value_type: type_of(argument, environment)?, literal });
    }
    (function.result_type)(&typed).map_err(|problem| {
        let line = problem.lines().next().unwrap_or_default();
        wrong(node, Cause::Type, format!("`{}` {line}", function.name))
            .hint(format!("write {}", function.usage))
    })
}
