//! The expanded graph as a file: `graph --expanded` prints it, and the reader takes it back into the documents of the
//! expansion. Such a file begins with `expanded: true`; nothing in it is an expression. The key `origin` of a resource
//! or an edge names its instance, its folder and the reason for which it is inactive.

use super::copy_nodes;
use crate::config::ast::Relation;
use crate::config::document::tree::{Node, Tree};
use crate::config::document::{Document, Export, Exports, Inactivity, ModuleEdge, Note, Origin};
use crate::config::problem::Problems;
use crate::config::source_file::SourceFile;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The first line of an expanded graph.
pub(super) const MARK: &str = "expanded: true";
/// The key of a resource or an edge for its origin.
pub(super) const ORIGIN: &str = "origin";
/// The keys at the top that only an expanded graph has.
pub(super) const OF_MODULES: [&str; 2] = ["module_edges", "exported"];

/// Returns true for the text of an expanded graph.
pub(in crate::config) fn is_expanded(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end);
    lines.find(|line| !line.starts_with('#') && !line.is_empty()) == Some(MARK)
}

/// A document that is being collected: its folder, its resources by kind, and its edges.
#[derive(Default)]
struct Part {
    base: PathBuf,
    document: Document,
    kinds: Vec<(String, Vec<usize>)>,
    edges: Vec<usize>,
}

/// Reads the documents of an expanded graph, each with the folder of its relative paths; none after a problem.
pub(in crate::config) fn read_expanded(
    source: &SourceFile,
    problems: &mut Problems,
) -> Option<Vec<(PathBuf, Document)>> {
    if !crate::config::read::refused_characters::check_characters(source, problems) {
        return None;
    }
    let tree = crate::config::document::parse::parse(source, problems)?.into_owned();
    let root = tree.root()?;
    let own_base = text_at(&tree, root, "base").map_or_else(|| source.base.clone(), PathBuf::from);
    let exports = read_exports(&tree, root);
    let mut reader = PartReader { tree, own_base, exports, parts: Vec::new() };
    let first = reader.part("", None);
    let mut top = Vec::new();
    for (key, value) in reader.tree.entries(root).to_vec() {
        let Some(name) = reader.tree.scalar(key).map(|it| it.text.to_string()) else { continue };
        match name.as_str() {
            "expanded" | "base" | "exported" => {}
            "resources" => reader.read_resources(value),
            "edges" => reader.read_edges(value),
            "module_edges" => reader.read_module_edges(value),
            _ => {
                let document = &mut reader.parts.get_mut(first)?.document;
                let key = copy_nodes(&reader.tree, key, &mut document.tree);
                top.push((key, copy_nodes(&reader.tree, value, &mut document.tree)));
            }
        }
    }
    let span = reader.tree.span(root);
    let mut parts = reader.parts.into_iter().enumerate().map(|(number, mut part)| {
        let mut pairs = if number == first { std::mem::take(&mut top) } else { Vec::new() };
        let tree = &mut part.document.tree;
        let mut kinds = Vec::new();
        for (kind, items) in part.kinds {
            let list = tree.push(Node::List(items), span);
            kinds.push((tree.push_text(kind, true, span), list));
        }
        let resources = tree.push(Node::Map(kinds), span);
        pairs.push((tree.push_text("resources".to_owned(), true, span), resources));
        let edges = tree.push(Node::List(part.edges), span);
        pairs.push((tree.push_text("edges".to_owned(), true, span), edges));
        let root = tree.push(Node::Map(pairs), span);
        tree.set_root(root);
        (part.base, part.document)
    });
    let parts: Vec<_> = parts.by_ref().collect();
    Some(parts)
}

fn text_at(tree: &Tree<'static>, node: usize, key: &str) -> Option<String> {
    let (_, value) = tree.entry(node, key)?;
    tree.scalar(value).map(|scalar| scalar.text.to_string())
}

/// Reads the exports by instance.
fn read_exports(tree: &Tree<'static>, root: usize) -> BTreeMap<String, Arc<Exports>> {
    let Some((_, exported)) = tree.entry(root, "exported") else { return BTreeMap::new() };
    let one = |item: &usize| {
        let target = tree.scalar(*item)?.text.as_ref();
        Some(Export { name: target.to_owned(), target: target.into(), at: None })
    };
    let all = |node: usize| match tree.node(node) {
        Some(Node::List(items)) => Arc::new(Exports::new(items.iter().filter_map(one).collect())),
        _ => Arc::default(),
    };
    let entry =
        |(key, value): &(usize, usize)| Some((tree.scalar(*key)?.text.to_string(), all(*value)));
    tree.entries(exported).iter().filter_map(entry).collect()
}

struct PartReader {
    tree: Tree<'static>,
    own_base: PathBuf,
    exports: BTreeMap<String, Arc<Exports>>,
    parts: Vec<Part>,
}

