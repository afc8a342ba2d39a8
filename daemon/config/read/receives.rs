//! The reader's walk over received values: `recv`, `{secret: NAME}`, and the top-level key `secrets`.

use super::{Entry, Reader};
use crate::config::ast::{DefaultValue, GraphFile, Receive, Reference, ResourceSpots, Supplied};
use crate::config::document::tree::Node;
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted, shorten};
use crate::config::scalar::{self, Scalar};
use crate::config::source_file::Span;
use std::fmt::Display;
use std::path::PathBuf;
use steadfast_resources::host::Supply;
use steadfast_resources::{FieldSpec, FieldType, KindSpec, Receives};

/// The output of the walk: the received values and their positions.
pub(in crate::config) struct Received<'a> {
    pub(in crate::config) list: &'a mut Vec<Receive>,
    pub(in crate::config) spots: &'a mut ResourceSpots,
}

/// A source as it is read: the template, the values by name, and their defaults.
#[derive(Debug, Default)]
struct Source {
    template: Option<String>,
    values: Vec<(String, Reference)>,
    defaults: Vec<DefaultValue>,
}

impl Source {
    fn add(&mut self, name: &str, read: Option<(Reference, Option<DefaultValue>)>) {
        let Some((reference, default)) = read else { return };
        self.values.push((name.to_owned(), reference));
        let name = name.to_owned();
        self.defaults.extend(default.map(|default| DefaultValue { name, ..default }));
    }
}

const LONG: [&str; 6] = ["from", "key", "template", "values", "world", "default"];
const VALUE: [&str; 5] = ["from", "key", "secret", "world", "default"];
pub(in crate::config) const SUPPLY: [&str; 3] = ["credential", "file", "command"];
const WANTS: &str = "a value as \"kind[name].key\", or a map with `from` and `key`";

