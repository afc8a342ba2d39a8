//! The expanded graph as YAML, with the origin of each part in comments. `printed` reads it back.

use super::Expansion;
use super::printed::{MARK, OF_MODULES, ORIGIN};
use crate::config::document::tree::{Node, Tree};
use crate::config::document::{Document, Inactivity, Note};
use crate::config::problem::quoted;
use std::fmt::Write as _;
use std::path::Path;
use steadfast_resources::{printable, printable_json};

/// Writes all documents of an expansion as one file.
pub(in crate::config) fn print_expansion(expansion: &Expansion) -> String {
    let mut text = format!("{MARK}\n");
    let base = expansion.documents.first().map(|document| base_of(expansion, document));
    let Some(base) = base else { return text };
    write_line(&mut text, 0, &format!("base: {}", json(&base.display().to_string())));
    let printer = Printer { expansion, base };
    printer.print_top(&mut text);
    printer.print_modules(&mut text);
    printer.print_edges(&mut text);
    printer.print_resources(&mut text);
    text
}

/// Returns the folder to which the relative paths of a document refer.
fn base_of<'expansion>(expansion: &'expansion Expansion, document: &Document) -> &'expansion Path {
    expansion
        .sources
        .get(document.source)
        .map_or_else(|| Path::new("/"), |source| source.base.as_path())
}

struct Printer<'expansion> {
    expansion: &'expansion Expansion,
    base: &'expansion Path,
}

