//! Reads the fields of a resource and collects every problem at once.

use crate::fields::field_values::MaybeSecret;
use crate::fields::field_values::{Fields, Invalid};
use std::path::{Component, Path, PathBuf};

/// A reader of fields. Each method returns a usable value even after a problem; [`FieldReader::finish`] reports all
/// problems together.
#[derive(Debug)]
pub(crate) struct FieldReader {
    pub(crate) fields: Fields,
    problems: Vec<Invalid>,
}

impl FieldReader {
    pub(crate) fn new(fields: Fields) -> Self {
        Self { fields, problems: Vec::new() }
    }

    /// Adds a problem.
    pub(crate) fn reject(&mut self, problem: Invalid) {
        self.problems.push(problem);
    }

    /// Adds a problem of one field unless the condition holds.
    pub(crate) fn require(&mut self, holds: bool, field: &'static str, (what, hint): (&str, &str)) {
        if !holds {
            self.problems.push(Invalid::field(field, what).hint(hint));
        }
    }

    /// Returns true if no problem was found so far.
    pub(crate) fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns a text without control characters except tabs; none if the field is absent or wrong.
    pub(crate) fn text(&mut self, field: &'static str) -> Option<String> {
        let text = self.fields.text(field)?;
        if text.chars().any(|letter| letter.is_control() && letter != '\t') {
            let what = format!("`{field}` must be one line without control characters");
            self.problems.push(Invalid::field(field, what));
            return None;
        }
        Some(text)
    }

    /// Returns a text of any number of lines.
    pub(crate) fn lines(&mut self, field: &'static str) -> Option<String> {
        self.fields.text(field)
    }

    /// Returns a text that may be secret.
    pub(crate) fn maybe_secret(&mut self, field: &'static str) -> Option<MaybeSecret> {
        self.fields.words(field)
    }

    /// Returns a text that must be given.
    pub(crate) fn required_text(&mut self, field: &'static str) -> String {
        if !self.fields.has(field) {
            let what = format!("expected `{field}`, found none");
            self.problems.push(Invalid::field(field, what));
            return String::new();
        }
        self.text(field).unwrap_or_default()
    }

    /// Returns the value of one of the given words.
    pub(crate) fn choice<T: Clone>(
        &mut self,
        field: &'static str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.fields.text(field)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| value.clone());
        if found.is_none() {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let what = format!("expected {}, found {text}", one_of(&all));
            self.problems.push(Invalid::field(field, bounded(what)));
        }
        found
    }

    /// Returns true unless the field `state` says `absent`.
    pub(crate) fn is_present(&mut self) -> bool {
        self.choice("state", &[("exists", true), ("absent", false)]).unwrap_or(true)
    }

    /// Returns an absolute, normalised path: of the field, or else of the resource's name.
    pub(crate) fn path(&mut self, field: &'static str, name: &str) -> PathBuf {
        let text = self.text(field).unwrap_or_else(|| name.to_owned());
        if let Some(path) = normal_path(&text) {
            path
        } else {
            let what = bounded(format!("expected an absolute path without .., found {text}"));
            self.problems.push(Invalid::field(field, what).hint("for example /etc/hosts"));
            PathBuf::from("/")
        }
    }

    /// Rejects every listed field that was given, with this reason.
    pub(crate) fn exclude(&mut self, fields: &[&'static str], why: &str) {
        for field in
            fields.iter().filter(|field| self.fields.has(field)).copied().collect::<Vec<_>>()
        {
            self.problems.push(Invalid::field(field, bounded(format!("`{field}` {why}"))));
        }
    }

    /// Returns the value, or every problem of the fields.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Vec<Invalid>> {
        if self.problems.is_empty() { Ok(value) } else { Err(self.problems) }
    }
}

/// Returns an absolute path without `.`, `..`, repeated and trailing slashes; none for any other text.
pub(crate) fn normal_path(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    let is_plain =
        path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
    is_plain.then(|| path.components().collect())
}

/// Returns `a, b or c`.
fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Shortens a message to 100 characters.
pub(crate) fn bounded(what: String) -> String {
    if what.chars().count() <= 100 {
        return what;
    }
    what.chars().take(99).chain(['…']).collect()
}
