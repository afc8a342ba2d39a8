//! The results of the functions. The checker has approved the types; a wrong value is still an error, never a panic.

use crate::expressions::evaluation::bounded_text::BoundedText;
use crate::expressions::functions::version::compare_versions;
use crate::expressions::value::Value;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::net::IpAddr;

/// The maximum length of a computed text in bytes.
const LONGEST_TEXT: usize = 1024 * 1024;

/// The maximum length of a text that a pattern is matched with, in bytes.
const LONGEST_MATCHED: usize = 16 * 1024;

type Computed = Result<Value, String>;

/// Returns the arguments as texts.
fn texts<const N: usize>(arguments: Vec<Value>) -> Result<[String; N], String> {
    let texts: Vec<String> = arguments
        .into_iter()
        .map(|value| match value {
            Value::Text(text) => Ok(text),
            other => Err(format!("wants a string, found {}", other.value_type())),
        })
        .collect::<Result<_, _>>()?;
    texts.try_into().map_err(|texts: Vec<_>| format!("wants {N} values, found {}", texts.len()))
}

/// Returns the only argument.
fn only(arguments: Vec<Value>) -> Computed {
    arguments.into_iter().next().ok_or_else(|| "wants a value".to_owned())
}

/// Returns the items of the first argument, and the other arguments.
fn items(arguments: Vec<Value>) -> Result<(Vec<Value>, Vec<Value>), String> {
    let mut arguments = arguments.into_iter();
    match arguments.next() {
        Some(Value::List(items)) => Ok((items.into_inner(), arguments.collect())),
        _ => Err("wants a list".to_owned()),
    }
}

/// The maximum number of parts of a split text.
const MOST_PARTS: usize = 200_000;

fn bounded(text: String) -> Computed {
    if text.len() > LONGEST_TEXT { Err(too_long()) } else { Ok(Value::Text(text)) }
}

fn too_long() -> String {
    format!("computes a text of more than {LONGEST_TEXT} bytes")
}

pub(in crate::expressions) fn lower(arguments: Vec<Value>) -> Computed {
    texts(arguments).and_then(|[text]| bounded(text.to_lowercase()))
}

pub(in crate::expressions) fn upper(arguments: Vec<Value>) -> Computed {
    texts(arguments).and_then(|[text]| bounded(text.to_uppercase()))
}

pub(in crate::expressions) fn trim(arguments: Vec<Value>) -> Computed {
    texts(arguments).map(|[text]| Value::Text(text.trim().to_owned()))
}

pub(in crate::expressions) fn replace(arguments: Vec<Value>) -> Computed {
    let [text, old, new] = texts(arguments)?;
    if old.is_empty() {
        return Err("wants a text to replace, found an empty one".to_owned());
    }
    let added = text.matches(old.as_str()).count().saturating_mul(new.len());
    if added.saturating_add(text.len()) > LONGEST_TEXT * 2 {
        return Err(too_long());
    }
    bounded(text.replace(old.as_str(), &new))
}

pub(in crate::expressions) fn split(arguments: Vec<Value>) -> Computed {
    let [text, separator] = texts(arguments)?;
    if separator.is_empty() {
        return Err("wants a separator that is not empty".to_owned());
    }
    if text.matches(separator.as_str()).take(MOST_PARTS).count() == MOST_PARTS {
        return Err(format!("gives more than {MOST_PARTS} parts"));
    }
    let parts = text.split(separator.as_str()).map(|part| Value::Text(part.to_owned()));
    Ok(Value::List(parts.collect()))
}

pub(in crate::expressions) fn join(arguments: Vec<Value>) -> Computed {
    let (items, others) = items(arguments)?;
    let [separator] = texts(others)?;
    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            joined.push_str(&separator);
        }
        joined.push_str(&item.embedded_text().ok_or("wants strings, ints or bools")?);
        if joined.len() > LONGEST_TEXT {
            return Err(too_long());
        }
    }
    Ok(Value::Text(joined))
}

pub(in crate::expressions) fn startswith(arguments: Vec<Value>) -> Computed {
    texts(arguments).map(|[text, start]| Value::Bool(text.starts_with(start.as_str())))
}

pub(in crate::expressions) fn endswith(arguments: Vec<Value>) -> Computed {
    texts(arguments).map(|[text, end]| Value::Bool(text.ends_with(end.as_str())))
}

pub(in crate::expressions) fn matches(arguments: Vec<Value>) -> Computed {
    let [text, pattern] = texts(arguments)?;
    if text.len() > LONGEST_MATCHED {
        return Err(format!("looks into at most {LONGEST_MATCHED} bytes, found {}", text.len()));
    }
    Ok(Value::Bool(compile_pattern(&pattern)?.is_match(&text)))
}

/// Compiles a pattern of bounded size, so that a match takes a bounded time.
pub(in crate::expressions) fn compile_pattern(pattern: &str) -> Result<regex_lite::Regex, String> {
    let compiled = regex_lite::RegexBuilder::new(pattern).size_limit(64 * 1024).build();
    compiled.map_err(|error| format!("has a wrong pattern: {error}"))
}

