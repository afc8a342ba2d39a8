//! How a kind is declared: one table that serves the validator, the documentation and the schema.

use crate::resource::Resource;
use crate::secret::{KeyedHashOf, Secret};
use crate::values::{MaybeSecret, Receives, SendSpec};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A kind: its name, its fields, and how a resource is made of them.
#[derive(Debug)]
pub struct KindSpec {
    /// The name in the graph file.
    pub kind: &'static str,
    /// One sentence for `explain`.
    pub doc: &'static str,
    /// Its fields besides `name`, `meta` and the short edges.
    pub fields: &'static [FieldSpec],
    /// The values that it sends to other resources.
    pub sends: &'static [SendSpec],
    /// Makes a resource, or says everything that is wrong at once. Reads nothing from the host but the text given to it.
    pub build: Build,
}

/// No span of time that is declared or asked for is longer: a year. What is longer is a mistake.
pub const LONGEST_SPAN: Duration = Duration::from_hours(365 * 24);

/// How a resource is made of its name, its fields and the place of its declaration.
pub type Build = fn(&str, Fields, &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>>;

/// One field of a kind.
#[derive(Debug)]
pub struct FieldSpec {
    /// Its name in the graph file.
    pub name: &'static str,
    /// What it takes.
    pub takes: FieldType,
    /// One sentence for `explain`: what, unit, default.
    pub doc: &'static str,
    /// Something that no longer has a meaning, or not yet: accepted with this warning.
    pub ignored: Option<&'static str>,
    /// A known field whose effect comes in a later build: refused with "not in this build".
    pub later: bool,
    /// Which values from elsewhere it takes.
    pub receives: Receives,
    /// A list of texts must be written as a list: a single text is a mistake.
    pub list_only: bool,
}

impl FieldSpec {
    /// A field in full use.
    #[must_use]
    pub const fn new(name: &'static str, takes: FieldType, doc: &'static str) -> Self {
        let receives = Receives::Nothing;
        Self { name, takes, doc, ignored: None, later: false, receives, list_only: false }
    }

    /// A field whose list must be written as one.
    #[must_use]
    pub const fn list_only(mut self) -> Self {
        self.list_only = true;
        self
    }

    /// The same, that takes values from elsewhere.
    #[must_use]
    pub const fn receives(mut self, receives: Receives) -> Self {
        self.receives = receives;
        self
    }

    /// A field of a later build.
    #[must_use]
    pub const fn later(name: &'static str, doc: &'static str) -> Self {
        Self { later: true, ..Self::new(name, FieldType::Anything, doc) }
    }

    /// A field that is accepted with a warning.
    #[must_use]
    pub const fn ignored(name: &'static str, why: &'static str) -> Self {
        Self { ignored: Some(why), ..Self::new(name, FieldType::Anything, why) }
    }
}

/// What a field takes. Scalars are kept as they were written: `mode: 0644` is the text `0644`, `1.10` stays `1.10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Any scalar, as text.
    Text,
    /// `true` or `false` (nothing else: `yes` and `on` are refused with a hint).
    Bool,
    /// A whole number.
    Int,
    /// A number of seconds or the like, with a fraction.
    Float,
    /// A list of scalars, as texts; a single scalar is a list of one.
    Texts,
    /// A map of scalars, as texts.
    TextMap,
    /// Whatever it is, it is not looked at.
    Anything,
}

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
    /// See [`FieldType::TextMap`]; in the order written, keys unique.
    TextMap(Vec<(String, String)>),
    /// A text that was received and is never shown: only fields that say so are given one.
    Secret(Secret),
    /// The hash of such a text, of which no more is kept.
    Sealed(KeyedHashOf),
}

/// The fields given for one resource; each is taken once. A field that was given as null is absent.
#[derive(Clone, Default, PartialEq)]
pub struct Fields {
    values: BTreeMap<&'static str, Value>,
    /// Entries of maps that are secret: field, key, text.
    secrets: Vec<(&'static str, String, Secret)>,
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fields").field(&self.values).finish()
    }
}

