//! The expanded graph as YAML, with the origin of each part in comments.

use super::Expansion;
use crate::config::document::tree::{Node, Tree};
use crate::config::document::{Document, Note};
use crate::config::problem::quoted;
use std::fmt::Write as _;

/// Writes all documents of an expansion.
pub(in crate::config) fn print_expansion(expansion: &Expansion) -> String {
    let mut text = String::new();
    for document in &expansion.documents {
        print_document(expansion, document, &mut text);
    }
    text
}

fn print_document(expansion: &Expansion, document: &Document, text: &mut String) {
    let source = expansion.sources.get(document.source);
    let display = source.map_or("?", |source| source.display.as_str());
    write_line(text, 0, &format!("# {display}"));
    if !document.origin.instance.is_empty() {
        write_line(text, 0, &format!("# instance: {}", document.origin.instance));
    }
    for used in &document.origin.chain {
        write_line(text, 0, &format!("# {used}"));
    }
    let Some(root) = document.tree.root() else { return };
    for (key, value) in document.tree.entries(root) {
        let name = scalar_text(&document.tree, *key);
        if name == "resources" {
            write_line(text, 0, "resources:");
            for (kind, list) in document.tree.entries(*value) {
                write_line(text, 2, &format!("{}:", scalar_text(&document.tree, *kind)));
                let Some(Node::List(items)) = document.tree.node(*list) else { continue };
                for item in items {
                    let line = source.map_or(0, |it| it.line(document.tree.span(*item).start));
                    print_resource(document, *item, &format!("{display}:{line}"), text);
                }
            }
        } else {
            write!(text, "{name}:").unwrap_or_default();
            print_value(&document.tree, *value, 2, text);
        }
    }
}

/// Prints one resource below a comment with its place; an inactive one is a comment as a whole.
fn print_resource(document: &Document, item: usize, place: &str, text: &mut String) {
    let note = document.notes.get(&item);
    write_line(text, 4, &format!("# {place}{}", describe_note(note)));
    let mut body = String::new();
    print_node(&document.tree, item, 6, &mut body);
    let body = body.trim_start();
    if note.is_some_and(|note| note.inactive.is_some()) {
        let body = body.trim_end().replace("\n      ", "\n    #   ");
        writeln!(text, "    # - {body}").unwrap_or_default();
    } else {
        write!(text, "    - {body}").unwrap_or_default();
    }
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
        Some(Node::Scalar(scalar)) if scalar.plain => scalar.text.to_string(),
        Some(Node::Scalar(scalar)) => {
            serde_json::to_string(scalar.text.as_ref()).unwrap_or_default()
        }
        Some(Node::List(_)) => "[]".to_owned(),
        Some(Node::Map(_)) => "{}".to_owned(),
        Some(Node::Alias(_)) | None => "null".to_owned(),
    }
}
