//! The metaparameters of a use: the defaults for each resource of its instance.

use crate::config::document::tree::{Node, Tree};
use crate::config::expand::values::push_value;
use crate::config::expand::{Context, Expander};
use crate::config::read::{Entry, Reader};
use crate::expressions::Value;
use std::collections::HashMap;
use std::sync::Arc;

impl Expander<'_> {
    /// Returns the metaparameters of a use. A wrong one is reported at the use, and not for each of its resources.
    pub(super) fn meta_of_use(
        &mut self,
        context: &Context,
        item: usize,
    ) -> Option<Vec<(String, Value)>> {
        let Some((key, node)) = context.tree().entry(item, "meta") else { return Some(Vec::new()) };
        if context.is_null(node) {
            return Some(Vec::new());
        }
        let mut values = Vec::new();
        let (mut is_wrong, mut pairs) = (false, Vec::new());
        let mut tree = Tree::default();
        for (key, value) in context.tree().entries(node).to_vec() {
            let name = context.text_of(key).unwrap_or_default().to_owned();
            // A metaparameter without a value has no effect.
            if context.is_null(value) {
                continue;
            }
            let Some(given) = self.node_value(context, value) else {
                is_wrong = true;
                continue;
            };
            let spans = [key, value].map(|node| context.tree().span(node));
            let key = tree.push_text(name.clone(), true, spans[0]);
            pairs.push((key, push_value(&mut tree, &given, spans[1])));
            values.push((name, given));
        }
        let map = match context.tree().node(node) {
            Some(Node::Map(_)) => Node::Map(pairs),
            Some(other) => other.clone(),
            None => return None,
        };
        let map = tree.push(map, context.tree().span(node));
        if !self.count_copies(context, node, tree.bytes()) {
            return None;
        }
        let errors = self.problems.errors();
        let notes = HashMap::new();
        let mut reader = Reader {
            source: &context.parsed.file,
            kinds: self.kinds,
            tree: &tree,
            origin: &context.origin,
            instance: Arc::default(),
            notes: &notes,
            item: context.item.clone(),
            problems: &mut *self.problems,
        };
        let entry = Entry { key: "meta", key_span: context.tree().span(key), value: map };
        reader.checked_meta(entry, "a use of a module");
        is_wrong |= self.problems.errors() > errors;
        self.is_complete &= !is_wrong;
        (!is_wrong).then_some(values)
    }

    /// Adds the metaparameters of a use to each resource that does not set them, in the documents from `first` on.
    pub(super) fn add_meta_defaults(
        &mut self,
        context: &Context,
        (item, first): (usize, usize),
        values: &[(String, Value)],
    ) -> Option<()> {
        let numbers = if values.is_empty() { 0..0 } else { first..self.documents.len() };
        for number in numbers {
            let Some(document) = self.documents.get(number) else { continue };
            let resources: Vec<usize> = document.notes.keys().copied().collect();
            for resource in resources {
                let Some(document) = self.documents.get_mut(number) else { continue };
                let before = document.tree.bytes();
                add_defaults(&mut document.tree, resource, values);
                let bytes = document.tree.bytes().saturating_sub(before);
                if !self.count_copies(context, item, bytes) {
                    return None;
                }
            }
        }
        Some(())
    }
}

/// Adds metaparameters to a resource that does not set them.
fn add_defaults(tree: &mut Tree<'static>, resource: usize, values: &[(String, Value)]) {
    let span = tree.span(resource);
    if !matches!(tree.node(resource), Some(Node::Map(_))) {
        return;
    }
    let own = tree.entry(resource, "meta").map(|(_, node)| node);
    let own_keys: Vec<String> = own.map_or_else(Vec::new, |own| {
        let key = |(key, _): &(usize, usize)| Some(tree.scalar(*key)?.text.to_string());
        tree.entries(own).iter().filter_map(key).collect()
    });
    let mut added = Vec::new();
    for (name, value) in values.iter().filter(|(name, _)| !own_keys.contains(name)) {
        let key = tree.push_text(name.clone(), true, span);
        added.push((key, push_value(tree, value, span)));
    }
    if let Some(own) = own {
        if let Some(Node::Map(pairs)) = tree.node_mut(own) {
            pairs.extend(added);
        }
    } else {
        let key = tree.push_text("meta".to_owned(), true, span);
        let map = tree.push(Node::Map(added), span);
        if let Some(Node::Map(pairs)) = tree.node_mut(resource) {
            pairs.push((key, map));
        }
    }
}