impl Fields {
    /// Puts a value in; the caller has matched it against the field's type.
    pub fn insert(&mut self, name: &'static str, value: Value) {
        self.values.insert(name, value);
    }

    /// Takes from others what is not given here.
    pub fn fill(&mut self, others: &Self) {
        for (name, value) in &others.values {
            self.values.entry(name).or_insert_with(|| value.clone());
        }
    }

    /// Drops every field that was not taken yet but these.
    pub fn keep_only(&mut self, names: &[&str]) {
        self.values.retain(|name, _| names.contains(name));
    }

    /// Whether a field was given (and not taken yet).
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The names of the fields that were given (and not taken yet).
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.values.keys().copied()
    }

    /// A text, if given.
    pub fn text(&mut self, name: &str) -> Option<String> {
        match self.values.remove(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A text that may be a secret, if given.
    pub fn words(&mut self, name: &str) -> Option<MaybeSecret> {
        match self.values.remove(name) {
            Some(Value::Text(text)) => Some(MaybeSecret::Shown(text)),
            Some(Value::Secret(secret)) => Some(MaybeSecret::Secret(secret)),
            Some(Value::Sealed(sealed)) => Some(MaybeSecret::Sealed(sealed)),
            _ => None,
        }
    }

    /// Puts a secret in as an entry of a map.
    pub fn insert_secret(&mut self, name: &'static str, key: String, secret: Secret) {
        self.secrets.push((name, key, secret));
    }

    /// A map whose entries may be secret, if any is given.
    pub fn secret_map(&mut self, name: &str) -> Vec<(String, Secret)> {
        let shown = self.text_map(name).unwrap_or_default().into_iter();
        let mut map: Vec<_> = shown.map(|(key, text)| (key, text.into())).collect();
        let is_of = |entry: &(&'static str, String, Secret)| entry.0 == name;
        map.extend(self.secrets.extract_if(.., |e| is_of(e)).map(|(_, key, text)| (key, text)));
        map
    }

    /// Whether anything that was given (and not taken yet) is a secret.
    #[must_use]
    pub fn holds_secret(&self) -> bool {
        let is_secret = |value: &Value| matches!(value, Value::Secret(_) | Value::Sealed(_));
        !self.secrets.is_empty() || self.values.values().any(is_secret)
    }

    /// A truth value, if given.
    pub fn bool(&mut self, name: &str) -> Option<bool> {
        match self.values.remove(name) {
            Some(Value::Bool(truth)) => Some(truth),
            _ => None,
        }
    }

    /// A whole number, if given.
    pub fn int(&mut self, name: &str) -> Option<i64> {
        match self.values.remove(name) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        }
    }

    /// A number, if given.
    pub fn float(&mut self, name: &str) -> Option<f64> {
        match self.values.remove(name) {
            Some(Value::Float(number)) => Some(number),
            _ => None,
        }
    }

    /// Texts, if given.
    pub fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        match self.values.remove(name) {
            Some(Value::Texts(texts)) => Some(texts),
            _ => None,
        }
    }

    /// A map, if given.
    pub fn text_map(&mut self, name: &str) -> Option<Vec<(String, String)>> {
        match self.values.remove(name) {
            Some(Value::TextMap(map)) => Some(map),
            _ => None,
        }
    }
}

/// Where a resource was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The folder of the graph file, absolute: what is relative in the file is relative to it.
    pub base: PathBuf,
}

/// One thing wrong, or doubtful, with a resource's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field, where it is one; else the resource as a whole.
    pub field: Option<&'static str>,
    /// What was expected and what was found; at most 100 characters.
    pub what: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Invalid {
    /// Something wrong with one field.
    pub fn field(field: &'static str, what: impl Into<String>) -> Self {
        Self { field: Some(field), what: what.into(), hint: None }
    }

    /// Something wrong with the resource as a whole.
    pub fn whole(what: impl Into<String>) -> Self {
        Self { field: None, what: what.into(), hint: None }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
