//! Fields in their map form: `validate: {args: [nginx, -t], in_place: true}` gives `validate` and `in_place`.

use super::{Entry, Reader};
use crate::config::document::tree::Node;
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use std::fmt::Display;
use steadfast_resources::KindSpec;

impl<'t> Reader<'t, '_> {
    /// Replaces each field in its map form by the fields that the parts give. Problems are reported.
    pub(super) fn spread_parts(
        &mut self,
        spec: &'static KindSpec,
        entries: Vec<Entry<'t>>,
        what: impl Display,
    ) -> Vec<Entry<'t>> {
        if spec.fields.iter().all(|field| field.parts.is_empty()) {
            return entries;
        }
        let mut spread = Vec::with_capacity(entries.len() + 1);
        for entry in &entries {
            let field = spec.fields.iter().find(|field| field.name == entry.key);
            let parts = field.map_or(&[][..], |field| field.parts);
            let is_map = matches!(self.tree.node(entry.value), Some(Node::Map(_)));
            let is_secret = is_map && self.secret_name(entry.value).is_some();
            if parts.is_empty() || !is_map || is_secret {
                spread.push(*entry);
                continue;
            }
            let name = format!("`{}` of {what}", entry.key);
            for part in self.map(entry.value, &name, "a map").unwrap_or_default() {
                let found = parts.iter().find(|(key, _)| *key == part.key);
                let problem = match found {
                    None => {
                        let keys: Vec<&str> = parts.iter().map(|(key, _)| *key).collect();
                        let what = format!("unknown key `{}` in {name}", quoted(part.key));
                        let hint = format!("valid keys: {}", keys.join(", "));
                        Problem::new(Code::UnknownKey, what).hint(hint)
                    }
                    Some((_, field))
                        if entries.iter().any(|it| it.key != entry.key && it.key == *field) =>
                    {
                        let what = format!("`{field}` of {} is given twice", entry.key);
                        Problem::new(Code::DuplicateKey, what).hint("keep one of them")
                    }
                    Some((key, _)) if *key == "args" && !self.is_list(part.value) => {
                        let what = format!("`args` in {name} should be a list");
                        Problem::new(Code::Type, what).hint("for example args: [nginx, -t]")
                    }
                    Some((_, field)) => {
                        spread.push(Entry { key: field, ..part });
                        continue;
                    }
                };
                let place = self.place_of(part.key_span);
                self.say(problem.at(Some(place)));
            }
        }
        spread
    }

    fn is_list(&self, id: usize) -> bool {
        matches!(self.tree.node(id), Some(Node::List(_)))
    }
}
