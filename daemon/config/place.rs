//! Parts of a graph by number, and where they stand once the slow reader has looked.

use super::problem::Place;
use super::raw::Spots;
use super::source::Source;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
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
pub(super) struct Where {
    pub(super) file: usize,
    pub(super) part: Part,
}

/// Where everything stands; empty after the fast reader.
#[derive(Debug)]
pub(super) struct Atlas<'a> {
    pub(super) sources: &'a [Source],
    pub(super) spots: Vec<Option<Spots>>,
}

impl Atlas<'_> {
    /// The place of a part, with what it is.
    pub(super) fn labelled(&self, at: Where, label: impl AsRef<str>) -> Option<Place> {
        let label = Some(super::source::clean(label.as_ref()));
        self.place(at).map(|place| Place { label, ..place })
    }

    /// The place of a part.
    pub(super) fn place(&self, at: Where) -> Option<Place> {
        let source = self.sources.get(at.file)?;
        let spots = self.spots.get(at.file)?.as_ref()?;
        let of = |list: &[(&'static str, super::source::Span)], name| {
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