impl Printer<'_> {
    /// Writes the keys of all documents besides resources and edges.
    fn print_top(&self, text: &mut String) {
        let mut names: Vec<&str> = Vec::new();
        for (tree, pairs) in self.roots() {
            for (key, _) in pairs {
                let name = tree.scalar(*key).map(|it| it.text.as_ref()).unwrap_or_default();
                if !["resources", "edges"].contains(&name) && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        for name in names {
            // A module has a comment of its own.
            let is_own = name == "comment";
            let documents = self.expansion.documents.iter();
            let documents = documents.filter(|it| !is_own || it.origin.instance.is_empty());
            let values: Vec<(&Tree<'static>, usize)> = documents
                .filter_map(|Document { tree, .. }| Some((tree, tree.entry(tree.root()?, name)?.1)))
                .collect();
            let Some((tree, first)) = values.first().copied() else { continue };
            let is_filled = |tree: &Tree<'static>, node: usize| match tree.node(node) {
                Some(Node::Map(pairs)) => !pairs.is_empty(),
                Some(Node::List(items)) => !items.is_empty(),
                _ => false,
            };
            write!(text, "{name}:").unwrap_or_default();
            if values.iter().any(|(tree, node)| is_filled(tree, *node)) {
                text.push('\n');
                for (tree, node) in values.iter().filter(|(tree, node)| is_filled(tree, *node)) {
                    print_node(tree, *node, 2, text);
                }
            } else {
                print_value(tree, first, 2, text);
            }
        }
    }

    fn roots(&self) -> impl Iterator<Item = (&Tree<'static>, &[(usize, usize)])> {
        let documents = self.expansion.documents.iter();
        documents.filter_map(|document| {
            let tree = &document.tree;
            Some((tree, tree.entries(tree.root()?)))
        })
    }

    /// Writes the edges and the exports of the instances.
    fn print_modules(&self, text: &mut String) {
        let [edges, exported] = OF_MODULES;
        let documents = || self.expansion.documents.iter();
        if documents().any(|document| !document.module_edges.is_empty()) {
            write_line(text, 0, &format!("{edges}:"));
        }
        for document in documents() {
            for edge in &document.module_edges {
                let (of, target) = (json(&edge.instance), json(&edge.target));
                let relation = edge.relation.key();
                let line = format!("- {{of: {of}, relation: {relation}, target: {target}");
                let origin = self.origin(document, None);
                let origin = origin.map(|it| format!(", {ORIGIN}: {it}")).unwrap_or_default();
                write_line(text, 2, &format!("{line}{origin}}}"));
            }
        }
        let mut known: Vec<&str> = Vec::new();
        for document in documents().filter(|document| !document.origin.exports.list.is_empty()) {
            let instance = &*document.origin.instance;
            if known.contains(&instance) {
                continue;
            }
            if known.is_empty() {
                write_line(text, 0, &format!("{exported}:"));
            }
            known.push(instance);
            let exports = document.origin.exports.list.iter();
            let names: Vec<String> = exports.map(|export| json(&export.target)).collect();
            write_line(text, 2, &format!("{}: [{}]", json(instance), names.join(", ")));
        }
    }

    fn print_edges(&self, text: &mut String) {
        let mut is_first = true;
        for document in &self.expansion.documents {
            let tree = &document.tree;
            let edges = tree.root().and_then(|root| tree.entry(root, "edges"));
            let Some(Node::List(items)) = edges.and_then(|(_, list)| tree.node(list)) else {
                continue;
            };
            for item in items {
                if std::mem::take(&mut is_first) {
                    write_line(text, 0, "edges:");
                }
                self.print_item(document, *item, (2, None), text);
            }
        }
    }

    /// Writes the resources of all documents, by kind.
    fn print_resources(&self, text: &mut String) {
        let mut kinds: Vec<(&str, Vec<(&Document, usize)>)> = Vec::new();
        for document in &self.expansion.documents {
            let tree = &document.tree;
            let Some((_, resources)) = tree.root().and_then(|root| tree.entry(root, "resources"))
            else {
                continue;
            };
            for (kind, list) in tree.entries(resources) {
                let kind = tree.scalar(*kind).map(|it| it.text.as_ref()).unwrap_or_default();
                let Some(Node::List(items)) = tree.node(*list) else { continue };
                let items = items.iter().map(|item| (document, *item));
                match kinds.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, all)) => all.extend(items),
                    None => kinds.push((kind, items.collect())),
                }
            }
        }
        kinds.retain(|(_, items)| !items.is_empty());
        write_line(text, 0, if kinds.is_empty() { "resources: {}" } else { "resources:" });
        for (kind, items) in kinds {
            write_line(text, 2, &format!("{kind}:"));
            for (document, item) in items {
                let note = document.notes.get(&item);
                let source = self.expansion.sources.get(document.source);
                let display = source.map_or("?", |source| source.display.as_str());
                let line = source.map_or(0, |it| it.line(document.tree.span(item).start));
                let chain: Vec<&str> = document.origin.chain.iter().map(String::as_str).collect();
                let chain = if chain.is_empty() {
                    String::new()
                } else {
                    format!(", {}", chain.join(", "))
                };
                let words = format!("{display}:{line}{}{chain}", describe_note(note));
                write_line(text, 4, &format!("# {}", printable(&words)));
                self.print_item(document, item, (4, note), text);
            }
        }
    }

    /// Writes a resource or an edge with its origin.
    fn print_item(
        &self,
        document: &Document,
        item: usize,
        (indent, note): (usize, Option<&Note>),
        text: &mut String,
    ) {
        let mut body = String::new();
        let origin = self.origin(document, note);
        let is_map = matches!(document.tree.node(item), Some(Node::Map(_)));
        if let Some(origin) = &origin {
            write_line(&mut body, indent + 2, &format!("{ORIGIN}: {origin}"));
        }
        if is_map || origin.is_none() {
            print_node(&document.tree, item, indent + 2, &mut body);
        } else {
            let name = format!("name: {}", scalar_text(&document.tree, item));
            write_line(&mut body, indent + 2, &name);
        }
        write!(text, "{:indent$}- {}", "", body.trim_start()).unwrap_or_default();
    }

    /// Returns the origin of a resource or an edge, if it is not that of the first document.
    fn origin(&self, document: &Document, note: Option<&Note>) -> Option<String> {
        let mut keys = Vec::new();
        if !document.origin.instance.is_empty() {
            keys.push(format!("instance: {}", json(&document.origin.instance)));
        }
        let base = base_of(self.expansion, document);
        if base != self.base {
            keys.push(format!("base: {}", json(&base.display().to_string())));
        }
        if let Some(note) = note.filter(|note| note.inactive.is_some()) {
            keys.extend(note.item.as_ref().map(|item| format!("item: {}", json(item))));
            keys.extend(note.condition.as_ref().map(|text| format!("condition: {}", json(text))));
            keys.extend(note.inactive.as_ref().map(|it| format!("inactive: {}", reason(it))));
            let unknown: Vec<String> = note.unknown_fields.iter().map(|it| json(it)).collect();
            if !unknown.is_empty() {
                keys.push(format!("unknown_fields: [{}]", unknown.join(", ")));
            }
        }
        (!keys.is_empty()).then(|| format!("{{{}}}", keys.join(", ")))
    }
}

