//! A value of the graph language.

use crate::expressions::shared::Shared;
use crate::expressions::value_type::ValueType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A value of a variable, a fact, a parameter, a probe or an expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A finite number with a fraction.
    Float(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Shared<Vec<Self>>),
    /// A map with string keys, in the order of the keys.
    Map(Shared<BTreeMap<String, Self>>),
}

/// A part of a JSON value has no counterpart in the graph language.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAValue {
    /// `null`.
    #[error("expected a value, found null")]
    Null,
    /// An integer above the range of 64 bits with a sign.
    #[error("expected an integer between -2^63 and 2^63 - 1, found {0}")]
    Number(String),
}

impl Value {
    /// Returns the type. The items of a list with items of several types have the type [`ValueType::Unknown`].
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::Bool(_) => ValueType::Bool,
            Self::Int(_) => ValueType::Int,
            Self::Float(_) => ValueType::Float,
            Self::Text(_) => ValueType::Text,
            Self::List(items) => items.value_type().clone(),
            Self::Map(entries) => entries.value_type().clone(),
        }
    }

    /// Returns the bytes of the value as if its parts shared nothing.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(items) => items.size(),
            Self::Map(entries) => entries.size(),
            Self::Bool(_) | Self::Int(_) | Self::Float(_) => 0,
        }
    }

    /// Returns the bytes of the value without the parts of its lists and maps.
    pub(super) fn own_size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(items) => items.own_size(items.len()),
            Self::Map(entries) => entries.own_size(entries.len()),
            Self::Bool(_) | Self::Int(_) | Self::Float(_) => 0,
        }
    }

    /// Returns the text of a string, an integer or a truth value, as it is embedded in a string. Other values have no
    /// such text.
    ///
    /// ```
    /// use steadfast::expressions::Value;
    /// assert_eq!(Value::Int(8081).embedded_text().as_deref(), Some("8081"));
    /// assert_eq!(Value::List(vec![].into()).embedded_text(), None);
    /// ```
    #[must_use]
    pub fn embedded_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Int(number) => Some(number.to_string()),
            Self::Bool(truth) => Some(truth.to_string()),
            Self::Float(_) | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// Follows a dotted path through maps, such as `os.codename`.
    #[must_use]
    pub fn at_path(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |value, key| match value {
            Self::Map(entries) => entries.get(key),
            _ => None,
        })
    }

    /// Sets the value at a dotted path of maps; other values on the way become maps.
    pub fn insert_path(&mut self, path: &str, value: Self) {
        if !matches!(self, Self::Map(_)) {
            *self = Self::Map(Shared::default());
        }
        let Self::Map(entries) = self else { return };
        match path.split_once('.') {
            None => drop(entries.insert(path.to_owned(), value)),
            Some((first, rest)) => {
                let below =
                    entries.entry(first.to_owned()).or_insert_with(|| Self::Map(Shared::default()));
                below.insert_path(rest, value);
            }
        }
    }

    /// Removes the value at a dotted path of maps.
    pub fn remove_path(&mut self, path: &str) {
        let Self::Map(entries) = self else { return };
        match path.split_once('.') {
            None => drop(entries.remove(path)),
            Some((first, rest)) => {
                if let Some(below) = entries.get_mut(first) {
                    below.remove_path(rest);
                }
            }
        }
    }

    /// Converts a JSON value.
    ///
    /// # Errors
    /// [`NotAValue`] for `null` and for an integer that needs more than 64 bits with a sign.
    pub fn from_json(json: serde_json::Value) -> Result<Self, NotAValue> {
        Ok(match json {
            serde_json::Value::Null => return Err(NotAValue::Null),
            serde_json::Value::Bool(truth) => Self::Bool(truth),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Self::Int(integer),
                (None, Some(float)) if !number.is_u64() => Self::Float(float),
                _ => return Err(NotAValue::Number(number.to_string())),
            },
            serde_json::Value::String(text) => Self::Text(text),
            serde_json::Value::Array(items) => Self::List(
                items.into_iter().map(Self::from_json).collect::<Result<Vec<_>, _>>()?.into(),
            ),
            serde_json::Value::Object(entries) => {
                let entry = |(key, value)| Ok((key, Self::from_json(value)?));
                let entries = entries.into_iter().map(entry);
                Self::Map(entries.collect::<Result<BTreeMap<_, _>, _>>()?.into())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn json_becomes_a_value_with_its_type() {
        let json = serde_json::json!({"port": 8081, "names": ["a", "b"], "load": 0.5});
        let value = Value::from_json(json).expect("a value");
        assert_eq!(value.at_path("port"), Some(&Value::Int(8081)));
        let text = value.value_type().to_string();
        assert_eq!(text, "map {load: float, names: list of string, port: int}");
        assert_eq!(Value::from_json(serde_json::Value::Null), Err(NotAValue::Null));
        assert!(Value::from_json(serde_json::json!(u64::MAX)).is_err());
    }

    #[test]
    fn mixed_items_have_no_common_type() {
        let mixed = Value::List(vec![Value::Int(1), Value::Text("a".to_owned())].into());
        assert_eq!(mixed.value_type(), ValueType::List(Arc::new(ValueType::Unknown)));
    }
}
