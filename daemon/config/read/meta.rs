//! The reader's walk over `meta`: the metaparameters of a resource, and the defaults of others.

use super::{Entry, Reader};
use crate::config::ast::{FieldValues, Relation, ResourceSpots};
use crate::config::checks::metaparams::{META, Metas};
use crate::config::checks::semaphores::{Refused, Semaphores};
use crate::config::document::tree::Node;
use crate::config::problem::Problem;
use crate::config::problem::code::Code;
use crate::config::problem::location::{Element, Location};
use crate::config::source_file::Span;
use std::collections::HashSet;
use std::fmt::Display;

/// Returns the advice for a key that stands beside `meta` and not below it.
fn key_beside_meta(key: &str) -> Option<String> {
    let of_resource = ["when", "for_each", "recv", "labels", "aliases", "name"];
    let is_key = of_resource.contains(&key) || Relation::parse(key).is_some();
    is_key.then(|| format!("put `{key}` beside `meta`, not below it"))
}

impl<'t> Reader<'t, '_> {
    /// Reads metaparameters; their values are not checked.
    pub(in crate::config) fn meta(
        &mut self,
        entry: Entry<'t>,
        what: impl Display,
        spots: &mut ResourceSpots,
    ) -> Option<FieldValues> {
        if self.is_null(entry.value) {
            return None;
        }
        let what = format!("`meta` of {what}");
        let known: Vec<&str> = META.iter().map(|field| field.name).collect();
        let mut given = FieldValues::default();
        for entry in self.map(entry.value, &what, "a map of metaparameters")? {
            match META.iter().find(|field| field.name == entry.key) {
                Some(field) => {
                    spots.meta.push((field.name, self.value_span(entry)));
                    if let Some(value) = self.value(field, entry, &what) {
                        given.insert(field, value);
                    }
                    if field.name == "sema" {
                        spots.semaphores = self.item_spans(entry);
                    }
                }
                None => match key_beside_meta(entry.key) {
                    Some(hint) => {
                        let what = format!("unknown key `{}` in {what}", entry.key);
                        let place = Some(self.place_of(entry.key_span));
                        self.say(Problem::new(Code::UnknownKey, what).hint(hint).at(place));
                    }
                    None => self.unknown(entry.key, entry.key_span, &what, &known),
                },
            }
        }
        Some(given)
    }

    /// Reads metaparameters, and checks their values as those of a resource.
    pub(in crate::config) fn checked_meta(
        &mut self,
        entry: Entry<'t>,
        what: impl Display,
    ) -> Option<FieldValues> {
        let mut spots = ResourceSpots::default();
        let given = self.meta(entry, what, &mut spots)?;
        let (mut semaphores, mut own, mut said) =
            (Semaphores::default(), HashSet::new(), Vec::new());
        let at = Location { file: 0, part: Element::Name(0) };
        let mut take = |text: &str, _| match semaphores.take(text, at, &mut own) {
            Ok(id) => Some(id),
            Err(Refused::Wrong(problem) | Refused::Conflict(problem, _)) => {
                said.push(("sema", problem));
                None
            }
        };
        let mut wrong = Vec::new();
        let copy = Some(Box::new(given.clone()));
        Metas::new(false, None, None).make(("", copy), &mut take, &mut |name, problem| {
            wrong.push((name, problem));
        });
        for (name, problem) in wrong.into_iter().chain(said) {
            let span = spots.meta.iter().find(|(key, _)| *key == name).map(|(_, span)| *span);
            let place = self.place_of(span.unwrap_or_else(|| self.value_span(entry)));
            self.say(problem.at(Some(place)));
        }
        Some(given)
    }

    /// Returns the positions of the items of a list, or of the single value in place of a list.
    fn item_spans(&self, entry: Entry<'t>) -> Vec<Span> {
        match self.tree.node(entry.value) {
            Some(Node::List(items)) => {
                let given = items.iter().filter(|item| !self.is_null(**item));
                given.map(|item| self.tree.span(*item)).collect()
            }
            _ => vec![self.value_span(entry)],
        }
    }
}