pub(in crate::expressions) fn basename(arguments: Vec<Value>) -> Computed {
    let [path] = texts(arguments)?;
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Ok(Value::Text(name.to_owned()))
}

pub(in crate::expressions) fn dirname(arguments: Vec<Value>) -> Computed {
    let [path] = texts(arguments)?;
    let directory = match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None if path.starts_with('/') => "/",
        None => ".",
    };
    Ok(Value::Text(directory.to_owned()))
}

pub(in crate::expressions) fn length(arguments: Vec<Value>) -> Computed {
    let length = match only(arguments)? {
        Value::Text(text) => text.chars().count(),
        Value::List(items) => items.len(),
        Value::Map(entries) => entries.len(),
        other => return Err(format!("wants a list, map or string, found {}", other.value_type())),
    };
    i64::try_from(length).map(Value::Int).map_err(|error| error.to_string())
}

pub(in crate::expressions) fn first(arguments: Vec<Value>) -> Computed {
    items(arguments)?.0.into_iter().next().ok_or_else(|| "finds no item: the list is empty".into())
}

pub(in crate::expressions) fn last(arguments: Vec<Value>) -> Computed {
    items(arguments)?.0.pop().ok_or_else(|| "finds no item: the list is empty".into())
}

/// Compares two values of one type.
fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => one.cmp(other),
        (Value::Float(one), Value::Float(other)) => one.total_cmp(other),
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        _ => Ordering::Equal,
    }
}

pub(in crate::expressions) fn sort(arguments: Vec<Value>) -> Computed {
    let (mut items, _) = items(arguments)?;
    items.sort_by(compare);
    Ok(Value::List(items.into()))
}

pub(in crate::expressions) fn unique(arguments: Vec<Value>) -> Computed {
    let (mut items, _) = items(arguments)?;
    let mut seen = HashSet::new();
    items.retain(|item| seen.insert(scalar_text(item).unwrap_or_default()));
    Ok(Value::List(items.into()))
}

pub(in crate::expressions) fn map(arguments: Vec<Value>) -> Computed {
    let (items, others) = items(arguments)?;
    let [key] = texts(others)?;
    let values = items.into_iter().map(|item| match item {
        Value::Map(entries) => {
            entries.get(&key).cloned().ok_or_else(|| format!("finds an item without `{key}`"))
        }
        other => Err(format!("wants maps, found {}", other.value_type())),
    });
    values.collect::<Result<_, _>>().map(Value::List)
}

pub(in crate::expressions) fn select(arguments: Vec<Value>) -> Computed {
    let (mut items, others) = items(arguments)?;
    let mut others = others.into_iter();
    let Some(Value::Text(key)) = others.next() else { return Err("wants a key".to_owned()) };
    let wanted = others.next().unwrap_or(Value::Bool(true));
    items.retain(|item| matches!(item, Value::Map(entries) if entries.get(&key) == Some(&wanted)));
    Ok(Value::List(items.into()))
}

pub(in crate::expressions) fn keys(arguments: Vec<Value>) -> Computed {
    match only(arguments)? {
        Value::Map(entries) => Ok(Value::List(entries.keys().cloned().map(Value::Text).collect())),
        other => Err(format!("wants a map, found {}", other.value_type())),
    }
}

/// Returns several values, or the items of the only list.
fn candidates(arguments: Vec<Value>) -> Result<Vec<Value>, String> {
    if arguments.len() == 1 { items(arguments).map(|(items, _)| items) } else { Ok(arguments) }
}

pub(in crate::expressions) fn min(arguments: Vec<Value>) -> Computed {
    let smallest = candidates(arguments)?.into_iter().min_by(compare);
    smallest.ok_or_else(|| "finds no item: the list is empty".to_owned())
}

pub(in crate::expressions) fn max(arguments: Vec<Value>) -> Computed {
    let largest = candidates(arguments)?.into_iter().max_by(compare);
    largest.ok_or_else(|| "finds no item: the list is empty".to_owned())
}

pub(in crate::expressions) fn abs(arguments: Vec<Value>) -> Computed {
    match only(arguments)? {
        Value::Int(number) => {
            number.checked_abs().map(Value::Int).ok_or_else(|| "exceeds 64 bits".to_owned())
        }
        Value::Float(number) => Ok(Value::Float(number.abs())),
        other => Err(format!("wants a number, found {}", other.value_type())),
    }
}

pub(in crate::expressions) fn round(arguments: Vec<Value>) -> Computed {
    let mut arguments = arguments.into_iter();
    let number = match arguments.next() {
        Some(Value::Float(number)) => number,
        #[expect(clippy::cast_precision_loss, reason = "a rounded float was asked for")]
        Some(Value::Int(number)) => match arguments.next() {
            None => return Ok(Value::Int(number)),
            Some(_) => return Ok(Value::Float(number as f64)),
        },
        _ => return Err("wants a number".to_owned()),
    };
    match arguments.next() {
        None => float_to_int(number.round()),
        Some(Value::Int(digits)) if (0..=15).contains(&digits) => {
            let scale = 10_f64.powi(i32::try_from(digits).unwrap_or(0));
            let scaled = number * scale;
            // A number this large has no fraction.
            Ok(Value::Float(if scaled.is_finite() { scaled.round() / scale } else { number }))
        }
        Some(_) => Err("wants 0 to 15 digits".to_owned()),
    }
}

