//! The nodes of a document, each with its position.

use crate::config::scalar::Scalar;
use crate::config::source_file::Span;
use std::borrow::Cow;
use std::collections::HashSet;

/// The nodes of a document.
#[derive(Clone, Debug, Default)]
pub(in crate::config) struct Tree<'t> {
    nodes: Vec<(Node<'t>, Span)>,
    root: Option<usize>,
    /// The sources of received values that rendered templates make.
    rendered: HashSet<usize>,
    /// The bytes of all nodes that were added.
    bytes: usize,
}

/// A node; children are indexes of nodes.
#[derive(Clone, Debug)]
pub(in crate::config) enum Node<'t> {
    Scalar(Scalar<'t>),
    List(Vec<usize>),
    Map(Vec<(usize, usize)>),
    Alias(usize),
}

/// The bytes that a node takes besides its text.
const BYTES_OF_NODE: usize = 64;

impl<'t> Tree<'t> {
    /// Returns the root node of the document, if there is one.
    pub(in crate::config) const fn root(&self) -> Option<usize> {
        self.root
    }

    /// Sets the root node.
    pub(in crate::config) const fn set_root(&mut self, id: usize) {
        self.root = Some(id);
    }

    /// Adds a node, and returns its index.
    pub(in crate::config) fn push(&mut self, node: Node<'t>, span: Span) -> usize {
        let text = if let Node::Scalar(scalar) = &node { scalar.text.len() } else { 0 };
        self.bytes += BYTES_OF_NODE + text;
        self.nodes.push((node, span));
        self.nodes.len() - 1
    }

    /// Returns the bytes of all nodes.
    pub(in crate::config) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a scalar, and returns its index.
    pub(in crate::config) fn push_text(&mut self, text: String, plain: bool, span: Span) -> usize {
        self.push(Node::Scalar(Scalar { text: Cow::Owned(text), plain }), span)
    }

    /// Marks the source of a received value that a rendered template makes.
    pub(in crate::config) fn mark_rendered(&mut self, id: usize) {
        self.rendered.insert(id);
    }

    /// Returns true for the source of a received value that a rendered template makes.
    pub(in crate::config) fn is_rendered(&self, id: usize) -> bool {
        self.rendered.contains(&id)
    }

    /// Returns a node; an alias is followed.
    pub(in crate::config) fn node(&self, id: usize) -> Option<&Node<'t>> {
        match self.nodes.get(id) {
            Some((Node::Alias(target), _)) => self.nodes.get(*target).map(|(node, _)| node),
            found => found.map(|(node, _)| node),
        }
    }

    /// Returns a node for changes; an alias is not followed.
    pub(in crate::config) fn node_mut(&mut self, id: usize) -> Option<&mut Node<'t>> {
        self.nodes.get_mut(id).map(|(node, _)| node)
    }

    /// Returns the position of a node.
    pub(in crate::config) fn span(&self, id: usize) -> Span {
        self.nodes.get(id).map(|(_, span)| *span).unwrap_or_default()
    }

    /// Returns the scalar at a node.
    pub(in crate::config) fn scalar(&self, id: usize) -> Option<&Scalar<'t>> {
        match self.node(id) {
            Some(Node::Scalar(scalar)) => Some(scalar),
            _ => None,
        }
    }

    /// Returns the entries of a map; empty for other nodes.
    pub(in crate::config) fn entries(&self, id: usize) -> &[(usize, usize)] {
        match self.node(id) {
            Some(Node::Map(pairs)) => pairs,
            _ => &[],
        }
    }

    /// Returns the key and the value of an entry of a map, by the text of the key.
    pub(in crate::config) fn entry(&self, id: usize, key: &str) -> Option<(usize, usize)> {
        let is_key = |at: usize| self.scalar(at).is_some_and(|scalar| scalar.text == key);
        self.entries(id).iter().copied().find(|(at, _)| is_key(*at))
    }

    /// Copies the tree, so that it no longer borrows from its text.
    pub(in crate::config) fn into_owned(self) -> Tree<'static> {
        let owned = |(node, span): (Node<'t>, Span)| {
            let node = match node {
                Node::Scalar(Scalar { text, plain }) => {
                    Node::Scalar(Scalar { text: Cow::Owned(text.into_owned()), plain })
                }
                Node::List(items) => Node::List(items),
                Node::Map(pairs) => Node::Map(pairs),
                Node::Alias(target) => Node::Alias(target),
            };
            (node, span)
        };
        let nodes = self.nodes.into_iter().map(owned).collect();
        Tree { nodes, root: self.root, rendered: self.rendered, bytes: self.bytes }
    }
}
