//! The graph of the checked vertices: the last step before a selection.

use super::edges::DraftEdge;
use super::values::RECEIVED;
use super::{DraftVertex, Validator};
use crate::config::ast::Relation;
use crate::config::source_file::Role;
use crate::config::{Link, LoadedGraph, UsedInputs, Vertex, hash_of};
use std::collections::HashSet;
use std::sync::Arc;

impl Validator<'_> {
    /// Returns the graph if every vertex is valid.
    pub(super) fn finish(self, ties: &[DraftEdge]) -> Option<LoadedGraph> {
        let (atlas, sources) = (&self.atlas, self.atlas.sources);
        let source_of = |file: usize| atlas.source_of(file);
        let inactive = Self::list_inactive(self.inactive, &self.numbers, &source_of);
        let none: Arc<[Arc<str>]> = Arc::default();
        let senders = senders_of(&self.vertices);
        let needed = needed_by_declared_edges(&self.vertices, ties);
        let vertices: Option<Vec<Vertex>> = self
            .vertices
            .into_iter()
            .enumerate()
            .map(|(number, candidate)| {
                let is_sender = senders.contains(&candidate.identity);
                Some(Vertex {
                    identity: candidate.identity,
                    resource: candidate.resource?,
                    recipe: candidate.recipe,
                    definition: candidate.definition,
                    meta: candidate.meta,
                    rewatch: candidate.rewatch,
                    // A member of a group sends nothing.
                    autogroup: candidate.autogroup && !is_sender,
                    delete: candidate.delete,
                    protect: candidate.protect,
                    removes: false,
                    failure_blocks: needed.contains(&number),
                    aliases: candidate.aliases,
                    after: Arc::clone(&none),
                    notifies: Arc::clone(&none),
                    labels: candidate.labels,
                    place: (atlas.source_of(candidate.at.file), candidate.line),
                })
            })
            .collect();
        let (usual, windows) = self.metas.finish();
        let link = |tie: &DraftEdge| Link { from: tie.from, to: tie.to, notify: tie.notify };
        Some(LoadedGraph {
            name: String::new(),
            comment: None,
            vertices: vertices?,
            inactive,
            edges: ties.iter().map(link).collect(),
            semaphores: self.semaphores.finish(),
            windows,
            usual,
            origins: self.origins,
            warnings: Vec::new(),
            files: sources
                .iter()
                .filter(|source| source.role != Role::Values)
                .map(|source| source.path.clone())
                .collect(),
            hash: hash_of(sources),
            text_bytes: sources.iter().map(|source| source.text.len()).sum(),
            texts: Vec::new(),
            collections: self.collections.into_iter().collect(),
            vanished: self.vanished,
            used: UsedInputs::default(),
            kinds: self.kinds.clone(),
            sought: Vec::new(),
        })
    }
}

/// Returns the resources from which others receive values.
fn senders_of(vertices: &[DraftVertex]) -> HashSet<Arc<str>> {
    let recipes = vertices.iter().filter_map(|vertex| vertex.recipe.as_ref());
    let senders = recipes.flat_map(|recipe| &recipe.origins).filter_map(|origin| match origin {
        steadfast_resources::Origin::Sent { by, .. } => Some(Arc::clone(by)),
        steadfast_resources::Origin::Secret(_) => None,
    });
    senders.collect()
}

/// Returns the vertices that others need by a declared edge or a received value. The edges from a probe to the users
/// and receivers of its answer count as automatic: they go on with the last answer.
fn needed_by_declared_edges(vertices: &[DraftVertex], ties: &[DraftEdge]) -> HashSet<usize> {
    let is_probe = |number: usize| {
        let resource = vertices.get(number).and_then(|vertex| vertex.resource.as_ref());
        resource.is_some_and(|resource| resource.sends_answers())
    };
    let is_declared = |tie: &&DraftEdge| {
        let is_of_answer = [Relation::After.key(), RECEIVED].contains(&tie.key);
        tie.because.is_none() && !(is_of_answer && is_probe(tie.from))
    };
    ties.iter().filter(is_declared).map(|tie| tie.from).collect()
}
