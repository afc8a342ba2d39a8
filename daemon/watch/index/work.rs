//! The work that waits for the hub's thread.

use super::route::{Name, Reason, RouteId};
use crate::watch::backend::DirectoryId;
use std::collections::{BTreeMap, BTreeSet};
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;

/// The routes that are walked again without an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::watch) enum Again {
    #[default]
    None,
    /// Some of the routes that could not be followed to their ends.
    Failed,
    All,
}

/// The work of the hub's thread. Its size is bounded by the number of armed vertices, however many events come.
#[derive(Debug, Default)]
pub(in crate::watch) struct Work {
    pub(in crate::watch) arms: Vec<(VertexId, u64, Vec<WatchSource>)>,
    pub(in crate::watch) dirty: BTreeMap<RouteId, Reason>,
    pub(in crate::watch) looks: BTreeSet<(RouteId, Name)>,
    pub(in crate::watch) lost: BTreeSet<DirectoryId>,
    pub(in crate::watch) emptied: BTreeSet<RouteId>,
    /// Directories of recursive watches whose subdirectories must be listed.
    pub(in crate::watch) grow: BTreeSet<(VertexId, RouteId)>,
    pub(in crate::watch) judge: BTreeSet<VertexId>,
    pub(in crate::watch) overflow: bool,
    /// The routes that are walked again.
    pub(in crate::watch) again: Again,
    pub(in crate::watch) closed: bool,
}

/// The maximum number of vertices that are armed in one turn.
const ARMS_AT_ONCE: usize = 4096;

impl Work {
    /// Takes the pending work, with a limited number of vertices to arm: the first ones are reported before the last
    /// ones are armed.
    pub(in crate::watch) fn take(&mut self) -> Self {
        let mut work = std::mem::take(self);
        self.closed = work.closed;
        if work.arms.len() > ARMS_AT_ONCE {
            self.arms = work.arms.split_off(ARMS_AT_ONCE);
        }
        work
    }

    pub(in crate::watch) fn is_empty(&self) -> bool {
        self.arms.is_empty()
            && self.dirty.is_empty()
            && self.looks.is_empty()
            && self.lost.is_empty()
            && self.emptied.is_empty()
            && self.grow.is_empty()
            && self.judge.is_empty()
            && self.again == Again::None
            && !(self.overflow || self.closed)
    }

    pub(in crate::watch) fn again(&mut self, again: Again) {
        self.again = again.max(self.again);
    }

    pub(in crate::watch) fn walk(&mut self, route: RouteId, reason: Reason) {
        let known = self.dirty.entry(route).or_insert(reason);
        *known = reason.max(*known);
    }
}
