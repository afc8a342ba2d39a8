//! The reader of graph files: turns the YAML tree into a graph file, and reports every problem with its place.
//!
//! A reader must not compare resources; that is the task of `checks`. Reading order: `files` (paths to texts),
//! `refused_characters`, `syntax_errors`, this file, `resources`, `field_parts`, `meta`, `receives`, `world`,
//! `unknown_keys` and `foreign_words` (hints), and `nesting` (a check of all paths, which runs with `checks`).

#[cfg(test)]
mod any_text_tests;
mod field_parts;
pub(super) mod files;
pub(super) mod foreign_words;
mod meta;
pub(super) mod nesting;
pub(super) mod receives;
pub(super) mod refused_characters;
pub(super) mod resources;
pub(super) mod syntax_errors;
mod unknown_keys;
pub(super) mod world;

use super::ast::{Edge, EdgeSpots, End, GraphFile, Spans};
use super::document::tree::{Node, Tree};
use super::document::{Document, Note, Origin, parse};
use super::problem::code::Code;
use super::problem::{Place, Problem, Problems, quoted, shorten};
use super::scalar::Scalar;
use super::source_file::{SourceFile, Span};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;
use steadfast_resources::KindSet;
use steadfast_resources::ResourceId;

/// Reads one file; returns `None` if there is no tree.
pub(super) fn read(
    source: &SourceFile,
    kinds: &KindSet,
    problems: &mut Problems,
) -> Option<GraphFile> {
    let tree = parse::parse(source, problems)?;
    let (origin, notes) = (Origin::default(), HashMap::new());
    let (instance, item) = (Arc::default(), None);
    let mut reader = Reader {
        source,
        kinds,
        tree: &tree,
        origin: &origin,
        instance,
        notes: &notes,
        item,
        problems,
    };
    Some(reader.file())
}

/// Reads an expanded document.
pub(super) fn read_document(
    (source, document): (&SourceFile, &Document),
    kinds: &KindSet,
    problems: &mut Problems,
) -> GraphFile {
    let mut reader = Reader {
        source,
        kinds,
        tree: &document.tree,
        origin: &document.origin,
        instance: document.origin.prefix().into(),
        notes: &document.notes,
        item: None,
        problems,
    };
    let mut file = reader.file();
    file.module_edges.clone_from(&document.module_edges);
    if let Some(spots) = &mut file.spots {
        spots.module_edges = document.module_edges.iter().map(|edge| edge.span).collect();
    }
    file
}

/// The state of a walk over one tree.
pub(super) struct Reader<'t, 'p> {
    pub(super) source: &'t SourceFile,
    pub(super) kinds: &'t KindSet,
    pub(super) tree: &'t Tree<'t>,
    pub(super) origin: &'t Origin,
    /// The prefix of identities: `shop/` in the instance `shop` of a module.
    pub(super) instance: Arc<str>,
    pub(super) notes: &'t HashMap<usize, Note>,
    /// The key of the loop item whose resource is being read.
    pub(super) item: Option<Arc<str>>,
    pub(super) problems: &'p mut Problems,
}

/// A known key, its value, and their positions.
#[derive(Clone, Copy)]
pub(super) struct Entry<'t> {
    pub(super) key: &'t str,
    pub(super) key_span: Span,
    pub(super) value: usize,
}

/// Returns the uses that led to a part of a document, the nearest first.
pub(super) fn chain_of(origin: &Origin, item: Option<&str>) -> Vec<String> {
    let item = item.map(|item| format!("in the loop: item `{}`", quoted(item)));
    item.into_iter().chain(origin.chain.iter().cloned()).collect()
}

/// The size up to which the keys of a map are compared one by one, which is faster than a table.
const FEW_KEYS: usize = 24;

const TOP: [&str; 6] = ["graph", "comment", "secrets", "resources", "edges", "collect"];
const EDGE: [&str; 4] = ["name", "from", "to", "notify"];
const END: [&str; 2] = ["kind", "name"];

/// Returns the advice for a list where a map is expected.
fn list_for_map_advice(what: &str) -> Option<&'static str> {
    match what {
        "the file" => Some("an Ansible playbook? docs/guide/from-ansible.md translates its words"),
        "`resources`" => {
            Some("write each kind once, without `-`: file: [{name: /path, content: TEXT}]")
        }
        _ => None,
    }
}

