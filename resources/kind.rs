//! The declaration of a kind: one table that serves the validator, the documentation and the schema.

pub use crate::field_spec::{
    FieldMode, FieldRole, FieldSpec, FieldType, ForeignValue, Interpreter,
};

use crate::failure::Failure;
use crate::prior_state::FormerValue;
use crate::resource::Resource;
use crate::secret_text::{KeyedHashOf, Secret};
use crate::values::{MaybeSecret, SendSpec};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A kind: its name, its fields, and the function that builds its resources.
#[derive(Debug)]
pub struct KindSpec {
    /// The name in the graph file.
    pub kind: &'static str,
    /// The name is no object of the host, or a collector names the object by `path`: resources of the kind may come
    /// from another host.
    pub collectible: bool,
    /// One sentence for `explain`.
    pub doc: &'static str,
    /// The fields besides `name`, `meta` and the short edges.
    pub fields: &'static [FieldSpec],
    /// The values that the kind sends to other resources.
    pub sends: &'static [SendSpec],
    /// A complete resource as it stands in a graph, for `explain` and the reference. A test checks every example.
    pub example: &'static str,
    /// Builds a resource that restores recorded values for undo; none if the kind records none.
    pub restore: Option<Restore>,
    /// Builds a resource, or returns every problem at once. The function reads nothing from the host except the
    /// given fields.
    pub build: Build,
}

/// The limit of every declared or requested span of time: one year. A longer span is a mistake.
pub const LONGEST_SPAN: Duration = Duration::from_hours(365 * 24);

/// A function that builds a resource from its name, its fields and the place of its declaration.
pub type Build = fn(&str, Fields, &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>>;

/// A function that builds a resource from the values before a change; it fails if the kind cannot restore them.
pub type Restore = fn(&str, &[FormerValue]) -> Result<Restoring, Failure>;

/// A resource that restores the values from before a change.
#[derive(Debug)]
pub struct Restoring {
    /// The resource, checked and applied like a declared one.
    pub resource: Arc<dyn Resource>,
    /// The command with the same effect, for the operator.
    pub by_hand: String,
}

impl KindSpec {
    /// Returns the field of the object's path.
    #[must_use]
    pub fn path_field(&self) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|field| field.role == Some(FieldRole::Path))
    }

    /// Returns the field that a template makes.
    #[must_use]
    pub fn template_field(&self) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|field| field.role == Some(FieldRole::Template))
    }

    /// Returns the name of the field of the command, and of the field of its arguments.
    #[must_use]
    pub fn command_fields(&self) -> Option<(&'static str, &'static str)> {
        self.fields.iter().find_map(|field| match field.role {
            Some(FieldRole::Command { arguments }) => Some((field.name, arguments)),
            _ => None,
        })
    }

    /// Builds a resource after the checks of the field table: required fields, choices and conflicts.
    ///
    /// # Errors
    ///
    /// Returns every problem at once.
    pub fn build_resource(
        &self,
        name: &str,
        fields: Fields,
        place: &Place,
    ) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
        let of_table = self.table_problems(&fields);
        let (built, mut problems) = match (self.build)(name, fields, place) {
            Ok(resource) => (Some(resource), Vec::new()),
            Err(problems) => (None, problems),
        };
        // The message of the kind knows more than the table.
        for problem in of_table {
            if problems.iter().all(|known| known.field != problem.field) {
                problems.push(problem);
            }
        }
        built.filter(|_| problems.is_empty()).ok_or(problems)
    }

    /// Returns the problems that the field table alone finds.
    fn table_problems(&self, fields: &Fields) -> Vec<Invalid> {
        let mut problems = Vec::new();
        for spec in self.fields {
            if !fields.has(spec.name) {
                if spec.required {
                    let what = format!("expected `{}`, found none", spec.name);
                    let hint = format!("{}: {}", spec.name, spec.example.unwrap_or("…"));
                    problems.push(Invalid::field(spec.name, what).hint(hint));
                }
                continue;
            }
            if let (FieldType::Choice(words), Some(text)) =
                (spec.takes, fields.shown_text(spec.name))
                && !text.is_empty()
                && !words.contains(&text)
            {
                let what = format!("expected {}, found {text}", words.join(", "));
                let what = crate::parts::field_reader::bounded(what);
                problems.push(Invalid::field(spec.name, what));
            }
            if let (Some((least, most)), Some(Value::Int(number))) =
                (spec.range, fields.values.get(spec.name))
                && !(least..=most).contains(number)
            {
                let what = format!("expected {least} to {most}, found {number}");
                problems.push(Invalid::field(spec.name, what));
            }
            for other in spec.conflicts_with.iter().filter(|other| fields.has(other)) {
                let what = format!("`{}` and `{other}` exclude each other", spec.name);
                problems.push(Invalid::field(spec.name, what).hint("keep one of them"));
            }
        }
        problems
    }
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

    /// Returns a text that may be shown and was not taken yet.
    #[must_use]
    pub fn shown_text(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
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
