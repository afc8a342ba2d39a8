//! The slow reader's walk over received values: `recv`, `{secret: NAME}`, and the top-level key `secrets`.

use super::{Entry, Reader};
use crate::config::ast::{GraphFile, Receive, Reference, ResourceSpots, Supplied};
use crate::config::document::tree::Node;
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::config::source_file::Span;
use std::path::PathBuf;
use steadfast_resources::host::Supply;
use steadfast_resources::{FieldSpec, FieldType};

/// The output of the walk: the received values and their positions.
pub(in crate::config) struct Received<'a> {
    pub(in crate::config) list: &'a mut Vec<Receive>,
    pub(in crate::config) spots: &'a mut ResourceSpots,
}

const LONG: [&str; 5] = ["from", "key", "template", "values", "world"];
const VALUE: [&str; 4] = ["from", "key", "secret", "world"];
const SUPPLY: [&str; 3] = ["credential", "file", "command"];
const WANTS: &str = "a value as \"kind[name].key\", or a map with `from` and `key`";

impl<'t> Reader<'t, '_> {
    /// Reads `recv`, a map from fields to their sources.
    pub(in crate::config) fn receives(
        &mut self,
        entry: Entry<'t>,
        what: &str,
        into: &mut Received<'_>,
    ) {
        if self.is_null(entry.value) {
            return;
        }
        let what = format!("`recv` of {what}");
        for entry in self.map(entry.value, &what, "a map of fields").unwrap_or_default() {
            let what = format!("`{}` in {what}", quoted(entry.key));
            if let Some((template, values)) = self.received(entry, &what) {
                into.spots.receives.push(self.value_span(entry));
                into.list.push(Receive { target: entry.key.to_owned(), template, values });
            }
        }
    }

    #[expect(clippy::type_complexity, reason = "a template, and its values by name")]
    fn received(
        &mut self,
        entry: Entry<'t>,
        what: &str,
    ) -> Option<(Option<String>, Vec<(String, Reference)>)> {
        if !self.is_map(entry.value) {
            return Some((None, vec![(String::new(), self.reference(entry, what)?)]));
        }
        let entries = self.map(entry.value, what, WANTS)?;
        let problems = self.problems.errors();
        let (mut from, mut key, mut template, mut values) = (None, None, None, Vec::new());
        let mut world = None;
        for inner in entries {
            let name = format!("`{}` in {what}", quoted(inner.key));
            match inner.key {
                "from" => from = self.text(inner, &name),
                "key" => key = self.text(inner, &name),
                "template" => template = self.text(inner, &name),
                "world" => world = self.text(inner, &name),
                "values" => {
                    for value in self.map(inner.value, &name, "a map of values").unwrap_or_default()
                    {
                        let name = format!("`{}` in {name}", quoted(value.key));
                        let reference = self.reference(value, &name);
                        values.extend(reference.map(|r| (value.key.to_owned(), r)));
                    }
                }
                other => self.unknown(other, inner.key_span, what, &LONG),
            }
        }
        match (from, key, template, world) {
            _ if self.problems.errors() > problems => None,
            (Some(from), Some(key), None, None) if values.is_empty() => {
                let from = format!("{}{from}", self.instance);
                Some((None, vec![(String::new(), Reference::Sent(from, key))]))
            }
            (None, None, None, Some(key)) if values.is_empty() => {
                Some((None, vec![(String::new(), Reference::World(key))]))
            }
            (None, None, Some(template), None) => Some((Some(template), values)),
            _ => {
                let problem =
                    format!("{what} should be `from` and `key`, or `template` and `values`");
                self.refuse(Code::Receive, problem, self.value_span(entry));
                None
            }
        }
    }

    /// Reads one source: `kind[name].key`, `{from, key}`, or `{secret}`.
    fn reference(&mut self, entry: Entry<'t>, what: &str) -> Option<Reference> {
        if !self.is_map(entry.value) {
            let text = self.text(entry, what)?;
            let cut = text.rfind("].").and_then(|at| Some((text.get(..=at)?, text.get(at + 2..)?)));
            let Some((from, key)) = cut.filter(|(_, key)| !key.is_empty()) else {
                let problem = format!("{what} should be kind[name].key, found `{}`", quoted(&text));
                self.refuse(Code::Receive, problem, self.value_span(entry));
                return None;
            };
            return Some(Reference::Sent(format!("{}{from}", self.instance), key.to_owned()));
        }
        let problems = self.problems.errors();
        let (mut from, mut key, mut secret, mut world) = (None, None, None, None);
        for inner in self.map(entry.value, what, WANTS)? {
            let name = format!("`{}` in {what}", quoted(inner.key));
            match inner.key {
                "from" => from = self.text(inner, &name),
                "key" => key = self.text(inner, &name),
                "secret" => secret = self.text(inner, &name),
                "world" => world = self.text(inner, &name),
                other => self.unknown(other, inner.key_span, what, &VALUE),
            }
        }
        match (from, key, secret, world) {
            (Some(from), Some(key), None, None) => {
                Some(Reference::Sent(format!("{}{from}", self.instance), key))
            }
            (None, None, Some(name), None) => Some(Reference::Secret(name)),
            (None, None, None, Some(key)) => Some(Reference::World(key)),
            _ => {
                if self.problems.errors() == problems {
                    let problem = format!("{what} should be `from` and `key`, or `secret`");
                    self.refuse(Code::Receive, problem, self.value_span(entry));
                }
                None
            }
        }
    }

    /// Reads a field that is `{secret: NAME}`, or a map with such entries. Returns the entry if it has other values
    /// too.
    pub(in crate::config) fn secret_field(
        &mut self,
        field: &FieldSpec,
        entry: Entry<'t>,
        into: &mut Received<'_>,
    ) -> Option<Entry<'t>> {
        let mut take = |target: String, name: String, span: Span| {
            into.spots.receives.push(span);
            let values = vec![(String::new(), Reference::Secret(name))];
            into.list.push(Receive { target, template: None, values });
        };
        // In a map `secret` is a key like any other.
        let is_map = field.takes == FieldType::TextMap;
        if let Some(name) = self.secret_name(entry.value).filter(|_| !is_map) {
            take(entry.key.to_owned(), name, self.tree.span(entry.value));
            return None;
        }
        if let Some(Node::Map(pairs)) = self.tree.node(entry.value).filter(|_| is_map) {
            for (key, value) in pairs {
                if let (Some(name), Some(key)) = (self.secret_name(*value), self.scalar(*key)) {
                    take(format!("{}.{}", entry.key, key.text), name, self.tree.span(*value));
                }
            }
        }
        Some(entry)
    }

    /// Returns the name in `{secret: NAME}`.
    pub(in crate::config) fn secret_name(&self, id: usize) -> Option<String> {
        let Some(Node::Map(pairs)) = self.tree.node(id) else { return None };
        let [(key, value)] = pairs.as_slice() else { return None };
        let name = self.scalar(*value).filter(|name| !name.is_null())?;
        (self.scalar(*key)?.text == "secret").then(|| name.text.to_string())
    }

    /// Reads `secrets`, a map from names to sources.
    pub(in crate::config) fn secrets(&mut self, entry: Entry<'t>, file: &mut GraphFile) {
        if self.is_null(entry.value) {
            return;
        }
        for entry in self.map(entry.value, "`secrets`", "a map of secrets").unwrap_or_default() {
            let what = format!("the secret `{}`", quoted(entry.key));
            if let Some(supply) = self.supply(entry, &what) {
                file.secrets.push(Supplied { name: entry.key.to_owned(), supply });
                if let Some(spots) = &mut file.spots {
                    spots.secrets.push(entry.key_span);
                }
            }
        }
    }

    fn supply(&mut self, entry: Entry<'t>, what: &str) -> Option<Supply> {
        let problems = self.problems.errors();
        let mut found = Vec::new();
        for inner in self.map(entry.value, what, "a map with credential, file or command")? {
            let name = format!("`{}` of {what}", quoted(inner.key));
            let supply = match inner.key {
                "credential" => self.text(inner, &name).map(Supply::Credential),
                "file" => self.text(inner, &name).map(|path| Supply::File(PathBuf::from(path))),
                "command" => self.words(inner, &name).map(Supply::Command),
                other => {
                    self.unknown(other, inner.key_span, what, &SUPPLY);
                    None
                }
            };
            found.extend(supply);
        }
        match found.pop() {
            Some(supply) if found.is_empty() => Some(supply),
            _ => {
                if self.problems.errors() == problems {
                    let problem = format!("{what} should have one of {}", SUPPLY.join(", "));
                    self.refuse(Code::Secret, problem, self.value_span(entry));
                }
                None
            }
        }
    }

    fn words(&mut self, entry: Entry<'t>, what: &str) -> Option<Vec<String>> {
        if let Some(scalar) = self.scalar(entry.value).filter(|scalar| !scalar.is_null()) {
            return Some(scalar.text.split_whitespace().map(str::to_owned).collect());
        }
        let items = self.list(entry, what, "a command, as a string or a list")?;
        let words = items.iter().map(|item| Some(self.scalar(*item)?.text.to_string()));
        words.collect::<Option<Vec<_>>>().filter(|words| !words.is_empty())
    }

    fn is_map(&self, id: usize) -> bool {
        matches!(self.tree.node(id), Some(Node::Map(_)))
    }

    fn refuse(&mut self, code: Code, what: String, span: Span) {
        let place = Some(self.place_of(span));
        self.say(Problem::new(code, what).at(place));
    }
}
