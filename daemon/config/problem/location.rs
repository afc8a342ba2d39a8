//! Locations: parts of a graph by index, and their positions.

use super::Place;
use crate::config::ast::Spans;
use crate::config::document::{Document, Origin};
use crate::config::read::chain_of;
use crate::config::source_file::SourceFile;
use std::sync::Arc;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Element {
    Graph,
    Name(usize),
    Field(usize, &'static str),
    Meta(usize, &'static str),
    Semaphore(usize, usize),
    Link(usize, usize),
    ModuleEdge(usize),
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

/// The source file and the origin of a document.
#[derive(Clone, Debug, Default)]
pub(in crate::config) struct DocumentInfo {
    /// The index of the source file.
    pub(in crate::config) source: usize,
    /// The origin.
    pub(in crate::config) origin: Arc<Origin>,
    /// True if a loop of the document uses a module.
    pub(in crate::config) loops_modules: bool,
}

impl DocumentInfo {
    /// Returns the information about a document.
    pub(in crate::config) fn of(document: &Document) -> Self {
        let origin = Arc::clone(&document.origin);
        Self { source: document.source, origin, loops_modules: document.loops_modules }
    }
}

/// The positions of all parts, by file.
#[derive(Debug)]
pub(in crate::config) struct SourceMap<'a> {
    pub(in crate::config) sources: &'a [Arc<SourceFile>],
    /// The documents; parts of the graph are numbered by document.
    pub(in crate::config) documents: &'a [DocumentInfo],
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
        let document = self.documents.get(at.file)?;
        let source = self.sources.get(document.source)?;
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
            Element::ModuleEdge(index) => spots.module_edges.get(index).copied(),
            Element::Secret(index) => spots.secrets.get(index).copied(),
            Element::From(index) => spots.edges.get(index).map(|spots| spots.from),
            Element::To(index) => spots.edges.get(index).map(|spots| spots.to),
        };
        let mut place = span.map_or_else(|| source.whole(), |span| source.place(span));
        let resource = match at.part {
            Element::Name(index)
            | Element::Field(index, _)
            | Element::Meta(index, _)
            | Element::Semaphore(index, _)
            | Element::Link(index, _)
            | Element::Receive(index, _) => spots.resources.get(index),
            _ => None,
        };
        place.chain = chain_of(&document.origin, resource.and_then(|spots| spots.item.as_deref()));
        Some(place)
    }

    /// Returns the index of the source file of a document; no valid index for resources that have no file.
    pub(in crate::config) fn source_of(&self, file: usize) -> usize {
        let unknown = if self.documents.is_empty() { file } else { usize::MAX };
        self.documents.get(file).map_or(unknown, |document| document.source)
    }
}
