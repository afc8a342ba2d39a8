//! The type of a value of the graph language.

use crate::expressions::value::Value;
use std::collections::BTreeMap;
use std::fmt;

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
    List(Box<Self>),
    /// A map with known keys.
    Map(BTreeMap<String, MapKey>),
    /// A map with any keys, whose values have one type.
    AnyMap(Box<Self>),
    /// No common type: the items of an empty list, or of a list with several types.
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
        match (self, other) {
            (one, another) if one == another => one.clone(),
            (Self::List(one), Self::List(another)) => match (&**one, &**another) {
                // An empty list fits each list.
                (Self::Unknown, items) | (items, Self::Unknown) => {
                    Self::List(Box::new(items.clone()))
                }
                (one, another) => Self::List(Box::new(one.join(another))),
            },
            (Self::Map(one), Self::Map(another)) => {
                let mut keys = one.clone();
                for key in keys.iter_mut().filter(|(key, _)| !another.contains_key(*key)) {
                    key.1.optional = true;
                }
                for (name, key) in another {
                    let joined = match one.get(name) {
                        Some(before) => MapKey {
                            value_type: before.value_type.join(&key.value_type),
                            optional: before.optional || key.optional,
                        },
                        None => MapKey { value_type: key.value_type.clone(), optional: true },
                    };
                    keys.insert(name.clone(), joined);
                }
                Self::Map(keys)
            }
            _ => Self::Unknown,
        }
    }
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
            Self::List(items) if **items == Self::Unknown => f.write_str("list"),
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
