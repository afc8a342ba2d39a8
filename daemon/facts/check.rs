//! Checks of values against the schema: host names and addresses may come from the network.

use super::schema::{FactClass, FactSpec, FactType, find_fact};
use super::table::SCHEMA;
use crate::expressions::{Value, ValueType};
use regex_lite::Regex;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A fact that is absent, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactProblem {
    /// The name of the fact.
    pub fact: String,
    /// The reason.
    pub message: String,
}

impl std::fmt::Display for FactProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "fact {}: {}", self.fact, self.message)
    }
}

/// Checks the value of a fact: its type, and the pattern of each string in it.
pub(super) fn check_fact(name: &str, value: &Value) -> Result<(), FactProblem> {
    let problem = |message| FactProblem { fact: name.to_owned(), message };
    let Some(spec) = find_fact(name) else {
        return Err(problem("no fact has this name".to_owned()));
    };
    let expected = spec.fact_type.value_type();
    if !fits_type(value, &expected) {
        let found = value.value_type();
        return Err(problem(format!("expected {expected}, found {found}")));
    }
    match wrong_text(spec, value) {
        None => Ok(()),
        Some(text) => Err(problem(format!(
            "the value {} does not match {}",
            shown(text),
            spec.pattern.unwrap_or_default()
        ))),
    }
}

/// Returns a string in printable form, shortened.
fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let short: String = text.chars().take(LONGEST).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

/// Returns the first string that the pattern refuses, also one that is a key.
fn wrong_text<'value>(spec: &FactSpec, value: &'value Value) -> Option<&'value str> {
    let pattern = compiled_pattern(spec.pattern?)?;
    find_text(value, &|text| !pattern.is_match(text))
}

/// Returns true if a fact may have this text as a value, or as an item.
pub(super) fn fits_pattern(spec: &FactSpec, text: &str) -> bool {
    let is_text = matches!(spec.fact_type, FactType::Text | FactType::Texts);
    let pattern = spec.pattern.filter(|_| is_text).and_then(compiled_pattern);
    pattern.is_none_or(|pattern| pattern.is_match(text))
}

fn find_text<'value>(value: &'value Value, wrong: &impl Fn(&str) -> bool) -> Option<&'value str> {
    match value {
        Value::Text(text) => Some(text.as_str()).filter(|text| wrong(text)),
        Value::List(items) => items.iter().find_map(|item| find_text(item, wrong)),
        Value::Map(entries) => entries.iter().find_map(|(key, value)| {
            Some(key.as_str()).filter(|key| wrong(key)).or_else(|| find_text(value, wrong))
        }),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => None,
    }
}

/// Returns a pattern of the schema, compiled once in a process.
fn compiled_pattern(pattern: &str) -> Option<&'static Regex> {
    static ALL: OnceLock<BTreeMap<&'static str, Regex>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let patterns = SCHEMA.iter().filter_map(|spec| spec.pattern);
        patterns.filter_map(|text| Some((text, Regex::new(text).ok()?))).collect()
    });
    all.get(pattern)
}

/// Returns true if the value has the type. An integer is a number with a fraction too.
fn fits_type(value: &Value, expected: &ValueType) -> bool {
    match (value, expected) {
        (_, ValueType::Unknown)
        | (Value::Bool(_), ValueType::Bool)
        | (Value::Int(_), ValueType::Int | ValueType::Float)
        | (Value::Float(_), ValueType::Float)
        | (Value::Text(_), ValueType::Text) => true,
        (Value::List(items), ValueType::List(item)) => items.iter().all(|it| fits_type(it, item)),
        (Value::Map(entries), ValueType::AnyMap(of)) => {
            entries.values().all(|it| fits_type(it, of))
        }
        (Value::Map(entries), ValueType::Map(keys)) => {
            let all_known = entries
                .iter()
                .all(|(name, it)| keys.get(name).is_some_and(|key| fits_type(it, &key.value_type)));
            let all_there =
                keys.iter().all(|(name, key)| key.optional || entries.contains_key(name));
            all_known && all_there
        }
        _ => false,
    }
}

/// Returns the display only facts, each with the reason for which an expression cannot use it.
pub fn display_facts() -> impl Iterator<Item = (&'static str, String)> {
    SCHEMA.iter().filter_map(|spec| Some((spec.name, refuse_display_fact(spec.name)?)))
}

/// Returns the refusal of a fact that expressions cannot use, for a dotted name without `facts.` in front.
#[must_use]
pub fn refuse_display_fact(name: &str) -> Option<String> {
    let spec = find_fact(name).filter(|spec| spec.class == FactClass::DisplayOnly)?;
    Some(format!(
        "`facts.{}` is display only: ask a probe that compares it with a threshold",
        spec.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_names_the_fact() {
        let name = |text: &str| check_fact("hostname", &Value::Text(text.to_owned()));
        assert_eq!(name("web-1.example.org"), Ok(()));
        for wrong in ["a b", "$(reboot)", "x\nroot", "", "-rf", "ä"] {
            let problem = name(wrong).expect_err(wrong);
            assert_eq!(problem.fact, "hostname", "{wrong}");
        }
        let problem = check_fact("cpu.count", &Value::Text("2".to_owned())).expect_err("a text");
        assert_eq!(problem.to_string(), "fact cpu.count: expected int, found string");
    }

    #[test]
    fn keys_of_maps_are_checked_too() {
        let json = serde_json::json!({"eth\n0": {"addresses": [], "mtu": 1500, "state": "up"}});
        let value = Value::from_json(json).expect("a value");
        assert!(check_fact("interfaces", &value).is_err());
    }

    #[test]
    fn display_only_facts_are_refused() {
        assert!(refuse_display_fact("memory.available_mb").is_some());
        assert_eq!(refuse_display_fact("memory.total_mb"), None);
    }
}