impl<'t> Reader<'t, '_> {
    /// Reads `recv`, a map from fields to their sources.
    pub(in crate::config) fn receives(
        &mut self,
        spec: &KindSpec,
        entry: Entry<'t>,
        what: impl Display,
        into: &mut Received<'_>,
    ) {
        if self.is_null(entry.value) {
            return;
        }
        let what = format!("`recv` of {what}");
        if let Some(value) = self.scalar(entry.value).map(|scalar| scalar.text.to_string()) {
            let takes = |field: &&FieldSpec| field.receives > Receives::Nothing;
            let field = spec.template_field().or_else(|| spec.fields.iter().find(takes));
            let hint = field.map(|field| {
                format!("write: recv: {{{}: \"{}\"}}", field.name, shorten(&value, 80))
            });
            let problem = format!("{what} should be a map of fields, found a string");
            let place = Some(self.place_of(self.value_span(entry)));
            let problem = Problem::new(Code::Type, problem);
            let problem = match hint {
                Some(hint) => problem.hint_with_value(hint),
                None => problem,
            };
            self.say(problem.at(place));
            return;
        }
        for entry in self.map(entry.value, &what, "a map of fields").unwrap_or_default() {
            let what = format!("`{}` in {what}", quoted(entry.key));
            let Some(source) = self.received(entry, &what) else { continue };
            let is_rendered = self.tree.is_rendered(entry.value);
            if source.template.is_some()
                && !is_rendered
                && spec.template_field().is_some_and(|field| field.name == entry.key)
            {
                self.refuse_old_template(entry, &source);
                continue;
            }
            self.check_defaults(spec, entry, &source);
            let Source { template, values, defaults } = source;
            into.spots.receives.push(self.value_span(entry));
            let (target, is_default) = (entry.key.to_owned(), false);
            into.list.push(Receive { target, template, values, defaults, is_default });
        }
    }

    /// Reports the template of a received content, which has keys of its own, with the lines to write.
    fn refuse_old_template(&mut self, entry: Entry<'t>, source: &Source) {
        let printed: Vec<String> =
            source.values.iter().map(|(name, _)| format!("{{{{ {name} }}}}")).collect();
        let prefix = self.instance.to_string();
        let value = |(name, reference): &(String, Reference)| match reference {
            Reference::Sent(from, key) => {
                let from = from.strip_prefix(prefix.as_str()).unwrap_or(from);
                format!("{name}: \"{from}.{key}\"")
            }
            Reference::Secret(_) => format!("{name}: {{secret: NAME}}"),
            Reference::World(key) => format!("{name}: {{world: \"{key}\"}}"),
        };
        let values: Vec<String> = source.values.iter().map(value).collect();
        let what = format!(
            "`recv` takes no template for `{}`: write `template` and `values` beside it",
            quoted(entry.key)
        );
        let hint = format!(
            "write: template: {{text: \"… {} …\"}}, values: {{{}}}",
            printed.join(" … "),
            values.join(", ")
        );
        let place = Some(self.place_of(self.value_span(entry)));
        self.say(Problem::new(Code::Receive, what).hint(hint).at(place));
    }

    /// Reports a default that does not fit its field.
    fn check_defaults(&mut self, spec: &KindSpec, entry: Entry<'t>, source: &Source) {
        let field = spec.fields.iter().find(|field| field.name == entry.key);
        let Some(field) = field.filter(|_| source.template.is_none()) else { return };
        for default in &source.defaults {
            let scalar = Scalar { text: default.text.as_str().into(), plain: default.plain };
            if scalar::convert(field.takes, scalar).is_none() {
                let wants = scalar::wants(field.takes);
                let what = format!("the default of `{}` should be {wants}", field.name);
                self.refuse(Code::Receive, what, self.value_span(entry));
            }
        }
    }

    fn received(&mut self, entry: Entry<'t>, what: &str) -> Option<Source> {
        let mut source = Source::default();
        if !self.is_map(entry.value) {
            source.add("", Some(self.reference(entry, what)?));
            return Some(source);
        }
        let entries = self.map(entry.value, what, WANTS)?;
        let problems = self.problems.errors();
        let (mut from, mut key, mut template, mut world) = (None, None, None, None);
        let mut default = None;
        for inner in entries {
            let name = format!("`{}` in {what}", quoted(inner.key));
            match inner.key {
                "from" => from = self.text(inner, &name),
                "key" => key = self.text(inner, &name),
                "template" => template = self.text(inner, &name),
                "world" => world = self.text(inner, &name),
                "default" => default = self.default_value(inner, &name),
                "values" => {
                    for value in self.map(inner.value, &name, "a map of values").unwrap_or_default()
                    {
                        let name = format!("`{}` in {name}", quoted(value.key));
                        let reference = self.reference(value, &name);
                        source.add(value.key, reference);
                    }
                }
                other => self.unknown(other, inner.key_span, what, &LONG),
            }
        }
        match (from, key, template, world) {
            _ if self.problems.errors() > problems => return None,
            (Some(from), Some(key), None, None) if source.values.is_empty() => {
                let from = format!("{}{from}", self.instance);
                source.add("", Some((Reference::Sent(from, key), default)));
            }
            (None, None, None, Some(key)) if source.values.is_empty() && default.is_none() => {
                source.add("", Some((Reference::World(key), None)));
            }
            (None, None, Some(template), None) if default.is_none() => {
                source.template = Some(template);
            }
            _ => {
                let problem =
                    format!("{what} should be `from` and `key`, or `template` and `values`");
                self.refuse(Code::Receive, problem, self.value_span(entry));
                return None;
            }
        }
        Some(source)
    }

    /// Reads `default`, the value that a receiver uses while its sender is inactive.
    fn default_value(&mut self, entry: Entry<'t>, what: &str) -> Option<DefaultValue> {
        let plain = self.scalar(entry.value).is_some_and(|scalar| scalar.plain);
        let text = self.text(entry, what)?;
        Some(DefaultValue { name: String::new(), text, plain })
    }

    /// Reads one source: `kind[name].key`, `{from, key}`, or `{secret}`.
    fn reference(
        &mut self,
        entry: Entry<'t>,
        what: &str,
    ) -> Option<(Reference, Option<DefaultValue>)> {
        if !self.is_map(entry.value) {
            let text = self.text(entry, what)?;
            let cut = text.rfind("].").and_then(|at| Some((text.get(..=at)?, text.get(at + 2..)?)));
            let Some((from, key)) = cut.filter(|(_, key)| !key.is_empty()) else {
                // The text may be a secret, written here by mistake, and is not shown as a name.
                let problem = format!("{what} should be kind[name].key, found `{}`", quoted(&text));
                let place = Some(self.place_of(self.value_span(entry)));
                let key = entry.key;
                let hint = format!(
                    "of a secret: {key}: {{secret: NAME}}; of a resource: {key}: \"exec[NAME].stdout\""
                );
                self.say(Problem::new(Code::Receive, problem).hint(hint).at(place));
                return None;
            };
            let sent = Reference::Sent(format!("{}{from}", self.instance), key.to_owned());
            return Some((sent, None));
        }
        let problems = self.problems.errors();
        let (mut from, mut key, mut secret, mut world) = (None, None, None, None);
        let mut default = None;
        for inner in self.map(entry.value, what, WANTS)? {
            let name = format!("`{}` in {what}", quoted(inner.key));
            match inner.key {
                "from" => from = self.text(inner, &name),
                "key" => key = self.text(inner, &name),
                "secret" => secret = self.text(inner, &name),
                "world" => world = self.text(inner, &name),
                "default" => default = self.default_value(inner, &name),
                other => self.unknown(other, inner.key_span, what, &VALUE),
            }
        }
        match (from, key, secret, world) {
            (Some(from), Some(key), None, None) => {
                Some((Reference::Sent(format!("{}{from}", self.instance), key), default))
            }
            (None, None, Some(name), None) if default.is_none() => {
                Some((Reference::Secret(name), None))
            }
            (None, None, None, Some(key)) if default.is_none() => {
                Some((Reference::World(key), None))
            }
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
            let (template, defaults, is_default) = (None, Vec::new(), false);
            into.list.push(Receive { target, template, values, defaults, is_default });
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