/// Returns the reason of an inactive resource as a map.
fn reason(inactive: &Inactivity) -> String {
    let values: Vec<String> = inactive
        .values
        .iter()
        .map(|(name, value)| format!("{}: {}", json(name), json(value)))
        .collect();
    let mut keys = vec![format!("condition: {}", json(&inactive.condition))];
    keys.extend(inactive.unknown_until.as_ref().map(|it| format!("unknown_until: {}", json(it))));
    keys.extend(inactive.at.as_ref().map(|at| format!("at: {}", json(at))));
    keys.push(format!("values: {{{}}}", values.join(", ")));
    format!("{{{}}}", keys.join(", "))
}

fn describe_note(note: Option<&Note>) -> String {
    let Some(note) = note else { return String::new() };
    let mut text = String::new();
    if let Some(item) = &note.item {
        write!(text, ", item {}", quoted(item)).unwrap_or_default();
    }
    if let Some(condition) = &note.condition {
        write!(text, ", when {}", quoted(condition)).unwrap_or_default();
    }
    if let Some(inactive) = &note.inactive {
        match &inactive.unknown_until {
            Some(until) => write!(text, ", unknown until {}", quoted(until)),
            None => write!(text, ", inactive: {}", quoted(&inactive.condition)),
        }
        .unwrap_or_default();
    }
    text
}

fn write_line(text: &mut String, indent: usize, line: &str) {
    writeln!(text, "{:indent$}{line}", "").unwrap_or_default();
}

/// Writes a node at the beginning of a line.
fn print_node(tree: &Tree<'static>, node: usize, indent: usize, text: &mut String) {
    match tree.node(node) {
        Some(Node::Map(pairs)) if !pairs.is_empty() => {
            for (key, value) in pairs {
                write!(text, "{:indent$}{}:", "", scalar_text(tree, *key)).unwrap_or_default();
                print_value(tree, *value, indent + 2, text);
            }
        }
        Some(Node::List(items)) if !items.is_empty() => {
            for item in items {
                let mut body = String::new();
                print_node(tree, *item, indent + 2, &mut body);
                write!(text, "{:indent$}- {}", "", body.trim_start()).unwrap_or_default();
            }
        }
        _ => write_line(text, indent, &scalar_text(tree, node)),
    }
}

/// Writes a value behind its key.
fn print_value(tree: &Tree<'static>, node: usize, indent: usize, text: &mut String) {
    let is_filled = match tree.node(node) {
        Some(Node::Map(pairs)) => !pairs.is_empty(),
        Some(Node::List(items)) => !items.is_empty(),
        _ => false,
    };
    if is_filled {
        text.push('\n');
        print_node(tree, node, indent, text);
    } else {
        writeln!(text, " {}", scalar_text(tree, node)).unwrap_or_default();
    }
}

/// Returns a scalar as YAML: plain if it was plain, else in double quotes. JSON strings are YAML strings.
fn scalar_text(tree: &Tree<'static>, node: usize) -> String {
    match tree.node(node) {
        Some(Node::Scalar(scalar)) if scalar.plain && !scalar.text.contains('\n') => {
            scalar.text.to_string()
        }
        Some(Node::Scalar(scalar)) => json(&scalar.text),
        Some(Node::List(_)) => "[]".to_owned(),
        Some(Node::Map(_)) => "{}".to_owned(),
        Some(Node::Alias(_)) | None => "null".to_owned(),
    }
}

/// Returns a string in double quotes; characters that a terminal would act on are escaped.
fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    printable_json(&quoted).into_owned()
}
