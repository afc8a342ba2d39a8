//! Parts of a graph by number, and where they stand once the slow reader has looked.

use super::Place;
use crate::config::ast::Spots;
use crate::config::source_file::Source;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Part {
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
pub(in crate::config) struct Where {
    pub(in crate::config) file: usize,
    pub(in crate::config) part: Part,
}

/// Where everything stands; empty after the fast reader.
#[derive(Debug)]
pub(in crate::config) struct Atlas<'a> {
    pub(in crate::config) sources: &'a [Source],
    pub(in crate::config) spots: Vec<Option<Spots>>,
}

impl Atlas<'_> {
    /// The place of a part, with what it is.
    pub(in crate::config) fn labelled(&self, at: Where, label: impl AsRef<str>) -> Option<Place> {
        let label = Some(crate::config::source_file::clean(label.as_ref()));
        self.place(at).map(|place| Place { label, ..place })
    }

    /// The place of a part.
    pub(in crate::config) fn place(&self, at: Where) -> Option<Place> {
        let source = self.sources.get(at.file)?;
        let spots = self.spots.get(at.file)?.as_ref()?;
        let of = |list: &[(&'static str, crate::config::source_file::Span)], name| {
            list.iter().find(|(known, _)| *known == name).map(|(_, span)| *span)
        };
        let span = match at.part {
            Part::Graph => spots.name,
            Part::Name(index) => spots.resources.get(index).map(|spots| spots.name),
            Part::Field(index, name) => spots
                .resources
                .get(index)
                .map(|spots| of(&spots.fields, name).unwrap_or(spots.name)),
            Part::Meta(index, name) => {
                spots.resources.get(index).map(|spots| of(&spots.meta, name).unwrap_or(spots.name))
            }
            Part::Semaphore(index, number) => {
                spots.resources.get(index).and_then(|spots| spots.semaphores.get(number).copied())
            }
            Part::Link(index, link) => {
                spots.resources.get(index).and_then(|spots| spots.links.get(link).copied())
            }
            Part::Receive(index, number) => {
                spots.resources.get(index).and_then(|spots| spots.receives.get(number).copied())
            }
            Part::Secret(index) => spots.secrets.get(index).copied(),
            Part::From(index) => spots.edges.get(index).map(|spots| spots.from),
            Part::To(index) => spots.edges.get(index).map(|spots| spots.to),
        };
        Some(span.map_or_else(|| source.whole(), |span| source.place(span)))
    }
}
