//! The places of vertices: the paths at which a vertex waits, and the end of unused routes.

use super::route::{Name, Route, RouteId, Waiter, Walked};
use super::vertex_watch::Placed;
use super::watch_index::WatchIndex;
use super::work::Work;
use crate::watch::backend::DirectoryId;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use steadfast_engine::VertexId;

impl WatchIndex {
    /// Makes a vertex wait for a path; returns its places in the index.
    pub(in crate::watch) fn place(
        &mut self,
        waiter: Waiter,
        path: &Path,
        below: bool,
        work: &mut Work,
    ) -> Vec<Placed> {
        let path = normal(path);
        let (parent, name) = split(&path);
        let route = self.route(parent, work);
        let mut placed = Vec::with_capacity(1 + usize::from(below));
        if let Some(known) = self.routes.get_mut(&route) {
            let name: Name = match known.leaves.get_key_value(name) {
                Some((name, _)) => Arc::clone(name),
                None => name.into(),
            };
            let leaf = known.leaves.entry(Arc::clone(&name)).or_default();
            leaf.waiters.reserve_exact(usize::from(leaf.waiters.is_empty()));
            leaf.waiters.push(waiter);
            work.looks.insert((route, Arc::clone(&name)));
            placed.push(Placed::Leaf(route, name));
        }
        if below {
            let route = self.route(&path, work);
            if let Some(known) = self.routes.get_mut(&route) {
                known.below.push(waiter.vertex);
                placed.push(Placed::Below(route));
            }
        }
        placed
    }

    /// Removes a vertex: no signal for it follows. The hub's thread ends its unused routes later.
    pub(in crate::watch) fn displace(&mut self, vertex: VertexId) {
        let mut work = std::mem::take(&mut self.work);
        work.judge.remove(&vertex);
        self.running.remove(&vertex);
        self.fell(vertex, &mut work);
        let armed = self.vertices.remove(&vertex);
        for placed in armed.iter().flat_map(|armed| armed.placed.iter()) {
            match placed {
                Placed::Leaf(route, name) => {
                    let Some(known) = self.routes.get_mut(route) else { continue };
                    if let Some(leaf) = known.leaves.get_mut(name) {
                        let mine = |waiter: &Waiter| waiter.vertex == vertex;
                        let place = leaf.waiters.iter().position(mine);
                        place.map(|place| leaf.waiters.swap_remove(place));
                    }
                    self.tidy_leaf(*route, name, &mut work);
                }
                Placed::Unit(bus, unit) => self.units.displace(vertex, *bus, unit),
                Placed::Below(route) => {
                    let Some(known) = self.routes.get_mut(route) else { continue };
                    remove_one(&mut known.below, &vertex);
                    work.emptied.insert(*route);
                }
            }
        }
        self.work = work;
    }

    /// Removes a leaf that nobody needs, and its chain of links.
    fn tidy_leaf(&mut self, route: RouteId, name: &Name, work: &mut Work) {
        let (mut route, mut name) = (route, Arc::clone(name));
        loop {
            let Some(known) = self.routes.get_mut(&route) else { return };
            let Some(leaf) = known.leaves.get(&name) else { return };
            if !leaf.waiters.is_empty() || !leaf.links.is_empty() {
                return;
            }
            let follows = known.leaves.remove(&name).and_then(|leaf| leaf.follows);
            if known.leaves.is_empty() {
                work.emptied.insert(route);
            }
            let Some(target) = follows else { return };
            let link = (route, name);
            (route, name) = *target;
            let target = self.routes.get_mut(&route).and_then(|known| known.leaves.get_mut(&name));
            if let Some(leaf) = target {
                remove_one(&mut leaf.links, &link);
            }
        }
    }

    /// Notes if a leaf is a mounted file; returns true if that has changed.
    pub(in crate::watch) fn note_mount(
        &mut self,
        (route, name): &(RouteId, Name),
        is_mounted: bool,
    ) -> bool {
        let leaf = self.routes.get_mut(route).and_then(|route| route.leaves.get_mut(name));
        leaf.is_some_and(|leaf| std::mem::replace(&mut leaf.is_mounted, is_mounted) != is_mounted)
    }

