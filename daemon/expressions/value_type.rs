//! The type of a value of the graph language.

use crate::expressions::value::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A type. [`fmt::Display`] writes it as messages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// `true` or `false`.
    Bool,
    /// An integer of 64 bits.
    Int,
    /// A number with a fraction.
    Float,
    /// A string.
    Text,
    /// A list whose items have one type.
    List(Arc<Self>),
    /// A map with known keys.
    Map(Arc<BTreeMap<String, MapKey>>),
    /// A map with any keys, whose values have one type.
    AnyMap(Arc<Self>),
    /// No value has this type: the items of an empty list.
    Nothing,
    /// No common type, such as the items of a list with several types.
    Unknown,
}

/// One key of a map type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapKey {
    /// The type of the value.
    pub value_type: ValueType,
    /// True if the key may be absent; an expression must then name a default.
    pub optional: bool,
}

impl MapKey {
    /// Creates a key that is always present.
    #[must_use]
    pub const fn required(value_type: ValueType) -> Self {
        Self { value_type, optional: false }
    }
}

impl ValueType {
    /// Returns the common type of two types: a key that only one map has is optional. Types without a common type give
    /// [`Self::Unknown`].
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        Self::join_all(&[self.clone(), other.clone()])
    }

    /// Returns the common type of all types, as [`Self::join`] does for two; no type gives [`Self::Nothing`].
    #[must_use]
    pub fn join_all(types: &[Self]) -> Self {
        let mut others = types.iter().filter(|one| **one != Self::Nothing);
        let Some(first) = others.next() else { return Self::Nothing };
        if others.all(|other| other == first) {
            return first.clone();
        }
        match first {
            Self::List(_) => join_lists(types),
            Self::Map(_) => join_maps(types),
            _ => Self::Unknown,
        }
    }
}

/// Joins the types of lists.
fn join_lists(types: &[ValueType]) -> ValueType {
    let mut of_items = Vec::with_capacity(types.len());
    for list in types {
        match list {
            ValueType::List(items) => of_items.push(ValueType::clone(items)),
            ValueType::Nothing => {}
            _ => return ValueType::Unknown,
        }
    }
    ValueType::List(Arc::new(ValueType::join_all(&of_items)))
}

/// Joins the types of maps; a key that a map lacks is optional.
fn join_maps(types: &[ValueType]) -> ValueType {
    let mut by_key: BTreeMap<&str, (Vec<ValueType>, bool)> = BTreeMap::new();
    let types = types.iter().filter(|one| **one != ValueType::Nothing);
    for map in types.clone() {
        let ValueType::Map(keys) = map else { return ValueType::Unknown };
        for (name, key) in keys.iter() {
            let (found, is_optional) = by_key.entry(name).or_default();
            found.push(key.value_type.clone());
            *is_optional |= key.optional;
        }
    }
    let count = types.count();
    let key = |(name, (found, is_optional)): (&str, (Vec<ValueType>, bool))| {
        let optional = is_optional || found.len() < count;
        (name.to_owned(), MapKey { value_type: ValueType::join_all(&found), optional })
    };
    ValueType::Map(Arc::new(by_key.into_iter().map(key).collect()))
}

impl ValueType {
    /// Returns true if the value has this type: an int is no float, each value has the type [`Self::Unknown`].
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Unknown, _)
            | (Self::Bool, Value::Bool(_))
            | (Self::Int, Value::Int(_))
            | (Self::Float, Value::Float(_))
            | (Self::Text, Value::Text(_)) => true,
            (Self::List(of_items), Value::List(items)) => {
                items.iter().all(|item| of_items.accepts(item))
            }
            (Self::AnyMap(of_values), Value::Map(entries)) => {
                entries.values().all(|value| of_values.accepts(value))
            }
            (Self::Map(keys), Value::Map(entries)) => {
                let known = |name| keys.get(name).map(|key: &MapKey| &key.value_type);
                entries.iter().all(|(name, value)| known(name).is_some_and(|of| of.accepts(value)))
                    && keys.iter().all(|(name, key)| key.optional || entries.contains_key(name))
            }
            _ => false,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::Text => f.write_str("string"),
            Self::List(items) if matches!(**items, Self::Nothing | Self::Unknown) => {
                f.write_str("list")
            }
            Self::List(items) => write!(f, "list of {items}"),
            Self::AnyMap(values) if **values == Self::Unknown => f.write_str("map"),
            Self::AnyMap(values) => write!(f, "map of {values}"),
            Self::Map(keys) => {
                f.write_str("map {")?;
                for (index, (name, key)) in keys.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    let mark = if key.optional { "?" } else { "" };
                    write!(f, "{comma}{name}{mark}: {}", key.value_type)?;
                }
                f.write_str("}")
            }
            Self::Nothing => f.write_str("nothing"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::expressions::Value;

    #[test]
    fn joined_maps_have_optional_keys() {
        let one = Value::from_json(serde_json::json!({"port": 1, "tls": true})).expect("one");
        let another = Value::from_json(serde_json::json!({"port": 2})).expect("another");
        let joined = one.value_type().join(&another.value_type());
        assert_eq!(joined.to_string(), "map {port: int, tls?: bool}");
    }
}