fn float_to_int(number: f64) -> Computed {
    let whole = number.trunc();
    // Both bounds are exact floats.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
        return Err(format!("finds {number}, which exceeds an int of 64 bits"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    Ok(Value::Int(whole as i64))
}

pub(in crate::expressions) fn to_int(arguments: Vec<Value>) -> Computed {
    match only(arguments)? {
        Value::Int(number) => Ok(Value::Int(number)),
        Value::Bool(truth) => Ok(Value::Int(i64::from(truth))),
        Value::Float(number) => float_to_int(number),
        Value::Text(text) => match text.trim().parse() {
            Ok(number) => Ok(Value::Int(number)),
            Err(_) => Err(format!(
                "finds no integer in \"{}\"",
                crate::expressions::syntax::parse::shortened(&text)
            )),
        },
        other => Err(format!("wants a string, number or bool, found {}", other.value_type())),
    }
}

/// Returns the text of a string, a number or a bool.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::Float(number) => Some(format!("{number:?}")),
        other => other.embedded_text(),
    }
}

pub(in crate::expressions) fn to_text(arguments: Vec<Value>) -> Computed {
    let value = only(arguments)?;
    let text = scalar_text(&value);
    text.map(Value::Text).ok_or_else(|| "wants a string, number or bool".to_owned())
}

pub(in crate::expressions) fn to_bool(arguments: Vec<Value>) -> Computed {
    match only(arguments)? {
        Value::Bool(truth) => Ok(Value::Bool(truth)),
        Value::Int(number) => Ok(Value::Bool(number != 0)),
        Value::Text(text) if text == "true" => Ok(Value::Bool(true)),
        Value::Text(text) if text == "false" => Ok(Value::Bool(false)),
        Value::Text(text) => {
            let text = crate::expressions::syntax::parse::shortened(&text);
            Err(format!("wants `true` or `false`, found \"{text}\""))
        }
        other => Err(format!("wants a string, int or bool, found {}", other.value_type())),
    }
}

pub(in crate::expressions) fn to_json(arguments: Vec<Value>) -> Computed {
    let value = only(arguments)?;
    let mut text = BoundedText::default();
    serde_json::to_writer(&mut text, &value).map_err(|error| error.to_string())?;
    bounded(text.into_text())
}

fn compare_two(arguments: Vec<Value>) -> Result<Ordering, String> {
    texts(arguments).map(|[one, other]| compare_versions(&one, &other))
}

pub(in crate::expressions) fn version_ge(arguments: Vec<Value>) -> Computed {
    compare_two(arguments).map(|order| Value::Bool(order.is_ge()))
}

pub(in crate::expressions) fn version_gt(arguments: Vec<Value>) -> Computed {
    compare_two(arguments).map(|order| Value::Bool(order.is_gt()))
}

pub(in crate::expressions) fn version_le(arguments: Vec<Value>) -> Computed {
    compare_two(arguments).map(|order| Value::Bool(order.is_le()))
}

pub(in crate::expressions) fn version_lt(arguments: Vec<Value>) -> Computed {
    compare_two(arguments).map(|order| Value::Bool(order.is_lt()))
}

/// A network: an address and the length of its prefix.
#[derive(Debug)]
pub(in crate::expressions) struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    /// Reads `10.0.0.0/8`, or an address alone.
    pub(in crate::expressions) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            let text = crate::expressions::syntax::parse::shortened(text);
            format!("wants a network such as `10.0.0.0/8`, found \"{text}\"")
        };
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.parse().map_err(|_invalid| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => longest,
            Some(prefix) => prefix.parse().map_err(|_invalid| wrong())?,
        };
        if prefix > longest { Err(wrong()) } else { Ok(Self { address, prefix }) }
    }

    fn contains(&self, address: IpAddr) -> bool {
        let equal = |one: u128, other: u128, bits: u32| {
            self.prefix == 0 || (one ^ other) >> (bits - self.prefix) == 0
        };
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                equal(u128::from(own.to_bits()), u128::from(other.to_bits()), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => equal(own.to_bits(), other.to_bits(), 128),
            _ => false,
        }
    }
}

pub(in crate::expressions) fn ip_in(arguments: Vec<Value>) -> Computed {
    let [address, network] = texts(arguments)?;
    let address: IpAddr = address.parse().map_err(|_invalid| {
        format!(
            "wants an IP address, found \"{}\"",
            crate::expressions::syntax::parse::shortened(&address)
        )
    })?;
    Ok(Value::Bool(Network::parse(&network)?.contains(address)))
}

/// `default` is no ordinary function: its value may be absent.
pub(in crate::expressions) fn never(_arguments: Vec<Value>) -> Computed {
    Err("stands after a name".to_owned())
}
