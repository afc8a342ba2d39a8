//! Unknown kinds, fields and keys: each is an error, with the nearest known name.

use super::foreign_words;
use super::resources::ResourceLabel;
use super::{Entry, Reader, TOP};
use crate::config::ast::Relation;
use crate::config::checks::metaparams::{ALIASES, LABELS, META};
use crate::config::expand::resources::templates::is_template_key;
use crate::config::hidden::is_secret_key;
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::config::source_file::Span;
use crate::nearest_name::{hint_for_unknown, most_similar, nearest};
use std::fmt::Display;
use std::sync::Arc;
use steadfast_resources::{FieldSpec, KindSpec, Receives, ResourceId};

/// The keys at the top of a graph file that the expansion has read already.
const LANGUAGE_KEYS: [&str; 5] = ["vars", "vars_files", "include", "modules", "assert"];

/// The kinds of other tools for links.
const LINKS: [&str; 2] = ["link", "symlink"];

impl<'t> Reader<'t, '_> {
    /// Reports a kind that this build does not have, with the nearest name.
    pub(super) fn unknown_kind(&mut self, kind: Entry<'t>) {
        let name = quoted(kind.key);
        let problem = if let Some(hint) = misplaced_key(kind.key) {
            let what = format!("`{name}` stands where a kind is expected");
            Problem::new(Code::UnknownKind, what).hint(hint)
        } else if self.kinds.is_elsewhere(kind.key) {
            let problem =
                Problem::new(Code::KindLater, format!("kind `{name}` is not in this build"));
            let known: Vec<&str> = self.kinds.names().collect();
            problem.hint(known_kinds(kind.key, &known))
        } else {
            let written = kind.key;
            let foreign = foreign_words::kind_for(written).filter(|it| self.kinds.is_known(it));
            let near = foreign.or_else(|| nearest(kind.key, self.kinds.names()));
            let near = near.map(|near| match foreign {
                Some(_) if LINKS.contains(&written) => {
                    "write: file: [{name: /path, symlink: /target}]".to_owned()
                }
                Some(kind) => format!("write: {kind}:"),
                None => format!("did you mean `{near}`?"),
            });
            let known: Vec<&str> = self.kinds.names().collect();
            let advice = foreign_words::advice_without_kind(written).map(ToOwned::to_owned);
            let hint = advice.or(near).unwrap_or_else(|| known_kinds(kind.key, &known));
            Problem::new(Code::UnknownKind, format!("unknown kind `{name}`")).hint(hint)
        };
        self.say(problem.at(Some(self.place_of(kind.key_span))));
    }

    /// Returns the field that a key names, or reports that the kind does not have it.
    pub(super) fn known_field(
        &mut self,
        spec: &'static KindSpec,
        entry: Entry<'t>,
        what: impl Display,
    ) -> Option<&'static FieldSpec> {
        let field = spec.fields.iter().find(|field| field.name == entry.key);
        if field.is_none() {
            self.report_unknown_field(spec, entry, &what.to_string());
        }
        field
    }

    /// Reports the unknown keys of a resource that is not read, because its expressions are wrong.
    pub(in crate::config) fn unknown_fields(&mut self, spec: &'static KindSpec, item: usize) {
        let name = self.tree.entry(item, "name").and_then(|(_, name)| self.scalar(name));
        let name = name.filter(|name| !name.is_null());
        let instance = Arc::clone(&self.instance);
        let what = ResourceLabel { instance: &instance, kind: spec.kind, name };
        for (key, value) in self.tree.entries(item) {
            let Some(text) = self.scalar(*key).map(|key| key.text.as_ref()) else { continue };
            let is_usual = ["name", "when", "for_each", "meta", "recv", "export", ALIASES.name]
                .contains(&text)
                || text == LABELS.name
                || Relation::parse(text).is_some()
                || is_template_key(spec, text);
            if !is_usual {
                let entry = Entry { key: text, key_span: self.tree.span(*key), value: *value };
                self.known_field(spec, entry, what);
            }
        }
    }

    /// Reports a field that a kind does not have, with the nearest field, or the word that other tools use for it.
    fn report_unknown_field(&mut self, spec: &KindSpec, entry: Entry<'t>, what: &str) {
        let mut known: Vec<&str> =
            vec!["name", "when", "for_each", "meta", "export", ALIASES.name, LABELS.name];
        if spec.fields.iter().any(|field| field.receives > Receives::Nothing) {
            known.push("recv");
        }
        known
            .extend(spec.fields.iter().filter(|f| !f.later && f.ignored.is_none()).map(|f| f.name));
        known.extend(Relation::NAMES);
        if META.iter().any(|field| field.name == entry.key) {
            let problem = format!("unknown key `{}` in {what}", quoted(entry.key));
            let problem = Problem::new(Code::UnknownKey, problem);
            let hint = format!("put the key below `meta`: meta: {{ {}: … }}", entry.key);
            self.say(problem.hint(hint).at(Some(self.place_of(entry.key_span))));
        } else if let Some(hint) = foreign_words::hint_for(
            entry.key,
            spec,
            // A value that may be a secret is not repeated.
            self.written_value(entry.value).filter(|_| !is_secret_key(entry.key)),
        ) {
            let problem = format!("unknown key `{}` in {what}", quoted(entry.key));
            let place = self.place_of(entry.key_span);
            let problem = Problem::new(Code::UnknownKey, problem);
            self.say(problem.hint_with_value(hint).at(Some(place)));
        } else {
            self.unknown(entry.key, entry.key_span, what, &known);
        }
    }

    /// Returns a value as written: the text of a scalar, or a list or map in one line.
    fn written_value(&self, node: usize) -> Option<&'t str> {
        if let Some(scalar) = self.scalar(node) {
            return Some(&scalar.text);
        }
        self.source.bracketed(self.tree.span(node).start)
    }

    /// Reports a key at the top of a graph file that no graph has.
    pub(super) fn unknown_top(&mut self, key: &str, span: Span) {
        let place = Some(self.place_of(span));
        let problem = match key {
            "remote" => Problem::new(Code::KeyLater, "`remote` is not in this build")
                .hint("run steadfast on each host"),
            "handlers" => Problem::new(Code::UnknownKey, "unknown key `handlers`")
                .hint("write in the resource that changes: notify: [\"kind[name]\"]"),
            "tasks" | "roles" | "plays" => {
                Problem::new(Code::UnknownKey, format!("unknown key `{key}`"))
                    .hint("declare resources by kind: resources: {file: [{name: …}]}")
            }
            "hosts" => Problem::new(Code::UnknownKey, "unknown key `hosts`").hint(
                "run steadfast on each host; docs/guide/many-hosts.md has the graphs of many",
            ),
            "types" => Problem::new(Code::UnknownKey, "unknown key `types`")
                .hint("use `resources` instead"),
            kind if self.kinds.find(kind).is_some() => {
                let what = format!("the kind `{}` stands at the top of the file", quoted(kind));
                Problem::new(Code::UnknownKey, what).hint("put it below `resources:`")
            }
            _ => {
                let all = || TOP.into_iter().chain(LANGUAGE_KEYS);
                let foreign = (key == "variables").then_some("vars");
                let near = foreign.or_else(|| nearest(key, all()));
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                let known = format!("valid keys: {}", all().collect::<Vec<_>>().join(", "));
                Problem::new(Code::UnknownKey, format!("unknown key `{}`", quoted(key)))
                    .hint(hint.unwrap_or(known))
            }
        };
        self.say(problem.at(place));
    }

    /// Reports a key that an object does not have, with the nearest known key.
    pub(in crate::config) fn unknown(
        &mut self,
        key: &str,
        span: Span,
        what: impl Display,
        known: &[&str],
    ) {
        let what = what.to_string();
        let hint = hint_for_unknown(key, known, explained_topic(&what));
        let problem = format!("unknown key `{}` in {what}", quoted(key));
        let place = self.place_of(span);
        self.say(Problem::new(Code::UnknownKey, problem).hint(hint).at(Some(place)));
    }
}

