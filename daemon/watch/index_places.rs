//! The index of watched places: the paths at which a vertex waits, and the end of routes and watches without vertices.

use super::Shared;
use super::backend::{Backend, DirectoryId};
use super::index::{Again, Name, Placed, RouteId, Waiter, Walked, WatchIndex, Work};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use steadfast_engine::VertexId;

impl WatchIndex {
    /// Makes a vertex wait for a path; returns its places in the index.
    pub(super) fn place(
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
    pub(super) fn displace(&mut self, vertex: VertexId) {
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
    pub(super) fn note_mount(&mut self, (route, name): &(RouteId, Name), is_mounted: bool) -> bool {
        let leaf = self.routes.get_mut(route).and_then(|route| route.leaves.get_mut(name));
        leaf.is_some_and(|leaf| std::mem::replace(&mut leaf.is_mounted, is_mounted) != is_mounted)
    }

    /// Makes a leaf follow the target of its symbolic link; returns true if the target has changed.
    pub(super) fn follow(
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
    pub(super) fn settle(&mut self, id: RouteId, walked: Walked) -> (Vec<DirectoryId>, bool) {
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
    pub(super) fn give_up(&mut self, id: RouteId) -> Option<Vec<DirectoryId>> {
        let empty = |route: &super::index::Route| route.leaves.is_empty() && route.below.is_empty();
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

/// Ends the watches of those of these directories that no route uses; does nothing on an abandoned thread.
pub(super) fn discard_unused(
    shared: &Shared,
    backend: &dyn Backend,
    (thread, directories): (u64, &[DirectoryId]),
) {
    for directory in directories {
        let mut state = shared.lock();
        if state.turn.thread != thread {
            // Another thread has taken over, and may use the directories.
            return;
        }
        let unused = state.directories.get(directory).is_some_and(|known| known.routes == 0);
        if unused {
            state.remove_directory(*directory);
            drop(state);
            backend.unwatch(*directory);
            // The free watch may serve a failed route.
            let mut state = shared.lock();
            if !state.retry.is_empty() {
                state.work.again(Again::Failed);
            }
        }
    }
}

/// Splits a path into directory and name; the root is an entry of itself with an empty name.
fn split(path: &Path) -> (&Path, &[u8]) {
    let parent = path.parent().unwrap_or_else(|| Path::new("/"));
    (parent, path.file_name().unwrap_or_else(|| OsStr::new("")).as_bytes())
}

/// Returns the absolute path without `.` and `..`.
pub(super) fn normal(path: &Path) -> PathBuf {
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

pub(super) fn remove_one<T: PartialEq>(list: &mut Vec<T>, item: &T) {
    if let Some(place) = list.iter().position(|other| other == item) {
        list.swap_remove(place);
    }
}
