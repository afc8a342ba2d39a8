//! The values of the fields of one resource, and the problems that a kind finds in them.

#[cfg(doc)]
use crate::fields::field_spec::FieldType;
use crate::secrets::secret_text::{KeyedHashOf, Secret};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A field's value, already of its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// See [`FieldType::Text`].
    Text(String),
    /// See [`FieldType::Bool`].
    Bool(bool),
    /// See [`FieldType::Int`].
    Int(i64),
    /// See [`FieldType::Float`].
    Float(f64),
    /// See [`FieldType::Texts`].
    Texts(Vec<String>),
    /// See [`FieldType::TextMap`]; the entries are in the written order, and the keys are unique.
    TextMap(Vec<(String, String)>),
    /// A received text that is never shown; only fields that accept secrets get one.
    Secret(Secret),
    /// The keyed hash of a secret whose text is not stored.
    Sealed(KeyedHashOf),
}

/// The given fields of one resource; each is taken once. A field that is given as null counts as absent.
#[derive(Clone, Default, PartialEq)]
pub struct Fields {
    values: BTreeMap<&'static str, Value>,
    /// The secret entries of maps: field, key, text.
    secrets: Vec<(&'static str, String, Secret)>,
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fields").field(&self.values).finish()
    }
}

impl Fields {
    /// Inserts a value; the caller has matched the value against the field's type.
    pub fn insert(&mut self, name: &'static str, value: Value) {
        self.values.insert(name, value);
    }

    /// Copies the fields that are missing here from `others`.
    pub fn fill(&mut self, others: &Self) {
        for (name, value) in &others.values {
            self.values.entry(name).or_insert_with(|| value.clone());
        }
    }

    /// Drops every remaining field except the named ones.
    pub fn keep_only(&mut self, names: &[&str]) {
        self.values.retain(|name, _| names.contains(name));
    }

    /// Returns true if the field was given and not taken yet.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the names of the given fields that were not taken yet.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.values.keys().copied()
    }

    /// Returns the value of a field that was not taken yet.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Returns a text that may be shown and was not taken yet.
    #[must_use]
    pub fn shown_text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Takes a text, if given.
    pub fn text(&mut self, name: &str) -> Option<String> {
        match self.values.remove(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Takes a text that may be a secret, if given.
    pub fn words(&mut self, name: &str) -> Option<MaybeSecret> {
        match self.values.remove(name) {
            Some(Value::Text(text)) => Some(MaybeSecret::Shown(text)),
            Some(Value::Secret(secret)) => Some(MaybeSecret::Secret(secret)),
            Some(Value::Sealed(sealed)) => Some(MaybeSecret::Sealed(sealed)),
            _ => None,
        }
    }

    /// Inserts a secret as an entry of a map.
    pub fn insert_secret(&mut self, name: &'static str, key: String, secret: Secret) {
        self.secrets.push((name, key, secret));
    }

    /// Takes a map whose entries may be secret; empty if the field was not given.
    pub fn secret_map(&mut self, name: &str) -> Vec<(String, Secret)> {
        let shown = self.text_map(name).unwrap_or_default().into_iter();
        let mut map: Vec<_> = shown.map(|(key, text)| (key, text.into())).collect();
        let is_of = |entry: &(&'static str, String, Secret)| entry.0 == name;
        map.extend(self.secrets.extract_if(.., |e| is_of(e)).map(|(_, key, text)| (key, text)));
        map
    }

    /// Returns true if any remaining field is a secret.
    #[must_use]
    pub fn holds_secret(&self) -> bool {
        let is_secret = |value: &Value| matches!(value, Value::Secret(_) | Value::Sealed(_));
        !self.secrets.is_empty() || self.values.values().any(is_secret)
    }

    /// Takes a truth value, if given.
    pub fn bool(&mut self, name: &str) -> Option<bool> {
        match self.values.remove(name) {
            Some(Value::Bool(truth)) => Some(truth),
            _ => None,
        }
    }

    /// Takes a whole number, if given.
    pub fn int(&mut self, name: &str) -> Option<i64> {
        match self.values.remove(name) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        }
    }

    /// Takes a number, if given.
    pub fn float(&mut self, name: &str) -> Option<f64> {
        match self.values.remove(name) {
            Some(Value::Float(number)) => Some(number),
            _ => None,
        }
    }

    /// Takes a list of texts, if given.
    pub fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        match self.values.remove(name) {
            Some(Value::Texts(texts)) => Some(texts),
            _ => None,
        }
    }

    /// Takes a map, if given.
    pub fn text_map(&mut self, name: &str) -> Option<Vec<(String, String)>> {
        match self.values.remove(name) {
            Some(Value::TextMap(map)) => Some(map),
            _ => None,
        }
    }
}

/// The place of a resource's declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The absolute folder of the graph file: relative paths in the file start there.
    pub base: PathBuf,
}

/// One error or doubt about a resource's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field at fault; none where the resource as a whole is.
    pub field: Option<&'static str>,
    /// The expectation and the finding; at most 100 characters.
    pub what: String,
    /// The advice for the author of the graph.
    pub hint: Option<String>,
}

impl Invalid {
    /// Makes a problem of one field.
    pub fn field(field: &'static str, what: impl Into<String>) -> Self {
        Self { field: Some(field), what: what.into(), hint: None }
    }

    /// Makes a problem of the resource as a whole.
    pub fn whole(what: impl Into<String>) -> Self {
        Self { field: None, what: what.into(), hint: None }
    }

    /// Adds a hint for the author of the graph.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A text that may be a secret, or known by its hash only.
#[derive(Clone, Debug, PartialEq)]
pub enum MaybeSecret {
    /// A text that may be shown.
    Shown(String),
    /// A text that is never shown.
    Secret(Secret),
    /// A text that is only known by its hash.
    Sealed(KeyedHashOf),
}
