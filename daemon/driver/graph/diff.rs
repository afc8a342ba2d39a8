//! What a new graph means for the one that ran before it, by name.

use super::registry::GraphRegistry;
use super::vertices::VertexTable;
use crate::config::LoadedGraph;
use crate::driver::status::{GraphRejection, SwapStatus};
use crate::driver::{Driver, Notification};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use steadfast_engine::{VertexId, VertexStatus};
use tokio::time::Instant;

/// So many of a sort are named; all are counted.
const NAMED: usize = 20;

/// What differs between two graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphDiff {
    /// Resources that only the new one has.
    pub added: NameSample,
    /// Those with another definition.
    pub changed: NameSample,
    /// Those that only the one before had.
    pub removed: NameSample,
    /// How many stayed as they were.
    pub unchanged: usize,
    /// There was one before: else all is new, and is not named.
    pub again: bool,
}

/// A graph that was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadOutcome {
    /// Its name.
    pub graph: String,
    /// What it means for the one before.
    pub change: GraphDiff,
    /// It runs as soon as these rest; at once where there is none.
    pub waits: Vec<String>,
    /// All of it is only looked at.
    #[serde(default)]
    pub looks_only: bool,
}

/// Resources of one sort: how many, and the first of them by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameSample {
    /// How many in all.
    pub count: usize,
    /// Some of them, in order: the others come after these.
    pub names: Vec<String>,
}

impl NameSample {
    fn of(mut names: Vec<Arc<str>>) -> Self {
        names.sort_unstable();
        let count = names.len();
        names.truncate(NAMED);
        Self { count, names: names.iter().map(ToString::to_string).collect() }
    }
}

impl Driver {
    /// A graph is not taken: the one that runs goes on.
    pub(in crate::driver) fn refuse(&mut self, why: String) {
        self.audience.hear(&Notification::Refused(&why));
        if self.settings.one_shot {
            (self.recalled, self.refused) = (None, Some(why.clone()));
        }
        self.refused_since.get_or_insert_with(Instant::now);
        self.load_outcome = Err(why);
    }

    /// The graph that was taken last, where none has been taken since the start: a host is not left alone for the refusal of a newer
    /// one, which stays what is told of that.
    pub(in crate::driver) fn load_again(&mut self, loaded: LoadedGraph) {
        if self.recalled.is_none() || self.broken.is_some() {
            return;
        }
        let (refused, since) = (self.load_outcome.clone(), self.refused_since);
        self.load(loaded, false);
        if self.load_outcome.is_ok() {
            (self.load_outcome, self.refused_since) = (refused, since);
        }
    }

    /// The refusal of the graph that is there, where one newer than what was taken is.
    pub(in crate::driver) fn refused_graph(&self) -> Option<GraphRejection> {
        let (since, full) = (self.refused_since?, self.load_outcome.as_ref().err()?);
        let refused_for = since.elapsed().as_secs();
        Some(GraphRejection {
            rejected_for: refused_for,
            reason: first_error(full).to_owned(),
            details: full.clone(),
        })
    }

    /// The graph that waits to run.
    pub(in crate::driver) fn swap_status(&self) -> Option<SwapStatus> {
        let (graph, _) = self.table.change()?;
        // Some of those at the beginning may rest by now.
        let is_busy = |name: &&String| {
            let standing = self.table.number(name).and_then(|id| self.current_status(id));
            matches!(standing, Some(VertexStatus::Running(..) | VertexStatus::Stuck(..)))
        };
        let waits_for = self.swap_waits.iter().filter(is_busy).cloned().collect();
        let waiting_for = self.taken_at.elapsed().as_secs();
        Some(SwapStatus { graph: graph.to_owned(), waiting_for, waits_for })
    }

    /// The graph that waits to run is taken; it runs when these rest.
    pub(in crate::driver) fn note_taken(&mut self, waits: &[VertexId]) {
        if let Some((graph, change)) = self.table.change() {
            let (graph, change) = (graph.to_owned(), change.clone());
            self.swap_waits = self.names(waits);
            let (waits, looks_only) = (self.swap_waits.clone(), self.ownership.looks_only());
            self.load_outcome = Ok(LoadOutcome { graph, change, waits, looks_only });
        }
    }
}

/// The first line of what was said that tells of an error: warnings may come before, each with what stands at its place.
fn first_error(full: &str) -> &str {
    let is_error = |line: &&str| !line.starts_with(' ') && !line.contains(": warning: ");
    full.lines().find(is_error).or_else(|| full.lines().next()).unwrap_or_default()
}

impl GraphDiff {
    /// What these would change of the graph that runs; all that differ are known.
    pub(in crate::driver) fn between(
        running: &GraphRegistry,
        new: &VertexTable,
        differs: &[VertexId],
    ) -> Self {
        let (mut added, mut changed) = (Vec::new(), Vec::new());
        let mut kept = new.len() - differs.len();
        let is_removed = |id: VertexId| running.get(id).is_some_and(|entry| entry.removes);
        let mut removed: Vec<Arc<str>> = running
            .ids()
            .filter(|id| !new.has(*id) && !is_removed(*id))
            .filter_map(|id| Some(Arc::clone(&running.get(id)?.identity)))
            .collect();
        for (id, entry) in differs.iter().filter_map(|id| Some((*id, new.get(*id)?))) {
            let before = running.get(id).filter(|_| !running.is_removed(id));
            match before {
                // It has left, whatever has to be done yet.
                Some(before) if before.removes && entry.removes => {}
                _ if entry.removes => removed.push(Arc::clone(&entry.identity)),
                None => added.push(Arc::clone(&entry.identity)),
                Some(before) if before.definition != entry.definition => {
                    changed.push(Arc::clone(&entry.identity));
                }
                Some(_) => kept += 1,
            }
        }
        let again = running.ids().next().is_some();
        let (added, changed) = (NameSample::of(added), NameSample::of(changed));
        Self { added, changed, removed: NameSample::of(removed), unchanged: kept, again }
    }
}

#[cfg(test)]
mod tests {
    use super::first_error;

    /// Warnings and hints are passed over.
    #[test]
    fn the_first_error_of_a_refusal_is_found() {
        let warning = "g.yaml:1234:1: warning: odd [C9]\n  hint: none\n";
        let error = "g.yaml:7:3: unknown key `pth` [C1]";
        let rest = "\n  hint: none\nthe graph was rejected: 1 problem\n";
        assert_eq!(first_error(&format!("{warning}{error}{rest}")), error);
        assert_eq!(first_error(&format!("{error}{rest}")), error);
        assert_eq!(first_error("the daemon is stopping"), "the daemon is stopping");
        assert_eq!((first_error(warning), first_error("")), (warning.lines().next().unwrap(), ""));
    }
}
