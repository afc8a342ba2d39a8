//! The reader's walk over the words of the world: `collect`, and `export` of a resource.

use super::{Entry, Reader};
use crate::config::ast::{Collect, Export, GraphFile};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::world::splay::LONGEST_SPLAY;
use std::fmt::Display;
use steadfast_resources::{FieldSpec, FieldType, ForeignValue, Value};

const KEYS: [&str; 8] = ["kind", "from", "fields", "set", "below", "pattern", "splay", "meta"];

/// The field `splay` of a collection.
static SPLAY: FieldSpec = FieldSpec::new(
    "splay",
    FieldType::Seconds,
    "time over which the hosts take over a change of the collection",
);

fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

impl<'t> Reader<'t, '_> {
    /// Reads `collect`, a list of collections.
    pub(in crate::config) fn collects(&mut self, entry: Entry<'t>, file: &mut GraphFile) {
        if self.is_null(entry.value) {
            return;
        }
        let wants = "a list, for example `- { kind: file, fields: [content], below: /etc/x }`";
        for &item in self.list(entry, "`collect`", wants).unwrap_or_default() {
            let errors = self.problems.errors();
            let Some(entries) = self.map(item, "a collection", "a map with `kind`") else {
                continue;
            };
            let span = self.tree.span(item);
            let line = self.source.line(span.start);
            let mut collect = Collect { span, line, ..Collect::default() };
            let (mut is_empty, mut has_pattern) = (false, false);
            for inner in entries {
                let what = format!("`{}` of a collection", quoted(inner.key));
                match inner.key {
                    "kind" => collect.kind = self.text(inner, &what).unwrap_or_default(),
                    "from" => collect.from = self.world_texts(inner, &what),
                    "fields" => collect.fields = self.world_texts(inner, &what),
                    "below" => collect.below = self.text(inner, &what),
                    "pattern" => {
                        collect.below = self.text(inner, &what);
                        has_pattern = true;
                        is_empty = collect.below.as_ref().is_some_and(String::is_empty);
                        self.doubt_pattern(inner, is_empty);
                    }
                    "splay" => {
                        let splay = self.value(&SPLAY, inner, "a collection");
                        collect.splay = self.splay(inner, splay.as_ref());
                    }
                    "set" => collect.set.extend(self.set_fields(inner.value, &what)),
                    "meta" => {
                        collect.meta = self.checked_meta(inner, "a collection").map(Box::new);
                    }
                    other => self.unknown(other, inner.key_span, "a collection", &KEYS),
                }
            }
            if collect.kind.is_empty() && self.problems.errors() == errors {
                self.missing(item, "kind", "a collection");
            }
            if let Some(spec) = self.kinds.find(&collect.kind).filter(|_| has_pattern) {
                let is_taken = |field: &&FieldSpec| {
                    matches!(field.foreign, ForeignValue::BelowFolder | ForeignValue::AtOwnPlace)
                };
                let fields = spec.fields.iter().filter(is_taken);
                collect.fields = fields.map(|field| field.name.to_owned()).collect();
            }
            if collect.from.is_empty() {
                collect.from.push("*".to_owned());
            }
            if self.problems.errors() == errors && !is_empty {
                file.collects.push(collect);
            }
        }
    }

    /// Returns the splay of a collection, and reports one that is out of range.
    fn splay(&mut self, entry: Entry<'t>, splay: Option<&Value>) -> u64 {
        let Some(splay) = splay.and_then(whole_number) else { return 0 };
        if let Some(splay) = u64::try_from(splay).ok().filter(|it| *it <= LONGEST_SPLAY) {
            return splay;
        }
        let what = "`splay` of a collection should be a time of at most 1h";
        let place = Some(self.source.place(self.value_span(entry)));
        self.say(Problem::new(Code::World, what).hint("for example splay: 5m").at(place));
        0
    }

    /// Reports mgmt's word `pattern`. An empty pattern takes the paths of other hosts there, and nothing here.
    fn doubt_pattern(&mut self, entry: Entry<'t>, is_empty: bool) {
        let what = if is_empty {
            "an empty `pattern` collects nothing: paths of other hosts are not taken as they are"
        } else {
            "`pattern` of a collection is mgmt's word for `below` and `fields`"
        };
        let hint = "write: below: DIR, fields: [path, content]";
        let place = Some(self.source.place(entry.key_span));
        self.say(Problem::new(Code::World, what).warning().hint(hint).at(place));
    }

    /// Reads the fields that a collection sets.
    fn set_fields(&mut self, value: usize, what: &str) -> Vec<(String, String)> {
        let fields = self.map(value, what, "a map of fields").unwrap_or_default();
        let read = |field: Entry<'t>| {
            let name = format!("`{}` in {what}", quoted(field.key));
            let text = self.text(field, &name)?;
            Some((field.key.to_owned(), text))
        };
        fields.into_iter().filter_map(read).collect()
    }

    /// Reads a text, or a list of texts.
    fn world_texts(&mut self, entry: Entry<'t>, what: &str) -> Vec<String> {
        if self.scalar(entry.value).is_some() {
            return self.text(entry, what).into_iter().collect();
        }
        let items = self.list(entry, what, "a list of strings").unwrap_or_default();
        let texts = items.iter().filter_map(|item| self.scalar(*item));
        texts.map(|scalar| scalar.text.to_string()).collect()
    }

    /// Reads `export` of a resource: a truth value, or `{apply: true}`.
    pub(in crate::config) fn export(
        &mut self,
        entry: Entry<'t>,
        what: impl Display,
    ) -> Option<Export> {
        let what = format!("`export` of {what}");
        if self.scalar(entry.value).is_some() {
            return self.truth(entry)?.then_some(Export { apply: false });
        }
        let mut apply = false;
        for inner in self.map(entry.value, &what, "true, or { apply: true }")? {
            match inner.key {
                "apply" => apply = self.truth(inner).unwrap_or_default(),
                other => self.unknown(other, inner.key_span, &what, &["apply"]),
            }
        }
        Some(Export { apply })
    }
}
