//! Reads one YAML document.

use super::nodes::{Entry, Node, What};
use super::scalars::resolve_plain;
use super::tree::Tree;
use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};
use std::ops::Range;

/// The maximum depth.
const DEEPEST: usize = 200;

/// Reads a text; none if there is no value in it.
///
/// # Errors
///
/// Returns the first error of the syntax. Several documents are an error.
pub(super) fn read(text: &str) -> Result<Option<Node>, String> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
    };
    let mut builder = Builder { text, root: None, open: Vec::new(), documents: 0 };
    for next in Parser::new_from_str_with_options(text, options) {
        // The message may quote the text, which may be secret.
        let (event, span) =
            next.map_err(|error| format!("line {}: expected valid YAML", error.marker().line()))?;
        let range = span.byte_range().ok_or("the positions in the file are unknown")?;
        builder.take(event, range)?;
    }
    // The root of an empty document is an unwritten null.
    Ok(builder.root.filter(|root| !root.is_unwritten()))
}

/// A collection that is being read.
struct Open {
    node: Node,
    key: Option<(String, Range<usize>)>,
}

struct Builder<'t> {
    text: &'t str,
    root: Option<Node>,
    open: Vec<Open>,
    documents: usize,
}

fn lock(anchor: usize, is_tagged: bool) -> Option<&'static str> {
    match (anchor, is_tagged) {
        (0, false) => None,
        (0, true) => Some("a tag"),
        _ => Some("an anchor"),
    }
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err("expected one YAML document, found several".into());
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let locked = lock(anchor, tag.is_some());
                let tree = match style {
                    ScalarStyle::Plain => resolve_plain(&text),
                    _ => Tree::Text(text.into_owned()),
                };
                let span = if style == ScalarStyle::Plain && matches!(&tree, Tree::Null) {
                    let raw = self.text.get(span.clone()).unwrap_or_default();
                    if raw.trim().is_empty() { span.start..span.start } else { span }
                } else if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
                    self.header_start(&span).unwrap_or(span.start)..span.end
                } else {
                    span
                };
                self.place(Node { span, what: What::Scalar(tree), locked })?;
            }
            Event::Alias(_) => {
                let raw = self.text.get(span.clone()).unwrap_or_default().to_owned();
                let what = What::Scalar(Tree::Other(raw));
                self.place(Node { span, what, locked: Some("an alias") })?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                let is_flow = style == StructureStyle::Flow;
                let what = What::List { items: Vec::new(), is_flow };
                let node = Node { span, what, locked: lock(anchor, tag.is_some()) };
                self.open.push(Open { node, key: None });
            }
            Event::MappingStart(style, anchor, tag) => {
                let is_flow = style == StructureStyle::Flow;
                let what = What::Map { entries: Vec::new(), is_flow };
                let node = Node { span, what, locked: lock(anchor, tag.is_some()) };
                self.open.push(Open { node, key: None });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { mut node, .. }) = self.open.pop() {
                    self.close(&mut node, span);
                    self.place(node)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the position of the | or > in front of a text on lines of its own.
    fn header_start(&self, span: &Range<usize>) -> Option<usize> {
        let (_, key) = self.open.last()?.key.as_ref()?;
        let after = self.text.get(key.end..span.end)?.trim_start_matches([' ', '\t']);
        let after = after.strip_prefix(':')?.trim_start_matches([' ', '\t']);
        after.starts_with(['|', '>']).then(|| span.end - after.len())
    }

    /// Sets the end of a collection.
    fn close(&self, node: &mut Node, end: Range<usize>) {
        let (first, last) = match &node.what {
            What::List { is_flow: true, .. } | What::Map { is_flow: true, .. } => {
                node.span.end = end.end;
                return;
            }
            What::List { items, .. } => (None, items.last().map(|it| it.span.end)),
            What::Map { entries, .. } => {
                let last = entries.last().map(|it| self.end_of(it));
                (entries.first().map(|it| it.key_span.start), last)
            }
            What::Scalar(_) => return,
        };
        node.span.start = first.unwrap_or(node.span.start);
        node.span.end = last.unwrap_or(node.span.end).max(node.span.start);
    }

    /// Returns the end of an entry: that of its value, or the colon before an unwritten value.
    fn end_of(&self, entry: &Entry) -> usize {
        if entry.value.is_unwritten() {
            super::block::colon_end(self.text, entry).unwrap_or(entry.value.span.end)
        } else {
            entry.value.span.end
        }
    }

    /// Adds a complete node to its parent.
    fn place(&mut self, node: Node) -> Result<(), String> {
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut parent.node.what {
            What::List { items, .. } => items.push(node),
            What::Map { entries, .. } => match parent.key.take() {
                None => {
                    let raw = self.text.get(node.span.clone()).unwrap_or_default();
                    let key = match &node.what {
                        What::Scalar(Tree::Text(text)) => text.clone(),
                        // A number, a truth value or an alias as a key is known by its text.
                        What::Scalar(_) => raw.to_owned(),
                        _ => return Err("a key that is a list or a map cannot be read".into()),
                    };
                    parent.key = Some((key, node.span));
                }
                Some((key, key_span)) => entries.push(Entry { key, key_span, value: node }),
            },
            What::Scalar(_) => {}
        }
        Ok(())
    }
}
