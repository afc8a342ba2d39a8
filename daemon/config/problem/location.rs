//! Locations: parts of a graph by index, and their positions if the slow reader has run.

use super::Place;
use crate::config::ast::Spans;
use crate::config::source_file::SourceFile;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Element {
    Graph,
    Name(usize),
    Field(usize, &'static str),
    Meta(usize, &'static str),
    Semaphore(usize, usize),
    Link(usize, usize),
    Receive(usize, usize),
    Secret(usize),
    From(usize),
    To(usize),
}

/// A part of one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Location {
    pub(in crate::config) file: usize,
    pub(in crate::config) part: Element,
}

/// The positions of all parts; empty after the fast reader.
#[derive(Debug)]
pub(in crate::config) struct SourceMap<'a> {
    pub(in crate::config) sources: &'a [SourceFile],
    pub(in crate::config) spots: Vec<Option<Spans>>,
}

impl SourceMap<'_> {
    /// Returns the place of a part, with a label.
    pub(in crate::config) fn labelled(
        &self,
        at: Location,
        label: impl AsRef<str>,
    ) -> Option<Place> {
        let label = Some(crate::config::source_file::clean(label.as_ref()));
        self.place(at).map(|place| Place { label, ..place })
    }

    /// Returns the place of a part.
    pub(in crate::config) fn place(&self, at: Location) -> Option<Place> {
        let source = self.sources.get(at.file)?;
        let spots = self.spots.get(at.file)?.as_ref()?;
        let of = |list: &[(&'static str, crate::config::source_file::Span)], name| {
            list.iter().find(|(known, _)| *known == name).map(|(_, span)| *span)
        };
        let span = match at.part {
            Element::Graph => spots.name,
            Element::Name(index) => spots.resources.get(index).map(|spots| spots.name),
            Element::Field(index, name) => spots
                .resources
                .get(index)
                .map(|spots| of(&spots.fields, name).unwrap_or(spots.name)),
            Element::Meta(index, name) => {
                spots.resources.get(index).map(|spots| of(&spots.meta, name).unwrap_or(spots.name))
            }
            Element::Semaphore(index, number) => {
                spots.resources.get(index).and_then(|spots| spots.semaphores.get(number).copied())
            }
            Element::Link(index, link) => {
                spots.resources.get(index).and_then(|spots| spots.links.get(link).copied())
            }
            Element::Receive(index, number) => {
                spots.resources.get(index).and_then(|spots| spots.receives.get(number).copied())
            }
            Element::Secret(index) => spots.secrets.get(index).copied(),
            Element::From(index) => spots.edges.get(index).map(|spots| spots.from),
            Element::To(index) => spots.edges.get(index).map(|spots| spots.to),
        };
        Some(span.map_or_else(|| source.whole(), |span| source.place(span)))
    }
}