/// Returns the advice for a key of a resource that stands in the place of a kind: its indentation is wrong.
pub(super) fn misplaced_key(key: &str) -> Option<String> {
    if let Some(rest) = key.strip_prefix('-').filter(|rest| !rest.is_empty()) {
        return Some(format!("write a space behind the dash: `- {rest}:`"));
    }
    let of_all = ["name", "when", "for_each", "meta", "recv", "with", LABELS.name, ALIASES.name];
    let is_key = of_all.contains(&key) || Relation::parse(key).is_some();
    is_key.then(|| {
        format!("`{key}` belongs to a resource: indent it as far as its `name`, so that both begin in one column")
    })
}

/// Returns the topic of `steadfast explain` for the keys of an object of the graph, as messages name it.
fn explained_topic(what: &str) -> Option<&str> {
    if what.starts_with("`meta`") {
        return Some("meta");
    }
    if what == "the settings" {
        return Some("settings");
    }
    if let Some((_, rest)) = what.split_once("entry of `") {
        return rest.split_once('`').map(|(kind, _)| kind);
    }
    ResourceId::parse(what).map(|id| id.kind)
}

/// Names the kinds of this build: all if they are few, else the most similar ones and a pointer.
fn known_kinds(word: &str, known: &[&str]) -> String {
    if known.len() <= 8 {
        return format!("kinds of this build: {}", known.join(", "));
    }
    let few = most_similar(word, known).join("`, `");
    format!("similar kinds: `{few}`; `steadfast explain` lists all")
}
