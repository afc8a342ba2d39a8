//! Runs with other inputs than their last successful run, and the search for those who changed the inputs.

use crate::driver::Driver;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steadfast_engine::{Event, RunId, VertexId};
use steadfast_resources::{Claim, WatchSource};
use tokio::time::Instant;

/// The time for which an apply is remembered.
const MINUTE: Duration = Duration::from_mins(1);

/// The maximum number of remembered applies.
const MOST: usize = 1024;

/// The applies of the last minute.
#[derive(Debug, Default)]
pub(in crate::driver) struct RecentApplies {
    /// The start and the vertex of each apply, oldest first.
    all: VecDeque<(Instant, VertexId)>,
    /// The start of the last apply that was dropped because of the maximum.
    lost: Option<Instant>,
}

impl RecentApplies {
    /// Records the start of an apply.
    pub(in crate::driver) fn note(&mut self, id: VertexId, now: Instant) {
        while self.all.front().is_some_and(|(at, _)| *at + MINUTE <= now) {
            self.all.pop_front();
        }
        if self.all.len() >= MOST {
            self.lost = self.all.pop_front().map(|(at, _)| at);
        }
        self.all.push_back((now, id));
    }

    /// Returns the vertices that have applied since the last apply of this vertex, or in the last minute; `None` if
    /// applies were dropped.
    fn since_last_of(&self, id: VertexId, now: Instant) -> Option<Vec<VertexId>> {
        let last = self.all.iter().rev().find(|(_, other)| *other == id).map(|(at, _)| *at);
        let since = last.unwrap_or(now - MINUTE);
        if self.lost.is_some_and(|lost| lost >= since) {
            return None;
        }
        let later = self.all.iter().filter(|(at, other)| *at >= since && *other != id);
        Some(later.map(|(_, other)| *other).collect())
    }
}

impl Driver {
    /// Reports to the engine that a run has other inputs than the last successful one: the inputs have changed, and no
    /// repair was undone.
    pub(in crate::driver) fn turn_remade(&mut self, run: RunId) {
        let Some(live) = self.runs.active.get(&run) else { return };
        let (id, of) = (live.vertex, &live.identity);
        let is_remade = live.made.get().is_some_and(|made| self.values.is_remade(of, made));
        let is_copied = live.copied().is_some_and(|it| self.values.is_copied_anew(of, it));
        if is_remade || is_copied {
            self.turn(Event::Remade(run));
        }
        if is_copied && !is_remade && self.is_supplied_by_others(id) {
            self.turn(Event::Supplied(run));
        }
    }

    /// Returns true if no run of ours since the last apply of a copy can have changed its source.
    fn is_supplied_by_others(&self, id: VertexId) -> bool {
        let Some(copy) = self.graph.get(id) else { return false };
        let claims = copy.resource.footprint().claims;
        let sources =
            copy.resource.footprint().watch.into_iter().filter_map(|source| match source {
                WatchSource::Path { path, .. } | WatchSource::Tree(path) => Some(path),
                _ => None,
            });
        let sources: Vec<PathBuf> = sources
            .filter(|path| !claims.iter().any(|claim| claim.as_path() == Some(path)))
            .collect();
        if sources.is_empty() || sources.iter().any(|source| is_near_one(&claims, source)) {
            return false;
        }
        let Some(others) = self.runs.recent_applies.since_last_of(id, Instant::now()) else {
            return false;
        };
        others.into_iter().all(|other| {
            let Some(other) = self.graph.get(other) else { return false };
            let claims = other.resource.footprint().claims;
            sources
                .iter()
                .all(|source| !other.resource.may_change(source) && !is_near_one(&claims, source))
        })
    }
}

/// Returns true if a path is claimed, or is above or below a claimed path.
fn is_near_one(claims: &[Claim], path: &Path) -> bool {
    let mut claimed = claims.iter().filter_map(Claim::as_path);
    claimed.any(|other| path.starts_with(other) || other.starts_with(path))
}
