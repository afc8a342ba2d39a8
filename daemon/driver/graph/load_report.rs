//! The difference between a new graph and its predecessor, by identity, and the result of a load.

use super::registry::GraphRegistry;
use super::vertices::VertexTable;
use crate::config::LoadedGraph;
use crate::driver::status::{GraphRejection, SwapStatus};
use crate::driver::{Driver, Notification};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use steadfast_engine::{VertexId, VertexStatus};
use tokio::time::Instant;

/// The maximum number of names per category.
const NAMED: usize = 20;

/// The difference between two graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphDiff {
    /// Resources that only the new graph declares.
    pub added: NameSample,
    /// Resources with another definition.
    pub changed: NameSample,
    /// Resources that only the old graph declares.
    pub removed: NameSample,
    /// The number of resources with the same definition.
    pub unchanged: usize,
    /// False for the first graph: all its resources are new, and are not named.
    pub again: bool,
}

/// The result of an accepted load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadOutcome {
    /// The name of the graph.
    pub graph: String,
    /// The difference from the old graph.
    pub change: GraphDiff,
    /// Identities of resources whose runs must end before the graph runs; empty if it runs at once.
    pub waits: Vec<String>,
    /// True if the graph is read-only.
    #[serde(default)]
    pub looks_only: bool,
}

/// The number of resources in a category, with a sample of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameSample {
    /// The total number.
    pub count: usize,
    /// The first names in ascending order.
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
    /// Rejects a graph: the running graph stays.
    pub(in crate::driver) fn refuse(&mut self, why: String) {
        self.audience.hear(&Notification::Refused(&why));
        if self.settings.one_shot {
            (self.recalled, self.refused) = (None, Some(why.clone()));
        }
        self.refused_since.get_or_insert_with(Instant::now);
        self.load_outcome = Err(why);
    }

    /// Loads the last-good graph if no graph was accepted since the start: the host stays managed although a newer
    /// graph is rejected. The rejection stays reported.
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

    /// Returns the last rejection, if the newest graph was rejected.
    pub(in crate::driver) fn refused_graph(&self) -> Option<GraphRejection> {
        let (since, full) = (self.refused_since?, self.load_outcome.as_ref().err()?);
        let refused_for = since.elapsed().as_secs();
        Some(GraphRejection {
            rejected_for: refused_for,
            reason: first_error(full).to_owned(),
            details: full.clone(),
        })
    }

    /// Returns the status of the graph that waits to run.
    pub(in crate::driver) fn swap_status(&self) -> Option<SwapStatus> {
        let (graph, _) = self.table.change()?;
        // Some of the recorded runs may have ended.
        let is_busy = |name: &&String| {
            let standing = self.table.number(name).and_then(|id| self.current_status(id));
            matches!(standing, Some(VertexStatus::Running(..) | VertexStatus::Stuck(..)))
        };
        let waits_for = self.swap_waits.iter().filter(is_busy).cloned().collect();
        let waiting_for = self.taken_at.elapsed().as_secs();
        Some(SwapStatus { graph: graph.to_owned(), waiting_for, waits_for })
    }

    /// Records that the waiting graph is accepted; it runs after the runs of `waits` have ended.
    pub(in crate::driver) fn note_taken(&mut self, waits: &[VertexId]) {
        if let Some((graph, change)) = self.table.change() {
            let (graph, change) = (graph.to_owned(), change.clone());
            self.swap_waits = self.names(waits);
            let (waits, looks_only) = (self.swap_waits.clone(), self.ownership.looks_only());
            self.load_outcome = Ok(LoadOutcome { graph, change, waits, looks_only });
        }
    }
}

/// Returns the first line with an error: warnings may come first, each with its context.
fn first_error(full: &str) -> &str {
    let is_error = |line: &&str| !line.starts_with(' ') && !line.contains(": warning: ");
    full.lines().find(is_error).or_else(|| full.lines().next()).unwrap_or_default()
}

impl GraphDiff {
    /// Compares new vertices with the running graph. `differs` lists all vertices that may differ.
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
                // The resource had already left the graph; its removal continues.
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

    /// Warnings and hints are skipped.
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