impl<'t> Reader<'t, '_> {
    fn file(&mut self) -> GraphFile {
        let mut file = GraphFile { spots: Some(Spans::default()), ..GraphFile::default() };
        // An empty file adds nothing; the missing name of the graph is reported later.
        let Some(root) = self.tree.root().filter(|root| !self.is_null(*root)) else {
            return file;
        };
        let wants = "a map with graph, resources, edges";
        let Some(entries) = self.map(root, "the file", wants) else {
            file.unread = true;
            return file;
        };
        for entry in entries {
            match entry.key {
                "graph" => {
                    let span = self.value_span(entry);
                    file.name = self.text(entry, "`graph`");
                    if let Some(spots) = &mut file.spots {
                        spots.name = Some(span);
                    }
                }
                "comment" if self.is_null(entry.value) => {}
                "comment" => file.comment = self.text(entry, "`comment`"),
                "resources" => self.resources(entry, &mut file),
                "edges" => self.edges(entry, &mut file),
                "secrets" => self.secrets(entry, &mut file),
                "collect" => self.collects(entry, &mut file),
                key => self.unknown_top(key, entry.key_span),
            }
        }
        file
    }

    fn edges(&mut self, entry: Entry<'t>, file: &mut GraphFile) {
        for item in self.list(entry, "`edges`", "a list of edges").unwrap_or_default() {
            if self.edge_as_text(*item) {
                continue;
            }
            let Some(entries) = self.map(*item, "an edge", "a map with `from` and `to`") else {
                continue;
            };
            let (mut from, mut to, mut notify) = (None, None, false);
            let mut spots = EdgeSpots::default();
            let problems = self.problems.errors();
            for entry in entries {
                match entry.key {
                    "name" | "notify" if self.is_null(entry.value) => {}
                    "name" => drop(self.text(entry, "`name` of an edge")),
                    "from" => (from, spots.from) = self.end(entry),
                    "to" => (to, spots.to) = self.end(entry),
                    "notify" => notify = self.truth(entry).unwrap_or_default(),
                    key => self.unknown(key, entry.key_span, "an edge", &EDGE),
                }
            }
            match (from, to) {
                (Some(from), Some(to)) => {
                    file.edges.push(Edge { from, to, notify });
                    if let Some(all) = &mut file.spots {
                        all.edges.push(spots);
                    }
                }
                _ if self.problems.errors() > problems => {}
                (from, _) => {
                    let key = if from.is_none() { "from" } else { "to" };
                    self.missing(*item, key, "an edge");
                }
            }
        }
    }

    /// Reports an edge that is written as one text, such as `pkg[a] -> svc[b]`.
    fn edge_as_text(&mut self, item: usize) -> bool {
        let Some(text) = self.scalar(item).filter(|text| !text.is_null()) else { return false };
        let ends = text.text.split_once("->").map(|(from, to)| (from.trim(), to.trim()));
        let (from, to) = ends.unwrap_or(("kind[name]", "kind[name]"));
        let hint = format!("write {{from: \"{}\", to: \"{}\"}}", quoted(from), quoted(to));
        let what = "an edge should be a map with `from` and `to`, found a string";
        let place = self.place_of(self.tree.span(item));
        self.say(Problem::new(Code::Type, what).hint_with_value(hint).at(Some(place)));
        true
    }

    fn end(&mut self, entry: Entry<'t>) -> (Option<End>, Span) {
        let what = format!("`{}` of an edge", entry.key);
        let mut span = self.value_span(entry);
        let (mut kind, mut name) = (None, None);
        let problems = self.problems.errors();
        if self.is_null(entry.value) {
            self.missing(entry.value, entry.key, "an edge");
            return (None, span);
        }
        if self.scalar(entry.value).is_some() {
            return (self.end_as_text(entry, &what), span);
        }
        for entry in self
            .map(entry.value, &what, "kind[name], or a map with `kind` and `name`")
            .unwrap_or_default()
        {
            match entry.key {
                "kind" => kind = self.text(entry, format_args!("`kind` in {what}")),
                "name" => {
                    span = self.value_span(entry);
                    name = self.text(entry, format_args!("`name` in {what}"));
                }
                "type" => self.say(
                    Problem::new(Code::UnknownKey, format!("unknown key `type` in {what}"))
                        .hint("use `kind` instead")
                        .at(Some(self.place_of(entry.key_span))),
                ),
                key => self.unknown(key, entry.key_span, &what, &END),
            }
        }
        match (kind, name) {
            (Some(kind), Some(name)) => {
                (Some(End { kind: format!("{}{kind}", self.instance), name }), span)
            }
            (kind, _) => {
                if self.problems.errors() == problems {
                    let key = if kind.is_none() { "kind" } else { "name" };
                    self.missing(entry.value, key, &what);
                }
                (None, span)
            }
        }
    }
}

