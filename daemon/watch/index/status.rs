//! The status of the watch of a vertex: all sources established, or some absent.

use super::route::{LINKS, Leaf, RouteId};
use super::vertex_watch::{Placed, Reported, Running};
use super::watch_index::WatchIndex;
use crate::watch::proc_files::is_silent;
use crate::watch::signal::Signal;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use steadfast_engine::VertexId;

impl WatchIndex {
    /// Collects the vertices whose status depends on a route, muted ones included.
    pub(in crate::watch) fn concern(&self, route: RouteId, vertices: &mut BTreeSet<VertexId>) {
        let Some(route) = self.routes.get(&route) else { return };
        for leaf in route.leaves.values() {
            self.concern_leaf(leaf, vertices, LINKS);
        }
        vertices.extend(&route.below);
    }

    /// Collects the vertices whose status depends on a path, also through symbolic links to it.
    pub(in crate::watch) fn concern_leaf(
        &self,
        leaf: &Leaf,
        vertices: &mut BTreeSet<VertexId>,
        links: usize,
    ) {
        vertices.extend(leaf.waiters.iter().map(|waiter| waiter.vertex));
        if links == 0 {
            return;
        }
        for (route, name) in &leaf.links {
            if let Some(leaf) = self.routes.get(route).and_then(|route| route.leaves.get(name)) {
                self.concern_leaf(leaf, vertices, links - 1);
            }
        }
    }

    /// Reports the status of a vertex if it has changed.
    pub(in crate::watch) fn judge(&mut self, vertex: VertexId, signals: &mut Vec<Signal>) {
        let Some(armed) = self.vertices.get(&vertex) else { return };
        if armed.reported == Reported::Never {
            return;
        }
        let mut why = armed.placed.iter().find_map(|placed| self.failure(placed));
        why = why.or_else(|| self.failure_in_tree(vertex));
        let mut starting = false;
        let units = armed.placed.iter().filter_map(|placed| match placed {
            Placed::Unit(bus, unit) => Some(self.units.unit_state(*bus, unit)),
            Placed::Leaf(..) | Placed::Below(_) => None,
        });
        for running in self.running.get(&vertex).into_iter().flatten().cloned().chain(units) {
            match running {
                Running::Starting => starting = true,
                Running::Failed(error) => why = why.or(Some(error)),
                Running::Yes => {}
            }
        }
        let (before, now) = match (&why, starting) {
            (Some(_), _) => (armed.reported, Reported::Absent),
            (None, true) => return,
            (None, false) => (armed.reported, Reported::Established),
        };
        if before == now {
            return;
        }
        if let Some(armed) = self.vertices.get_mut(&vertex) {
            armed.reported = now;
        }
        match why {
            Some(why) => signals.push(Signal::Absent(vertex, why)),
            None => signals.push(Signal::Established(vertex)),
        }
        if before != Reported::Nothing {
            signals.push(Signal::Suspect(vertex));
        }
    }

    fn failure(&self, placed: &Placed) -> Option<String> {
        let (mut id, mut name) = match placed {
            Placed::Leaf(route, name) => (*route, Some(name)),
            Placed::Below(route) => (*route, None),
            Placed::Unit(..) => return None,
        };
        for _ in 0..LINKS {
            let route = self.routes.get(&id)?;
            if let Some(failed) = &route.walked.failed {
                return Some(failed.to_string());
            }
            if is_silent(&route.path, name.map(|name| &**name)) {
                return Some(
                    "cannot watch /proc: a proc file system reports no changes".to_owned(),
                );
            }
            let leaf = route.leaves.get(name?)?;
            if leaf.is_mounted {
                let path = route.path.join(OsStr::from_bytes(name?));
                let why = "a file that is a mount point reports no changes";
                return Some(format!("cannot watch {}: {why}", path.display()));
            }
            let (next, target) = leaf.follows.as_deref()?;
            (id, name) = (*next, Some(target));
        }
        None
    }
}
