//! Recursive watches: a vertex that watches a whole directory tree waits in each directory of it; the set follows
//! creations and removals.
//!
//! A directory is listed only after it is watched, so all later entries are reported; the check that follows finds
//! earlier ones.

use super::places::{normal, remove_one};
use super::route::{Route, RouteId};
use super::tree::Tree;
use super::watch_index::WatchIndex;
use super::work::Work;
use crate::watch::filesystem::Identity;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_engine::VertexId;

/// The longest path in bytes whose subdirectories are watched: the limit of the kernel for one path.
const LONGEST_PATH: usize = 4096;

impl WatchIndex {
    /// Extends the wait of a vertex in a directory to the whole tree below it.
    pub(in crate::watch) fn plant(&mut self, vertex: VertexId, path: &Path, work: &mut Work) {
        let route = self.route(&normal(path), work);
        self.trees.entry(vertex).or_default().below.entry(route).or_default();
        work.grow.insert((vertex, route));
    }

    /// Ends all recursive watches of a vertex.
    pub(in crate::watch) fn fell(&mut self, vertex: VertexId, work: &mut Work) {
        work.grow.retain(|(other, _)| *other != vertex);
        let Some(tree) = self.trees.remove(&vertex) else { return };
        // The root of each tree is stored with the vertex's other places.
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

    /// Schedules a listing for the trees that include the directory at the end of a route.
    pub(in crate::watch) fn grow(&self, id: RouteId, route: &Route, work: &mut Work) {
        for vertex in &route.below {
            let is_of = |tree: &Tree| tree.below.contains_key(&id);
            if self.trees.get(vertex).is_some_and(is_of) {
                work.grow.insert((*vertex, id));
            }
        }
    }

    /// Schedules a listing for all trees. Trees over the limit are tried again.
    pub(in crate::watch) fn grow_all(&mut self, work: &mut Work) {
        for (vertex, tree) in &mut self.trees {
            if std::mem::take(&mut tree.is_over) {
                work.judge.insert(*vertex);
            }
            work.grow.extend(tree.below.keys().map(|route| (*vertex, *route)));
        }
    }

    /// Returns the reason for which a directory of a tree cannot be watched.
    pub(in crate::watch) fn failure_in_tree(&self, vertex: VertexId) -> Option<String> {
        let tree = self.trees.get(&vertex)?;
        if tree.is_over {
            let most = self.tree_share.unwrap_or_default();
            return Some(format!(
                "the tree has more than {most} directories, or very long paths; raise the sysctl fs.inotify.max_user_watches"
            ));
        }
        let failed = |route| self.routes.get(route)?.walked.failed.as_ref();
        tree.below.keys().find_map(failed).map(ToString::to_string)
    }

    /// Returns the path and the identity of the directory at the end of a route.
    pub(in crate::watch) fn end_of(&self, route: RouteId) -> Option<(PathBuf, Identity)> {
        let end = self.directories.get(&self.routes.get(&route)?.walked.end?)?;
        Some((end.path.clone(), end.identity))
    }

    /// Updates the subdirectories in which the vertex waits; returns true if any is new.
    pub(in crate::watch) fn branch(
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
        // The check of a deeper tree fails, and each further level costs time.
        if !found.is_empty() && path.as_os_str().len() > LONGEST_PATH {
            self.exceed(vertex, work);
            return false;
        }
        let known_as = |name: &PathBuf| self.by_path.get(path.join(name).as_path()).copied();
        let stay: BTreeSet<RouteId> =
            found.iter().filter_map(known_as).filter(|route| known.contains(route)).collect();
        for gone in known.difference(&stay) {
            self.prune(vertex, *gone, work);
        }
        let watched = self.trees.get(&vertex).map_or(0, |tree| tree.below.len());
        let room = self.tree_share.map_or(usize::MAX, |share| share.saturating_sub(watched));
        let now: BTreeSet<RouteId> = if found.len() - stay.len() <= room {
            found.iter().map(|name| self.route(&path.join(name), work)).collect()
        } else {
            self.exceed(vertex, work);
            stay
        };
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

    /// Marks a tree as over the limit: sweeps check it, like anything that cannot be watched.
    fn exceed(&mut self, vertex: VertexId, work: &mut Work) {
        if let Some(tree) = self.trees.get_mut(&vertex) {
            tree.is_over = true;
            work.judge.insert(vertex);
        }
    }

    /// Ends the wait of a vertex in a removed directory and all below it.
    fn prune(&mut self, vertex: VertexId, route: RouteId, work: &mut Work) {
        let mut left = vec![route];
        while let Some(route) = left.pop() {
            let tree = self.trees.get_mut(&vertex);
            left.extend(tree.and_then(|tree| tree.below.remove(&route)).into_iter().flatten());
            work.grow.remove(&(vertex, route));
            self.leave(vertex, route, work);
        }
        // The removed directory may have been the one that could not be watched.
        work.judge.insert(vertex);
    }
}