impl<'t> Reader<'t, '_> {
    /// Reads an end of an edge that is written as `kind[name]`.
    fn end_as_text(&mut self, entry: Entry<'t>, what: &str) -> Option<End> {
        let text = self.text(entry, what)?;
        let Some(ResourceId { instance, kind, name }) = ResourceId::parse(&text) else {
            let found = format!("expected a resource as kind[name], found `{}`", quoted(&text));
            let hint = "name a resource by kind and name, for example file[motd]";
            let place = Some(self.place_of(self.value_span(entry)));
            self.say(Problem::new(Code::Reference, found).hint(hint).at(place));
            return None;
        };
        let before = if instance.is_empty() { "" } else { "/" };
        let kind = format!("{}{instance}{before}{kind}", self.instance);
        Some(End { kind, name: name.to_owned() })
    }
}

/// The functions that all walks use.
impl<'t> Reader<'t, '_> {
    /// Returns the place of a span, with the uses and the loop that led to it.
    pub(super) fn place_of(&self, span: Span) -> Place {
        if self.problems.is_full() {
            // The place of a problem that is only counted is not computed.
            return self.source.whole();
        }
        let mut place = self.source.place(span);
        place.chain = chain_of(self.origin, self.item.as_deref());
        place
    }

    pub(super) fn say(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    pub(super) fn scalar(&self, id: usize) -> Option<&'t Scalar<'t>> {
        match self.tree.node(id) {
            Some(Node::Scalar(scalar)) => Some(scalar),
            _ => None,
        }
    }

    pub(super) fn is_null(&self, id: usize) -> bool {
        self.scalar(id).is_some_and(Scalar::is_null)
    }

    /// Returns the position of a value, or of its key if the value is empty.
    pub(super) fn value_span(&self, entry: Entry<'_>) -> Span {
        let span = self.tree.span(entry.value);
        if span.start == span.end || self.is_null(entry.value) { entry.key_span } else { span }
    }

    /// Names the shape of a node in words. A scalar is not quoted: it can be a value that stands at the wrong depth.
    pub(super) fn shape(&self, id: usize) -> String {
        match self.tree.node(id) {
            Some(Node::Scalar(scalar)) if !scalar.is_null() => "a string".to_owned(),
            _ => self.found(id),
        }
    }

    /// Names a node in words. A scalar is quoted up to a limit.
    pub(super) fn found(&self, id: usize) -> String {
        match self.tree.node(id) {
            Some(Node::Scalar(scalar)) if scalar.is_null() => "nothing".to_owned(),
            Some(Node::Scalar(scalar)) if scalar.plain => format!("`{}`", quoted(&scalar.text)),
            Some(Node::Scalar(scalar)) => format!("the string \"{}\"", quoted(&scalar.text)),
            Some(Node::List(_)) => "a list".to_owned(),
            Some(Node::Map(_)) => "a map".to_owned(),
            Some(Node::Alias(_)) | None => "an alias".to_owned(),
        }
    }

    /// Returns the entries of a map, each key once; reports a node that is no map.
    pub(super) fn map(
        &mut self,
        id: usize,
        what: impl Display,
        wants: &str,
    ) -> Option<Vec<Entry<'t>>> {
        let Some(Node::Map(pairs)) = self.tree.node(id) else {
            let what = what.to_string();
            let is_list = matches!(self.tree.node(id), Some(Node::List(_)));
            let advice = list_for_map_advice(&what).filter(|_| is_list).map(str::to_owned);
            let problem = format!("{what} should be {wants}, found {}", self.shape(id));
            let place = self.place_of(self.tree.span(id));
            self.say(Problem::new(Code::Type, problem).hint_if(advice).at(Some(place)));
            return None;
        };
        let mut entries: Vec<Entry<'t>> = Vec::with_capacity(pairs.len());
        let mut keys = HashMap::new();
        for (key_id, value) in pairs {
            let (key_span, value) = (self.tree.span(*key_id), *value);
            let Some(scalar) = self.scalar(*key_id) else {
                let problem = format!("a key should be a string, found {}", self.found(*key_id));
                let place = self.place_of(key_span);
                self.say(Problem::new(Code::Type, problem).at(Some(place)));
                continue;
            };
            let key = scalar.text.as_ref();
            let before = if pairs.len() <= FEW_KEYS {
                entries.iter().find(|entry| entry.key == key).map(|entry| entry.key_span)
            } else {
                keys.insert(key, key_span)
            };
            if let Some(before) = before {
                let place = self.place_of(key_span);
                let mut earlier = self.place_of(before);
                earlier.label = Some("first given here".to_owned());
                let problem = format!("`{}` is given twice in {what}", quoted(key));
                let problem =
                    Problem::new(Code::DuplicateKey, problem).hint("keep one of the keys");
                self.say(problem.at(Some(place)).at(Some(earlier)));
            } else {
                entries.push(Entry { key, key_span, value });
            }
        }
        Some(entries)
    }

    /// Returns the items of a list; null is an empty list.
    pub(super) fn list(
        &mut self,
        entry: Entry<'t>,
        what: impl Display,
        wants: &str,
    ) -> Option<&'t [usize]> {
        match self.tree.node(entry.value) {
            Some(Node::List(items)) => Some(items),
            _ if self.is_null(entry.value) => Some(&[]),
            _ => {
                let problem =
                    format!("{what} should be {wants}, found {}", self.shape(entry.value));
                let problem = Problem::new(Code::Type, problem);
                let hint = match self.tree.node(entry.value) {
                    Some(Node::Map(_)) => Some("start each item with `- `".to_owned()),
                    Some(Node::Scalar(scalar)) if scalar.plain => {
                        let text = quoted(&scalar.text);
                        Some(format!("write {}: [{text}]", quoted(entry.key)))
                    }
                    _ => None,
                };
                let place = self.place_of(self.value_span(entry));
                let problem = match hint {
                    Some(hint) => problem.hint_with_value(hint),
                    None => problem,
                };
                self.say(problem.at(Some(place)));
                None
            }
        }
    }

    /// Returns a text; reports a missing one.
    pub(super) fn text(&mut self, entry: Entry<'t>, what: impl Display) -> Option<String> {
        match self.scalar(entry.value) {
            Some(scalar) if !scalar.is_null() => Some(scalar.text.to_string()),
            _ => {
                let problem =
                    format!("{what} should be a string, found {}", self.found(entry.value));
                let place = self.place_of(self.value_span(entry));
                let hint = (entry.key == "name").then(|| self.names_advice(entry.value)).flatten();
                self.say(Problem::new(Code::Type, problem).hint_if(hint).at(Some(place)));
                None
            }
        }
    }

    /// Advises to write one resource for each name of a list.
    fn names_advice(&self, node: usize) -> Option<String> {
        let Some(Node::List(items)) = self.tree.node(node) else { return None };
        let names = items.iter().take(3).filter_map(|item| self.scalar(*item));
        let names: Vec<String> =
            names.map(|name| format!("`- {}`", quoted(&shorten(&name.text, 30)))).collect();
        let list = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        Some(format!(
            "write one item for each name{list}; or for_each: [NAME] with name: \"${{item}}\""
        ))
    }

    fn truth(&mut self, entry: Entry<'t>) -> Option<bool> {
        let field = &super::checks::metaparams::TRUTH;
        match self.value(field, entry, "an edge") {
            Some(steadfast_resources::Value::Bool(truth)) => Some(truth),
            _ => None,
        }
    }

    pub(super) fn missing(&mut self, id: usize, key: &str, what: impl Display) {
        let problem = format!("{what} needs `{key}`");
        let place = self.place_of(self.tree.span(id));
        self.say(Problem::new(Code::MissingKey, problem).at(Some(place)));
    }
}
