//! Trees: a vertex that waits for all below a directory waits in each directory of it, and where one comes or goes, so does the
//! place where it waits.
//!
//! A directory is listed only after it is watched, so that whatever comes into it later is reported; what came before is found by
//! the check that follows.

use super::ground::Identity;
use super::place::remove_one;
use super::table::{Route, RouteId, Table, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_engine::VertexId;

/// The directories in which a vertex waits for the sake of a tree, each with those right below it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    below: BTreeMap<RouteId, BTreeSet<RouteId>>,
}

impl Table {
    /// Notes that a vertex, which waits in this directory already, waits in all below it.
    pub(super) fn plant(&mut self, vertex: VertexId, path: &Path, work: &mut Work) {
        let route = self.route(&super::place::normal(path), work);
        self.trees.entry(vertex).or_default().below.entry(route).or_default();
        work.grow.insert((vertex, route));
    }

    /// The vertex waits in no tree any more.
    pub(super) fn fell(&mut self, vertex: VertexId, work: &mut Work) {
        work.grow.retain(|(other, _)| *other != vertex);
        let Some(tree) = self.trees.remove(&vertex) else { return };
        // The top of each is among its other places.
        for route in tree.below.values().flatten() {
            self.leave(vertex, *route, work);
        }
    }

    fn leave(&mut self, vertex: VertexId, route: RouteId, work: &mut Work) {
        if let Some(known) = self.routes.get_mut(&route) {
            remove_one(&mut known.below, &vertex);
            work.emptied.insert(route);
        }
    }

    /// Something came or went in the directory at the end of a route: trees through it have to be looked at.
    pub(super) fn grow(&self, id: RouteId, route: &Route, work: &mut Work) {
        for vertex in &route.below {
            let is_of = |tree: &Tree| tree.below.contains_key(&id);
            if self.trees.get(vertex).is_some_and(is_of) {
                work.grow.insert((*vertex, id));
            }
        }
    }

    /// The same for all trees.
    pub(super) fn grow_all(&self, work: &mut Work) {
        for (vertex, tree) in &self.trees {
            work.grow.extend(tree.below.keys().map(|route| (*vertex, *route)));
        }
    }

    /// Why some directory of a tree cannot be watched.
    pub(super) fn failure_in_tree(&self, vertex: VertexId) -> Option<String> {
        let tree = self.trees.get(&vertex)?;
        let failed = |route| self.routes.get(route)?.walked.failed.as_ref();
        tree.below.keys().find_map(failed).map(ToString::to_string)
    }

    /// Where a route ends: the directory's path and which one it is.
    pub(super) fn end_of(&self, route: RouteId) -> Option<(PathBuf, Identity)> {
        let end = self.directories.get(&self.routes.get(&route)?.walked.end?)?;
        Some((end.path.clone(), end.identity))
    }

    /// Lets the vertex wait in just these directories right below; whether any is new.
    pub(super) fn branch(
        &mut self,
        vertex: VertexId,
        route: RouteId,
        found: &[PathBuf],
        work: &mut Work,
    ) -> bool {
        let Some(path) = self.routes.get(&route).map(|known| Arc::clone(&known.path)) else {
            return false;
        };
        let Some(known) = self.trees.get(&vertex).and_then(|tree| tree.below.get(&route)).cloned()
        else {
            return false;
        };
        let now: BTreeSet<RouteId> =
            found.iter().map(|name| self.route(&path.join(name), work)).collect();
        for gone in known.difference(&now) {
            self.prune(vertex, *gone, work);
        }
        for new in now.difference(&known) {
            if let Some(route) = self.routes.get_mut(new) {
                route.below.push(vertex);
            }
            if let Some(tree) = self.trees.get_mut(&vertex) {
                tree.below.entry(*new).or_default();
            }
            work.grow.insert((vertex, *new));
        }
        let is_new = now.difference(&known).next().is_some();
        if let Some(below) = self.trees.get_mut(&vertex).and_then(|t| t.below.get_mut(&route)) {
            *below = now;
        }
        is_new
    }

    /// The vertex leaves a directory that is gone, and all that were below it.
    fn prune(&mut self, vertex: VertexId, route: RouteId, work: &mut Work) {
        let mut left = vec![route];
        while let Some(route) = left.pop() {
            let tree = self.trees.get_mut(&vertex);
            left.extend(tree.and_then(|tree| tree.below.remove(&route)).into_iter().flatten());
            work.grow.remove(&(vertex, route));
            self.leave(vertex, route, work);
        }
        // Perhaps it was the one that could not be watched.
        work.judge.insert(vertex);
    }
}