impl PartReader {
    /// Returns the number of the document with an instance and a folder.
    fn part(&mut self, instance: &str, base: Option<&str>) -> usize {
        let base = base.map_or_else(|| self.own_base.clone(), PathBuf::from);
        let is_same =
            |part: &Part| &*part.document.origin.instance == instance && part.base == base;
        if let Some(number) = self.parts.iter().position(is_same) {
            return number;
        }
        let exports = self.exports.get(instance).cloned().unwrap_or_default();
        let chain = if instance.is_empty() {
            Vec::new()
        } else {
            vec![format!("in the instance {instance}")]
        };
        let origin =
            Origin { instance: instance.into(), chain, module: instance.to_owned(), exports };
        // An instance without resources is not printed: a set of its resources is no mistake.
        let origin = Arc::new(origin);
        let document = Document { origin, loops_modules: true, ..Document::default() };
        self.parts.push(Part { base, document, ..Part::default() });
        self.parts.len() - 1
    }

    /// Returns the number of the document that an entry belongs to.
    fn part_of(&mut self, item: usize) -> usize {
        let origin = self.tree.entry(item, ORIGIN).map(|(_, origin)| origin);
        let text = |key: &str| origin.and_then(|origin| text_at(&self.tree, origin, key));
        let (instance, base) = (text("instance").unwrap_or_default(), text("base"));
        self.part(&instance, base.as_deref())
    }

    /// Copies an entry without its origin into its document.
    fn copy(&mut self, item: usize) -> (usize, usize) {
        let number = self.part_of(item);
        let Some(part) = self.parts.get_mut(number) else { return (number, 0) };
        let (tree, span) = (&mut part.document.tree, self.tree.span(item));
        if !matches!(self.tree.node(item), Some(Node::Map(_))) {
            return (number, copy_nodes(&self.tree, item, tree));
        }
        let mut pairs = Vec::new();
        for (key, value) in self.tree.entries(item) {
            let name = self.tree.scalar(*key).map(|it| it.text.as_ref()).unwrap_or_default();
            if name == ORIGIN {
                continue;
            }
            let copied = copy_nodes(&self.tree, *value, tree);
            if name == "recv" {
                let rendered: Vec<usize> = tree.entries(copied).iter().map(|pair| pair.1).collect();
                for value in rendered {
                    tree.mark_rendered(value);
                }
            }
            pairs.push((copy_nodes(&self.tree, *key, tree), copied));
        }
        (number, tree.push(Node::Map(pairs), span))
    }

    fn read_resources(&mut self, kinds: usize) {
        for (kind, list) in self.tree.entries(kinds).to_vec() {
            let Some(kind) = self.tree.scalar(kind).map(|it| it.text.to_string()) else { continue };
            let Some(Node::List(items)) = self.tree.node(list).cloned() else { continue };
            for item in items {
                let (number, copied) = self.copy(item);
                let note = self.read_note(item);
                let Some(part) = self.parts.get_mut(number) else { continue };
                part.document.notes.extend(note.map(|note| (copied, note)));
                match part.kinds.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, items)) => items.push(copied),
                    None => part.kinds.push((kind.clone(), vec![copied])),
                }
            }
        }
    }

    /// Reads the facts about a resource that are not part of its declaration.
    fn read_note(&self, item: usize) -> Option<Note> {
        let (_, origin) = self.tree.entry(item, ORIGIN)?;
        let text = |key: &str| text_at(&self.tree, origin, key);
        let inactive = self.tree.entry(origin, "inactive").map(|(_, node)| {
            let text = |key: &str| text_at(&self.tree, node, key);
            let values = self.tree.entry(node, "values").map(|(_, values)| {
                let one = |(key, value): &(usize, usize)| {
                    let (key, value) = (self.tree.scalar(*key)?, self.tree.scalar(*value)?);
                    Some((key.text.to_string(), value.text.to_string()))
                };
                self.tree.entries(values).iter().filter_map(one).collect()
            });
            Arc::new(Inactivity {
                condition: text("condition").unwrap_or_default().into(),
                values: values.unwrap_or_default(),
                unknown_until: text("unknown_until"),
                at: text("at"),
                waiting: Arc::default(),
            })
        });
        let unknown = self.tree.entry(origin, "unknown_fields").map(|(_, list)| list);
        let unknown = match unknown.and_then(|list| self.tree.node(list)) {
            Some(Node::List(items)) => items.as_slice(),
            _ => &[],
        };
        let unknown = unknown.iter().filter_map(|item| self.tree.scalar(*item));
        let unknown_fields = unknown.map(|field| field.text.as_ref().into()).collect();
        let (key, condition) = (text("item"), text("condition"));
        let (item, condition) = (key.map(Arc::from), condition.map(Arc::from));
        Some(Note { item, condition, inactive, unknown_fields })
    }

    fn read_edges(&mut self, edges: usize) {
        let Some(Node::List(items)) = self.tree.node(edges).cloned() else { return };
        for item in items {
            let (number, copied) = self.copy(item);
            if let Some(part) = self.parts.get_mut(number) {
                part.edges.push(copied);
            }
        }
    }

    fn read_module_edges(&mut self, edges: usize) {
        let Some(Node::List(items)) = self.tree.node(edges).cloned() else { return };
        for item in items {
            let number = self.part_of(item);
            let text = |key: &str| text_at(&self.tree, item, key);
            let relation = text("relation").as_deref().and_then(Relation::parse);
            let (Some(relation), Some(instance), Some(target)) =
                (relation, text("of"), text("target"))
            else {
                continue;
            };
            let span = self.tree.span(item);
            if let Some(part) = self.parts.get_mut(number) {
                let edge = ModuleEdge { instance: instance.into(), relation, target, span };
                part.document.module_edges.push(edge);
            }
        }
    }
}
