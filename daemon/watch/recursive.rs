//! Trees: a vertex that waits for all below a directory waits in each directory of it, and where one comes or goes, so does the
//! place where it waits.
//!
//! A directory is listed only after it is watched, so that whatever comes into it later is reported; what came before is found by
//! the check that follows.

use super::arm::remove_one;
use super::filesystem::Identity;
use super::index::{Route, RouteId, WatchIndex, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_engine::VertexId;

/// The directories in which a vertex waits for the sake of a tree, each with those right below it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    below: BTreeMap<RouteId, BTreeSet<RouteId>>,
    /// It has more directories than may be watched for it.
    is_over: bool,
}

/// The share of one tree: a part of all watches of this user, for whoever can write in a tree chooses how many it takes.
pub(super) fn share_of_watches() -> usize {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    let limit = limit.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL_LIMIT);
    (limit / PARTS).max(SHARE_AT_LEAST)
}

/// The limit where the kernel does not tell it.
const USUAL_LIMIT: usize = 65_536;

const PARTS: usize = 4;

const SHARE_AT_LEAST: usize = 1024;

impl WatchIndex {
    /// Notes that a vertex, which waits in this directory already, waits in all below it.
    pub(super) fn plant(&mut self, vertex: VertexId, path: &Path, work: &mut Work) {
        let route = self.route(&super::arm::normal(path), work);
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

    /// The same for all trees. Those that were too large may be watched as a whole by now.
    pub(super) fn grow_all(&mut self, work: &mut Work) {
        for (vertex, tree) in &mut self.trees {
            if std::mem::take(&mut tree.is_over) {
                work.judge.insert(*vertex);
            }
            work.grow.extend(tree.below.keys().map(|route| (*vertex, *route)));
        }
    }

    /// Why some directory of a tree cannot be watched.
    pub(super) fn failure_in_tree(&self, vertex: VertexId) -> Option<String> {
        let tree = self.trees.get(&vertex)?;
        if tree.is_over {
            let most = self.tree_share.unwrap_or_default();
            return Some(format!(
                "the tree has more than {most} directories; raise the sysctl fs.inotify.max_user_watches"
            ));
        }
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

    /// The tree has more directories than may be watched for it: it is looked at in turn, as what cannot be watched.
    fn exceed(&mut self, vertex: VertexId, work: &mut Work) {
        if let Some(tree) = self.trees.get_mut(&vertex) {
            tree.is_over = true;
            work.judge.insert(vertex);
        }
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
