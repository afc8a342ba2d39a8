//! Fields in their map form: `validate: {args: [nginx, -t], in_place: true}`.

use crate::config::document::tree::{Node, Tree};
use crate::config::expand::outcome::{AllOutcomes, Outcome};
use crate::config::expand::{Context, Expander, copy_nodes};
use steadfast_resources::{FieldSpec, KindSpec};

impl Expander<'_> {
    /// Expands a field in its map form: each part as the field that it gives.
    pub(super) fn expand_parts(
        &mut self,
        context: &Context,
        (spec, field, node): (&'static KindSpec, &'static FieldSpec, usize),
        into: &mut Tree<'static>,
    ) -> Outcome<usize> {
        let mut all = AllOutcomes::default();
        for (key, value) in context.tree().entries(node).to_vec() {
            let name = context.text_of(key).unwrap_or_default();
            let part = field.parts.iter().find(|(part, _)| *part == name).map(|(_, of)| *of);
            let part = part.and_then(|part| spec.fields.iter().find(|field| field.name == part));
            let value = match part {
                Some(part) => self.expand_value(context, (value, part), into),
                // The reader reports unknown keys.
                None => Outcome::Known(copy_nodes(context.tree(), value, into)),
            };
            all.add(value.map(|value| (copy_nodes(context.tree(), key, into), value)));
        }
        all.finish().map(|pairs| into.push(Node::Map(pairs), context.tree().span(node)))
    }
}

/// Returns true for a field in its map form, which is no secret.
pub(super) fn is_map_form(context: &Context, field: &FieldSpec, node: usize) -> bool {
    let keys = context.tree().entries(node).iter();
    let is_source = |(key, _): &(usize, usize)| {
        context.text_of(*key).is_some_and(|key| key == "secret" || key == "from")
    };
    let is_map = matches!(context.tree().node(node), Some(Node::Map(_)));
    is_map && !field.parts.is_empty() && !keys.into_iter().any(is_source)
}