    /// Makes a leaf follow the target of its symbolic link; returns true if the target has changed.
    pub(in crate::watch) fn follow(
        &mut self,
        link: &(RouteId, Name),
        target: Option<&Path>,
        work: &mut Work,
    ) -> bool {
        let leaf = |table: &Self, (route, name): &(RouteId, Name)| {
            table.routes.get(route)?.leaves.get(name)?.follows.as_deref().cloned()
        };
        let before = leaf(self, link);
        let wanted = target.map(split);
        let same = match (&before, wanted) {
            (None, None) => true,
            (Some((route, name)), Some((parent, wanted))) => {
                **name == *wanted
                    && self.routes.get(route).is_some_and(|known| *known.path == *parent)
            }
            (Some(_), None) | (None, Some(_)) => false,
        };
        if same {
            return false;
        }
        if let Some(before) = before {
            self.set_follows(link, None);
            let known = self.routes.get_mut(&before.0);
            if let Some(leaf) = known.and_then(|known| known.leaves.get_mut(&before.1)) {
                remove_one(&mut leaf.links, link);
            }
            self.tidy_leaf(before.0, &before.1, work);
        }
        if let Some((parent, name)) = wanted {
            let route = self.route(parent, work);
            let target = (route, Name::from(name));
            if self.leads_to(&target, link) {
                // A cycle of links has no target.
                work.emptied.insert(route);
                return true;
            }
            if let Some(known) = self.routes.get_mut(&route) {
                known.leaves.entry(Arc::clone(&target.1)).or_default().links.push(link.clone());
            }
            work.looks.insert(target.clone());
            self.set_follows(link, Some(target));
        }
        true
    }

    fn set_follows(&mut self, link: &(RouteId, Name), target: Option<(RouteId, Name)>) {
        let known = self.routes.get_mut(&link.0);
        if let Some(leaf) = known.and_then(|known| known.leaves.get_mut(&link.1)) {
            leaf.follows = target.map(Box::new);
        }
    }

    fn leads_to(&self, from: &(RouteId, Name), to: &(RouteId, Name)) -> bool {
        let mut at = from.clone();
        loop {
            if at == *to {
                return true;
            }
            let leaf = self.routes.get(&at.0).and_then(|known| known.leaves.get(&at.1));
            let Some(next) = leaf.and_then(|leaf| leaf.follows.as_deref()) else { return false };
            at = next.clone();
        }
    }

    /// Stores the result of a walk in place of the former one. Returns the directories of the former walk, and true if
    /// the route leads elsewhere.
    pub(in crate::watch) fn settle(
        &mut self,
        id: RouteId,
        walked: Walked,
    ) -> (Vec<DirectoryId>, bool) {
        for directory in &walked.used {
            if let Some(known) = self.directories.get_mut(directory) {
                known.routes += 1;
            }
        }
        let Some(route) = self.routes.get_mut(&id) else { return (walked.used, false) };
        let before = std::mem::replace(&mut route.walked, walked);
        let differs = before != route.walked;
        for (directory, name) in &before.steps {
            if route.walked.steps.iter().any(|step| step.0 == *directory && step.1 == *name) {
                continue;
            }
            let Some(known) = self.directories.get_mut(directory) else { continue };
            if let Some(routes) = known.steps.get_mut(name) {
                routes.remove(&id);
                if routes.is_empty() {
                    known.steps.remove(name);
                }
            }
        }
        if let Some(end) = before.end.filter(|end| route.walked.end != Some(*end))
            && let Some(known) = self.directories.get_mut(&end)
        {
            known.ends.retain(|route| *route != id);
        }
        for directory in &before.used {
            if let Some(known) = self.directories.get_mut(directory) {
                known.routes = known.routes.saturating_sub(1);
            }
        }
        (before.used, differs)
    }

    /// Removes an unused route and returns its directories; returns `None` if the route is in use.
    pub(in crate::watch) fn give_up(&mut self, id: RouteId) -> Option<Vec<DirectoryId>> {
        let empty = |route: &Route| route.leaves.is_empty() && route.below.is_empty();
        if !self.routes.get(&id).is_some_and(empty) {
            return None;
        }
        let (used, _) = self.settle(id, Walked::default());
        if let Some(route) = self.routes.remove(&id) {
            self.by_path.remove(&route.path);
        }
        self.work.dirty.remove(&id);
        self.retry.note(id, false);
        Some(used)
    }
}

/// Splits a path into directory and name; the root is an entry of itself with an empty name.
fn split(path: &Path) -> (&Path, &[u8]) {
    let parent = path.parent().unwrap_or_else(|| Path::new("/"));
    (parent, path.file_name().unwrap_or_else(|| OsStr::new("")).as_bytes())
}

/// Returns the absolute path without `.` and `..`.
pub(in crate::watch) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}

/// Removes the first equal item; the order of the others may change.
pub(super) fn remove_one<T: PartialEq>(list: &mut Vec<T>, item: &T) {
    if let Some(place) = list.iter().position(|other| other == item) {
        list.swap_remove(place);
    }
}
