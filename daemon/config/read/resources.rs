//! The reader's walk over `resources`.

use super::foreign_words;
use super::receives::Received;
use super::unknown_keys::misplaced_key;
use super::{Entry, Reader};
use crate::config::ast::{
    FieldValues, GraphFile, Link, Relation, Resource, ResourceSpots, claim_field,
    is_read_if_inactive,
};
use crate::config::checks::metaparams::{ALIASES, LABELS};
use crate::config::document::Note;
use crate::config::document::tree::Node;
use crate::config::hidden::is_secret_key;
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted, shorten};
use crate::config::scalar;
use crate::config::scalar::Scalar;
use crate::config::source_file::Span;
use std::fmt::{self, Display};
use std::sync::Arc;
use steadfast_resources::{FieldRole, FieldSpec, FieldType, KindSpec, Value};

impl<'t> Reader<'t, '_> {
    pub(in crate::config) fn resources(&mut self, entry: Entry<'t>, file: &mut GraphFile) {
        if self.is_null(entry.value) {
            return;
        }
        let wants = "a map: each kind with a list of resources";
        let kinds = self.map(entry.value, "`resources`", wants).unwrap_or_default();
        for kind in kinds {
            let what = format!("`{}`", quoted(kind.key));
            let wants = "a list of resources, each starting with `- name:`";
            let spec = self.kinds.find(kind.key);
            if spec.is_none() {
                self.unknown_kind(kind);
                if misplaced_key(kind.key).is_some() {
                    continue;
                }
            }
            for item in self.list(kind, &what, wants).unwrap_or_default() {
                match spec {
                    Some(spec) => self.resource(spec, *item, file),
                    None => self.stranger(kind.key, *item, file),
                }
            }
        }
    }

    /// Records the identity of a resource of an unknown kind, so that edges to it are not reported too.
    fn stranger(&mut self, kind: &str, item: usize, file: &mut GraphFile) {
        let Some(Node::Map(pairs)) = self.tree.node(item) else { return };
        for (key, value) in pairs {
            let is_name = self.scalar(*key).is_some_and(|key| key.text == "name");
            if let Some(name) = self.scalar(*value).filter(|_| is_name) {
                file.strangers.push(format!("{}{kind}[{}]", self.instance, name.text));
            }
        }
    }

    /// Reads an entry that is only a name, such as `- nginx`.
    fn named_only(&mut self, spec: &'static KindSpec, item: usize, file: &mut GraphFile) -> bool {
        let Some(name) = self.scalar(item).filter(|name| !name.is_null()) else { return false };
        let span = self.tree.span(item);
        if let Some(rest) = name.text.strip_prefix("name:").filter(|_| name.plain) {
            let what = format!("the resource is named `{}`", quoted(&name.text));
            let hint = format!("write a space behind the colon: `name: {}`", quoted(rest));
            let problem = Problem::new(Code::Doubt, what).warning().hint_with_value(hint);
            self.say(problem.at(Some(self.place_of(span))));
        }
        file.resources.push(Resource {
            spec,
            name: name.text.to_string(),
            given: FieldValues::default(),
            meta: None,
            links: Box::default(),
            aliases: Box::default(),
            receives: Box::default(),
            line: self.source.line(span.start),
            broken: false,
            export: None,
            withdraws: false,
            note: self.notes.get(&item).cloned().map(Box::new),
            labels: Box::default(),
        });
        if let Some(all) = &mut file.spots {
            all.resources.push(ResourceSpots { name: span, ..ResourceSpots::default() });
        }
        true
    }

    fn add_links(
        &mut self,
        relation: Relation,
        entry: Entry<'t>,
        what: impl Display,
        (links, spots): (&mut Vec<Link>, &mut ResourceSpots),
    ) {
        for (target, span) in self.links(entry, what) {
            links.push(Link { relation, target: format!("{}{target}", self.instance) });
            spots.links.push(span);
        }
    }

    /// Reads one entry of a kind.
    fn resource(&mut self, spec: &'static KindSpec, item: usize, file: &mut GraphFile) {
        let problems = self.problems.errors();
        if self.named_only(spec, item, file) {
            return;
        }
        let note = self.notes.get(&item);
        self.item = note.and_then(|note| note.item.clone());
        let is_inactive = note.is_some_and(Note::hides_fields);
        let instance = Arc::clone(&self.instance);
        let mut what = ResourceLabel { instance: &instance, kind: spec.kind, name: None };
        let Some(entries) = self.map(item, what, "a map with a `name`") else { return };
        let entries = self.spread_parts(spec, entries, what);
        let named = entries.iter().find(|entry| entry.key == "name").copied();
        what.name = named.and_then(|named| self.scalar(named.value)).filter(|it| !it.is_null());
        let mut spots = ResourceSpots { item: self.item.clone(), ..ResourceSpots::default() };
        spots.fields.reserve_exact(entries.len());
        let (mut name, mut meta, mut links) = (None, None, Vec::new());
        let (mut receives, mut aliases, mut export) = (Vec::new(), Vec::new(), None);
        let mut given = FieldValues::default();
        let mut labels = Vec::new();
        for entry in entries {
            if is_inactive && !is_read_if_inactive(spec, entry.key) {
                self.inactive_field(spec, entry, &mut given);
                continue;
            }
            if entry.key == "name" {
                spots.name = self.value_span(entry);
                name = self.text(entry, format_args!("`name` of {what}"));
            } else if entry.key == "meta" {
                meta = self.meta(entry, what, &mut spots);
            } else if let Some(relation) = Relation::parse(entry.key) {
                self.add_links(relation, entry, what, (&mut links, &mut spots));
            } else if entry.key == ALIASES.name {
                spots.fields.push((ALIASES.name, self.value_span(entry)));
                if let Some(Value::Texts(texts)) = self.value(&ALIASES, entry, what) {
                    aliases = texts;
                }
            } else if entry.key == "export" && !spec.fields.iter().any(|it| it.name == "export") {
                export = self.export(entry, what);
            } else if entry.key == LABELS.name && spec.fields.iter().all(|f| f.name != LABELS.name)
            {
                labels = self.labels(entry, what);
            } else if entry.key == "recv" {
                let mut into = Received { list: &mut receives, spots: &mut spots };
                self.receives(spec, entry, what, &mut into);
            } else if let Some(field) = self.known_field(spec, entry, what) {
                spots.fields.push((field.name, self.value_span(entry)));
                let mut into = Received { list: &mut receives, spots: &mut spots };
                let Some(entry) = self.secret_field(field, entry, &mut into) else { continue };
                if let Some(value) = self.field(spec, field, entry, what) {
                    given.insert(field, value);
                }
            }
        }
        let Some(name) = name else {
            // A misspelt `name` was reported before.
            if named.is_none() && self.problems.errors() == problems {
                self.missing_name(item, what);
            }
            return;
        };
        file.resources.push(Resource {
            spec,
            name,
            given,
            meta: meta.map(Box::new),
            links: links.into_boxed_slice(),
            aliases: aliases.into_boxed_slice(),
            receives: receives.into_boxed_slice(),
            line: self.source.line(self.first_byte(item)),
            broken: self.problems.errors() > problems,
            export,
            withdraws: false,
            note: note.cloned().map(Box::new),
            labels: labels.into_boxed_slice(),
        });
        self.item = None;
        if let Some(all) = &mut file.spots {
            all.resources.push(spots);
        }
    }

    /// Reports a resource without a name; a path can be the name.
    fn missing_name(&mut self, item: usize, what: impl Display) {
        let path = self.tree.entry(item, "path").and_then(|(_, path)| self.scalar(path));
        let example = path.map_or("NAME", |path| path.text.as_ref());
        let problem = Problem::new(Code::MissingKey, format!("{what} needs `name`"));
        let hint = format!("write name: {}", quoted(example));
        let place = self.place_of(self.tree.span(item));
        self.say(problem.hint_with_value(hint).at(Some(place)));
    }

    /// Reads labels, and reports those that `-l NAME=VALUE` could not select.
    fn labels(&mut self, entry: Entry<'t>, what: impl Display) -> Vec<(String, String)> {
        let Some(Value::TextMap(labels)) = self.value(&LABELS, entry, what) else {
            return Vec::new();
        };
        for (name, value) in &labels {
            let is_wrong_name = |c: char| c.is_whitespace() || matches!(c, '=' | '!' | ',');
            let what = if name.is_empty() || name.contains(is_wrong_name) {
                format!("`{}` cannot be the name of a label", quoted(name))
            } else if value.contains(',') || value.trim() != value {
                format!("`{}` cannot be the value of a label", quoted(value))
            } else {
                continue;
            };
            let hint = "-l NAME=VALUE selects labels: a name has no space, `=`, `!` and `,`, a value no `,` and no space around it";
            let found = self.tree.entry(entry.value, name);
            let span = found.map_or(entry.key_span, |(key, _)| self.tree.span(key));
            let place = Some(self.place_of(span));
            self.say(Problem::new(Code::Field, what).hint(hint).at(place));
        }
        labels
    }

    /// Returns the position of the first key of a map.
    fn first_byte(&self, item: usize) -> u32 {
        match self.tree.node(item) {
            Some(Node::Map(pairs)) => {
                pairs.first().map(|(key, _)| self.tree.span(*key)).unwrap_or_default()
            }
            _ => self.tree.span(item),
        }
        .start
    }

    fn field(
        &mut self,
        spec: &KindSpec,
        field: &'static FieldSpec,
        entry: Entry<'t>,
        what: impl Display,
    ) -> Option<Value> {
        if field.later {
            let problem = format!("`{}` in {what} is not in this build", field.name);
            let place = self.place_of(entry.key_span);
            self.say(Problem::new(Code::KeyLater, problem).at(Some(place)));
        } else if let Some(why) = field.ignored {
            // One warning for each field and kind; equal warnings at other places are dropped at the end.
            let problem = format!("`{}` of {} has no effect", field.name, spec.kind);
            let place = self.place_of(entry.key_span);
            self.say(Problem::new(Code::Ignored, problem).warning().hint(why).at(Some(place)));
        } else {
            return self.value(field, entry, what);
        }
        None
    }

    /// Reads a static field of an inactive resource. The other fields are not read, and a wrong value is no problem.
    fn inactive_field(
        &mut self,
        spec: &'static KindSpec,
        entry: Entry<'t>,
        given: &mut FieldValues,
    ) {
        let Some(field) = claim_field(spec, entry.key) else { return };
        let problems = std::mem::take(self.problems);
        if let Some(value) = self.value(field, entry, "") {
            given.insert(field, value);
        }
        *self.problems = problems;
    }

    /// Returns the value of a field, if it is given and of the right type.
    pub(in crate::config) fn value(
        &mut self,
        field: &'static FieldSpec,
        entry: Entry<'t>,
        what: impl Display,
    ) -> Option<Value> {
        if self.is_null(entry.value) {
            return None;
        }
        match (self.tree.node(entry.value), field.takes) {
            (Some(Node::Scalar(text)), FieldType::Texts) if field.list_only => {
                let hint = scalar::list_advice(field.name, &text.text);
                let problem =
                    format!("`{}` of {what} should be a list, found a string", field.name);
                let place = self.place_of(self.value_span(entry));
                self.say(Problem::new(Code::Type, problem).hint_with_value(hint).at(Some(place)));
                None
            }
            (Some(Node::Scalar(scalar)), takes) => {
                if scalar::lacks_unit(field, scalar) {
                    let unit = if takes == FieldType::Milliseconds { "ms" } else { "s" };
                    let hint = format!("write {}{unit}, or another unit", scalar.text);
                    let place = self.source.place(self.value_span(entry));
                    let problem = format!("`{}` has no unit", field.name);
                    let problem = Problem::new(Code::Doubt, problem).warning();
                    self.say(problem.hint(hint).at(Some(place)));
                }
                let value = scalar::convert(takes, scalar.clone());
                if value.is_none() {
                    self.wrong(field, entry.value, self.value_span(entry), what);
                }
                value
            }
            (Some(Node::List(_) | Node::Map(_)), FieldType::Text) if field.nested => {
                Some(Value::Text(self.to_json(entry.value).to_string()))
            }
            (Some(Node::List(items)), FieldType::Texts) => Some(Value::Texts(
                self.texts(field, items, what).into_iter().map(|t| t.0).collect(),
            )),
            (Some(Node::Map(_)), FieldType::TextMap) => {
                let name = format!("`{}` of {what}", field.name);
                let entries = self.map(entry.value, &name, "a map of strings")?;
                // Entries that are secrets were read before.
                let is_plain = |entry: &Entry<'_>| self.secret_name(entry.value).is_none();
                let entries: Vec<_> = entries.into_iter().filter(is_plain).collect();
                let texts = entries.into_iter().filter_map(|entry| {
                    let text = self.text(entry, format!("`{}` in {name}", quoted(entry.key)))?;
                    Some((entry.key.to_owned(), text))
                });
                Some(Value::TextMap(texts.collect()))
            }
            _ => {
                self.wrong(field, entry.value, self.value_span(entry), what);
                None
            }
        }
    }

    /// Returns a node as JSON. A key is a string; the parser bounds the depth and the expansion of aliases.
    fn to_json(&self, id: usize) -> serde_json::Value {
        match self.tree.node(id) {
            Some(Node::List(items)) => items.iter().map(|item| self.to_json(*item)).collect(),
            Some(Node::Map(entries)) => {
                let entry = |(key, value): &(usize, usize)| {
                    let name = self.scalar(*key).map(|key| key.text.to_string());
                    (name.unwrap_or_default(), self.to_json(*value))
                };
                serde_json::Value::Object(entries.iter().map(entry).collect())
            }
            Some(Node::Scalar(scalar)) if scalar.is_null() => serde_json::Value::Null,
            Some(Node::Scalar(scalar)) => {
                let truth = scalar.boolean().map(serde_json::Value::from);
                let whole = || scalar.int().map(serde_json::Value::from);
                let number = || scalar.float().map(serde_json::Value::from);
                truth.or_else(whole).or_else(number).unwrap_or_else(|| scalar.text.as_ref().into())
            }
            Some(Node::Alias(_)) | None => serde_json::Value::Null,
        }
    }

    /// Returns the texts of a list, each with its position.
    fn texts(
        &mut self,
        field: &'static FieldSpec,
        items: &[usize],
        what: impl Display,
    ) -> Vec<(String, Span)> {
        let mut texts = Vec::new();
        for item in items {
            match self.scalar(*item) {
                Some(scalar) if !scalar.is_null() => {
                    texts.push((scalar.text.to_string(), self.tree.span(*item)));
                }
                _ => self.wrong(field, *item, self.tree.span(*item), &what),
            }
        }
        texts
    }

    fn wrong(&mut self, field: &FieldSpec, id: usize, span: Span, what: impl Display) {
        let found = match self.tree.node(id) {
            // The text was probably meant as a value, and may be secret.
            Some(Node::Scalar(scalar)) if !scalar.is_null() && is_secret_key(field.name) => {
                "a string".to_owned()
            }
            _ => self.found(id),
        };
        let wants = scalar::wants(field.takes);
        let arguments = match field.role {
            Some(FieldRole::Command { arguments }) if !arguments.is_empty() => Some(arguments),
            _ => None,
        };
        let advice = match self.tree.node(id) {
            Some(Node::Scalar(scalar)) => scalar::advice(field.takes, scalar),
            Some(Node::List(_)) if arguments.is_some() => {
                let words = self.source.bracketed(self.tree.span(id).start);
                let words = words.filter(|words| words.chars().count() <= 100);
                let words = words.unwrap_or("[PROGRAM, ARGUMENT]");
                let name = arguments.unwrap_or_default();
                Some(format!("put the words into `{name}`: {name}: {}", shorten(words, 100)))
            }
            Some(Node::List(items)) if field.takes == FieldType::Text => {
                let only = items.first().filter(|_| items.len() == 1);
                let only = only.and_then(|item| self.scalar(*item));
                let only = only.filter(|_| !is_secret_key(field.name));
                Some(only.map_or_else(
                    || "write one value, without [ ] and `-`".to_owned(),
                    |scalar| {
                        format!("write `{}: {}`, without a list", field.name, quoted(&scalar.text))
                    },
                ))
            }
            Some(Node::Map(_)) if field.takes == FieldType::Texts => {
                self.secret_name(id).map(|_| secret_item_advice(field.name).to_owned())
            }
            Some(Node::Map(_)) if self.map_advice(id, field).is_some() => {
                self.map_advice(id, field)
            }
            Some(Node::Map(_)) if field.takes == FieldType::Text => {
                Some("quote the value to make it a string".to_owned())
            }
            _ => None,
        };
        let problem = format!("`{}` of {what} should be {wants}, found {found}", field.name);
        let problem = Problem::new(Code::Type, problem).hint_if(advice);
        self.say(problem.at(Some(self.place_of(span))));
    }

    /// Returns the advice for a map by which the author means the value of another place.
    fn map_advice(&self, id: usize, spec: &FieldSpec) -> Option<String> {
        let Some(Node::Map(pairs)) = self.tree.node(id) else { return None };
        let [(key, value)] = pairs.as_slice() else { return None };
        let field = spec.name;
        if let Some(Node::Map(inner)) = self.tree.node(*key) {
            // `{{ port }}` without quotes is a map with a map as its key.
            let name = inner.first().and_then(|(name, _)| self.scalar(*name))?.text.to_string();
            return Some(format!(
                "write `{field}: \"${{vars.{}}}\"`: templates alone have {{{{ }}}}",
                quoted(&name)
            ));
        }
        Some(match self.scalar(*key)?.text.as_ref() {
            "template" => {
                "write `template: FILE` in place of the field, beside the other fields".to_owned()
            }
            "from" => {
                let written = self.scalar(*value).map(|value| quoted(&value.text));
                foreign_words::hint_for_source(spec, written.as_deref().unwrap_or_default())
            }
            "secret" => format!("name the secret: `{field}: {{secret: NAME}}`"),
            _ => return None,
        })
    }

    /// Returns the targets of a short edge, each with its position.
    fn links(&mut self, entry: Entry<'t>, what: impl Display) -> Vec<(String, Span)> {
        match self.tree.node(entry.value) {
            _ if self.is_null(entry.value) => Vec::new(),
            Some(Node::Scalar(Scalar { text, .. })) => {
                vec![(text.to_string(), self.value_span(entry))]
            }
            Some(Node::List(items)) => {
                self.texts(&crate::config::checks::metaparams::LINKS, items, what)
            }
            _ => {
                let found = self.found(entry.value);
                let key = entry.key;
                let problem = format!("`{key}` of {what} should be resources, found {found}");
                let place = self.place_of(self.value_span(entry));
                let hint = "expected a list, for example [\"file[motd]\"]";
                self.say(Problem::new(Code::Type, problem).hint(hint).at(Some(place)));
                Vec::new()
            }
        }
    }
}

/// Returns the advice for a secret as an item of a list.
fn secret_item_advice(field: &str) -> &'static str {
    match field {
        "args" => {
            "all users see arguments: give it as `stdin: {secret: NAME}` or `env: {VARIABLE: {secret: NAME}}`"
        }
        _ => "an item of a list cannot be a secret",
    }
}

/// A resource in messages: by its identity, or as an entry of its kind if it has no name.
#[derive(Clone, Copy)]
pub(super) struct ResourceLabel<'a> {
    pub(super) instance: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: Option<&'a Scalar<'a>>,
}

impl Display for ResourceLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "{}{}[{}]", self.instance, self.kind, quoted(&name.text)),
            None => write!(f, "an entry of `{}`", self.kind),
        }
    }
}
