//! Values with their positions in a text.

use super::tree::Tree;
use std::ops::Range;

/// A value with its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The bytes of the value. A collection in block style ends with its last value.
    pub(crate) span: Range<usize>,
    pub(crate) what: What,
    /// The reason why the value must not be changed: an anchor, an alias, a tag.
    pub(crate) locked: Option<&'static str>,
}

/// The sort of a value.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Scalar(Tree),
    List { items: Vec<Node>, is_flow: bool },
    Map { entries: Vec<Entry>, is_flow: bool },
}

/// An entry of a map.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// The bytes of the key, with its quotes.
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Node,
}

impl Node {
    /// Returns the value without positions.
    pub(crate) fn to_tree(&self) -> Tree {
        match &self.what {
            What::Scalar(tree) => tree.clone(),
            What::List { items, .. } => Tree::List(items.iter().map(Self::to_tree).collect()),
            What::Map { entries, .. } => {
                let entry = |entry: &Entry| (entry.key.clone(), entry.value.to_tree());
                Tree::Map(entries.iter().map(entry).collect())
            }
        }
    }

    /// Returns true for a value that is not written at all, as YAML's null behind a colon.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.span.is_empty()
    }

    /// Returns true if the value is no collection, or one in brackets.
    pub(crate) fn is_inline(&self) -> bool {
        match &self.what {
            What::Scalar(_) => true,
            What::List { is_flow, .. } | What::Map { is_flow, .. } => *is_flow,
        }
    }
}
