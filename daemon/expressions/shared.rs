//! The content of a list or a map, which several values share: a copy is cheap, and a variable that names another one
//! several times takes its memory once.

use crate::expressions::value::Value;
use crate::expressions::value_type::{MapKey, ValueType};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// The bytes that an item of a list or an entry of a map counts besides its text.
const BYTES_OF_PART: usize = 128;

/// A content with its size and its type, each computed once.
#[derive(Default)]
pub struct Shared<T>(Arc<Node<T>>);

#[derive(Default)]
struct Node<T> {
    content: T,
    size: OnceLock<usize>,
    value_type: OnceLock<ValueType>,
}

impl<T: Clone> Clone for Node<T> {
    fn clone(&self) -> Self {
        Self { content: self.content.clone(), size: OnceLock::new(), value_type: OnceLock::new() }
    }
}

/// The content of a list or a map.
pub trait Content {
    /// Returns the bytes of the content as if nothing were shared, saturating.
    fn count_bytes(&self) -> usize;
    /// Returns the type of the whole list or map.
    fn find_type(&self) -> ValueType;
}

impl Content for Vec<Value> {
    fn count_bytes(&self) -> usize {
        let bytes = self.iter().map(|item| BYTES_OF_PART.saturating_add(item.size()));
        bytes.fold(0, usize::saturating_add)
    }

    fn find_type(&self) -> ValueType {
        let types: Vec<ValueType> = self.iter().map(Value::value_type).collect();
        ValueType::List(Arc::new(ValueType::join_all(&types)))
    }
}

impl Content for BTreeMap<String, Value> {
    fn count_bytes(&self) -> usize {
        let bytes = self.iter().map(|(key, value)| {
            BYTES_OF_PART.saturating_add(key.len()).saturating_add(value.size())
        });
        bytes.fold(0, usize::saturating_add)
    }

    fn find_type(&self) -> ValueType {
        let key =
            |(key, value): (&String, &Value)| (key.clone(), MapKey::required(value.value_type()));
        ValueType::Map(Arc::new(self.iter().map(key).collect()))
    }
}

impl<T: Content> Shared<T> {
    /// Returns the bytes of the content as if nothing were shared.
    pub(super) fn size(&self) -> usize {
        *self.0.size.get_or_init(|| self.0.content.count_bytes())
    }

    /// Returns the type of the list or map.
    pub(super) fn value_type(&self) -> &ValueType {
        self.0.value_type.get_or_init(|| self.0.content.find_type())
    }
}

impl<T> Shared<T> {
    /// Returns the bytes of a content with this number of parts, without those of the parts.
    #[expect(clippy::unused_self, reason = "the size belongs to the content")]
    pub(super) const fn own_size(&self, parts: usize) -> usize {
        (parts + 4).saturating_mul(BYTES_OF_PART)
    }

    /// Returns a number for the content, which no other content has while this one exists; none for a content of few
    /// parts that no other value shares.
    pub(super) fn shared_address(&self, parts: usize) -> Option<usize> {
        let is_small = parts < 16 && Arc::strong_count(&self.0) == 1;
        (!is_small).then(|| Arc::as_ptr(&self.0).addr())
    }
}

impl<T> Shared<T> {
    /// Returns true if both have one content.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Clone> Shared<T> {
    /// Returns the content; copies it if other values share it.
    #[must_use]
    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0).content
    }
}

impl<T> From<T> for Shared<T> {
    fn from(content: T) -> Self {
        Self(Arc::new(Node { content, size: OnceLock::new(), value_type: OnceLock::new() }))
    }
}

impl<T, Part> FromIterator<Part> for Shared<T>
where
    T: FromIterator<Part>,
{
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        Self::from(parts.into_iter().collect::<T>())
    }
}

#[expect(clippy::into_iter_without_iter, reason = "`iter` is that of the content")]
impl<'content, T> IntoIterator for &'content Shared<T>
where
    &'content T: IntoIterator,
{
    type Item = <&'content T as IntoIterator>::Item;
    type IntoIter = <&'content T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&self.0.content).into_iter()
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.content
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        let node = Arc::make_mut(&mut self.0);
        node.size = OnceLock::new();
        node.value_type = OnceLock::new();
        &mut node.content
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.content == other.0.content
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.content.fmt(f)
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.content.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubled_map_is_stored_once() {
        let mut value = Value::Map([("a".to_owned(), Value::Int(1))].into_iter().collect());
        for _ in 0..60 {
            let pair = [("a".to_owned(), value.clone()), ("b".to_owned(), value)];
            value = Value::Map(pair.into_iter().collect());
        }
        assert!(value.size() > 1 << 60);
        let copy = value.clone();
        assert_eq!(value.value_type(), copy.value_type());
        assert_eq!(value, copy);
    }

    #[test]
    fn a_change_leaves_the_other_values_alone() {
        let first = Value::Map([("a".to_owned(), Value::Int(1))].into_iter().collect());
        let before = (first.size(), first.value_type());
        let mut second = first.clone();
        second.insert_path("b.c", Value::Bool(true));
        assert_eq!((first.size(), first.value_type()), before);
        assert_eq!(second.value_type().to_string(), "map {a: int, b: map {c: bool}}");
        assert!(second.size() > first.size());
    }
}
