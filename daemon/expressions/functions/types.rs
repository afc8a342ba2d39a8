//! The types of the functions' arguments and results.

use crate::expressions::functions::calls::{Network, compile_pattern};
use crate::expressions::functions::table::Argument;
use crate::expressions::value_type::ValueType;
use std::sync::Arc;

type Typed = Result<ValueType, String>;

/// Fails unless argument `index` has the type.
fn want(arguments: &[Argument<'_>], index: usize, wanted: &ValueType) -> Result<(), String> {
    match arguments.get(index) {
        Some(found) if found.value_type == *wanted => Ok(()),
        Some(found) => Err(format!("wants {wanted}, found {}", found.value_type)),
        None => Err(format!("wants {wanted}")),
    }
}

/// Fails unless all arguments are strings.
fn want_texts(arguments: &[Argument<'_>]) -> Result<(), String> {
    (0..arguments.len()).try_for_each(|index| want(arguments, index, &ValueType::Text))
}

/// Returns the type of the first argument.
fn first_type<'a>(arguments: &'a [Argument<'_>]) -> &'a ValueType {
    arguments.first().map_or(&ValueType::Unknown, |argument| &argument.value_type)
}

/// Returns the type of the items of the first argument, or fails.
fn items_of<'a>(arguments: &'a [Argument<'_>]) -> Result<&'a ValueType, String> {
    match first_type(arguments) {
        ValueType::List(items) => Ok(items),
        other => Err(format!("wants a list, found {other}")),
    }
}

const fn is_scalar(value_type: &ValueType) -> bool {
    matches!(value_type, ValueType::Bool | ValueType::Int | ValueType::Text | ValueType::Float)
}

const fn is_ordered(value_type: &ValueType) -> bool {
    matches!(value_type, ValueType::Int | ValueType::Text | ValueType::Float)
}

pub(in crate::expressions) fn text_to_text(arguments: &[Argument<'_>]) -> Typed {
    want_texts(arguments).map(|()| ValueType::Text)
}

pub(in crate::expressions) fn text_to_list(arguments: &[Argument<'_>]) -> Typed {
    if arguments.get(1).and_then(|argument| argument.literal) == Some("") {
        return Err("wants a separator that is not empty".to_owned());
    }
    want_texts(arguments).map(|()| ValueType::List(Arc::new(ValueType::Text)))
}

pub(in crate::expressions) fn texts_to_bool(arguments: &[Argument<'_>]) -> Typed {
    want_texts(arguments).map(|()| ValueType::Bool)
}

pub(in crate::expressions) fn join_items(arguments: &[Argument<'_>]) -> Typed {
    want(arguments, 1, &ValueType::Text)?;
    match items_of(arguments)? {
        ValueType::Text | ValueType::Int | ValueType::Bool => Ok(ValueType::Text),
        ValueType::Nothing | ValueType::Unknown => Err("wants items of one type".to_owned()),
        other => Err(format!("wants a list of string, int or bool, found list of {other}")),
    }
}

pub(in crate::expressions) fn match_pattern(arguments: &[Argument<'_>]) -> Typed {
    want_texts(arguments)?;
    let Some(pattern) = arguments.get(1).and_then(|argument| argument.literal) else {
        return Err("wants a pattern in quotes, not a computed one".to_owned());
    };
    compile_pattern(pattern).map(|_| ValueType::Bool)
}

pub(in crate::expressions) fn address_in(arguments: &[Argument<'_>]) -> Typed {
    want_texts(arguments)?;
    match arguments.get(1).and_then(|argument| argument.literal) {
        Some(network) => Network::parse(network).map(|_| ValueType::Bool),
        None => Ok(ValueType::Bool),
    }
}

pub(in crate::expressions) fn count_items(arguments: &[Argument<'_>]) -> Typed {
    match first_type(arguments) {
        ValueType::Text | ValueType::List(_) | ValueType::Map(_) | ValueType::AnyMap(_) => {
            Ok(ValueType::Int)
        }
        other => Err(format!("wants a list, map or string, found {other}")),
    }
}

pub(in crate::expressions) fn list_to_item(arguments: &[Argument<'_>]) -> Typed {
    items_of(arguments).cloned()
}

pub(in crate::expressions) fn sort_items(arguments: &[Argument<'_>]) -> Typed {
    let items = items_of(arguments)?;
    if is_scalar(items) {
        return Ok(first_type(arguments).clone());
    }
    Err(format!("wants a list of strings, numbers or bools, found {}", first_type(arguments)))
}

pub(in crate::expressions) fn map_items(arguments: &[Argument<'_>]) -> Typed {
    let key = literal_key(arguments)?;
    let value_type = key_of_items(arguments, key)?;
    Ok(ValueType::List(Arc::new(value_type)))
}

pub(in crate::expressions) fn select_items(arguments: &[Argument<'_>]) -> Typed {
    let key = literal_key(arguments)?;
    let value_type = key_of_items(arguments, key)?;
    match arguments.get(2) {
        None if value_type == ValueType::Bool => {}
        None => {
            return Err(format!(
                "wants a key that is bool, or a value to compare with; `{key}` is {value_type}"
            ));
        }
        Some(wanted) if wanted.value_type == value_type && is_scalar(&value_type) => {}
        Some(wanted) => {
            return Err(format!("compares {value_type} with {}", wanted.value_type));
        }
    }
    Ok(first_type(arguments).clone())
}

fn literal_key<'a>(arguments: &[Argument<'a>]) -> Result<&'a str, String> {
    let key = arguments.get(1).and_then(|argument| argument.literal);
    key.ok_or_else(|| "wants a key in quotes".to_owned())
}

/// Returns the type of one key of the maps in the first argument.
fn key_of_items(arguments: &[Argument<'_>], key: &str) -> Typed {
    match items_of(arguments)? {
        ValueType::Map(keys) => match keys.get(key) {
            Some(found) if found.optional => {
                Err(format!("wants a key that each item has; `{key}` may be absent"))
            }
            Some(found) => Ok(found.value_type.clone()),
            None => {
                let known: Vec<&str> = keys.keys().map(String::as_str).collect();
                Err(format!("finds no key `{key}`; the items have {}", known.join(", ")))
            }
        },
        other => Err(format!("wants a list of maps, found list of {other}")),
    }
}

pub(in crate::expressions) fn keys_of(arguments: &[Argument<'_>]) -> Typed {
    match first_type(arguments) {
        ValueType::Map(_) | ValueType::AnyMap(_) => Ok(ValueType::List(Arc::new(ValueType::Text))),
        other => Err(format!("wants a map, found {other}")),
    }
}

pub(in crate::expressions) fn extreme(arguments: &[Argument<'_>]) -> Typed {
    let found = match arguments {
        [_] => items_of(arguments)?,
        [first, others @ ..] => {
            if let Some(other) = others.iter().find(|other| other.value_type != first.value_type) {
                return Err(format!("compares {} with {}", first.value_type, other.value_type));
            }
            &first.value_type
        }
        [] => &ValueType::Unknown,
    };
    if is_ordered(found) {
        return Ok(found.clone());
    }
    Err(format!("wants numbers or strings, found {found}"))
}

pub(in crate::expressions) fn number_to_number(arguments: &[Argument<'_>]) -> Typed {
    match first_type(arguments) {
        number @ (ValueType::Int | ValueType::Float) => Ok(number.clone()),
        other => Err(format!("wants a number, found {other}")),
    }
}

pub(in crate::expressions) fn round(arguments: &[Argument<'_>]) -> Typed {
    number_to_number(arguments)?;
    if arguments.len() == 1 {
        return Ok(ValueType::Int);
    }
    want(arguments, 1, &ValueType::Int).map(|()| ValueType::Float)
}

/// Fails unless the first argument is a string, a number or a bool.
fn scalar_to(arguments: &[Argument<'_>], result: ValueType) -> Typed {
    match first_type(arguments) {
        scalar if is_scalar(scalar) => Ok(result),
        other => Err(format!("wants a string, number or bool, found {other}")),
    }
}

pub(in crate::expressions) fn to_int(arguments: &[Argument<'_>]) -> Typed {
    scalar_to(arguments, ValueType::Int)
}

pub(in crate::expressions) fn to_text(arguments: &[Argument<'_>]) -> Typed {
    scalar_to(arguments, ValueType::Text)
}

pub(in crate::expressions) fn to_bool(arguments: &[Argument<'_>]) -> Typed {
    match first_type(arguments) {
        ValueType::Float => Err("wants a string, int or bool, found float".to_owned()),
        _ => scalar_to(arguments, ValueType::Bool),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the table of functions calls each in this form")]
pub(in crate::expressions) fn to_json(_arguments: &[Argument<'_>]) -> Typed {
    Ok(ValueType::Text)
}

/// The type of `default` depends on its argument's name, so that the checker knows it.
pub(in crate::expressions) fn never(_arguments: &[Argument<'_>]) -> Typed {
    Err("stands after a name".to_owned())
}
