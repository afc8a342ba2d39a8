//! The load of a graph: its way from a loaded file to the engine, and the result of the last load.

use super::load_error::LoadError;
use crate::api::{GraphDiff, GraphRejection, LoadOutcome, SwapStatus};
use crate::config::LoadedGraph;
use crate::driver::{Driver, Notification};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{Event, Swap, VertexId, VertexStatus};
use tokio::time::Instant;

/// The result of the last load, and the graph that waits to run.
#[derive(Debug)]
pub(in crate::driver) struct LoadStatus {
    /// The result of the last load, or the reason for its rejection.
    outcome: Result<LoadOutcome, LoadError>,
    /// The time of the first rejection since the last accepted graph; `None` if the last graph was accepted.
    rejected_since: Option<Instant>,
    /// The time at which the last graph was accepted.
    accepted_at: Instant,
    /// Identities whose runs delayed the swap to the last graph, at the time of the load.
    swap_waits: Vec<String>,
    /// The difference between the new graph and its predecessor, until it is reported: when the new graph runs.
    pub(in crate::driver) change: Option<GraphDiff>,
}

/// A result of a load, with the time of the first rejection.
type Rejection = (Result<LoadOutcome, LoadError>, Option<Instant>);

impl Default for LoadStatus {
    fn default() -> Self {
        Self {
            outcome: Err(LoadError::NoneYet),
            rejected_since: None,
            accepted_at: Instant::now(),
            swap_waits: Vec::new(),
            change: None,
        }
    }
}

impl LoadStatus {
    /// Returns the result of the last load, or the reason for its rejection.
    pub(in crate::driver) fn outcome(&self) -> &Result<LoadOutcome, LoadError> {
        &self.outcome
    }

    /// Returns true if the newest graph was rejected.
    pub(in crate::driver) fn is_rejected(&self) -> bool {
        self.rejected_since.is_some()
    }

    /// Returns the last rejection, if the newest graph was rejected.
    pub(in crate::driver) fn rejection(&self) -> Option<GraphRejection> {
        let (since, error) = (self.rejected_since?, self.outcome.as_ref().err()?);
        let details = error.to_string();
        Some(GraphRejection {
            rejected_for: since.elapsed().as_secs(),
            reason: first_error(&details).to_owned(),
            details,
        })
    }

    fn accept(&mut self, now: Instant) {
        (self.rejected_since, self.accepted_at) = (None, now);
    }

    fn reject(&mut self, why: LoadError, now: Instant) {
        self.rejected_since.get_or_insert(now);
        self.outcome = Err(why);
    }

    fn accepted_for(&self) -> Duration {
        self.accepted_at.elapsed()
    }

    fn clone_rejection(&self) -> Rejection {
        (self.outcome.clone(), self.rejected_since)
    }

    /// Reports an earlier rejection again after the last-good graph was accepted.
    fn restore_rejection(&mut self, rejection: Rejection) {
        if self.outcome.is_ok() {
            (self.outcome, self.rejected_since) = rejection;
        }
    }
}

impl Driver {
    /// Loads a graph: plans its removals, restores the stored state, and gives the graph to the engine. `operator` is
    /// true if an operator has requested the load.
    pub(in crate::driver) fn load(&mut self, loaded: LoadedGraph, operator: bool) {
        // In read-only mode the vertices are checked, and none of them gets a permit.
        let mut loaded = if self.mode.read_only().is_some() { loaded.read_only() } else { loaded };
        let table = &self.graph;
        self.commands.pauses.only(|id| table.get(id).is_some());
        let renamed = self.renamed(&loaded);
        let found = self.graph.find(&loaded.vertices, &renamed);
        let is_apply = self.settings.one_shot && self.journal.exists();
        let prepared = self.plan_removals(&mut loaded, &found, operator).and_then(|leave| {
            let loaded = if is_apply { self.one_shot.overlaps.rehearse(loaded) } else { loaded };
            let graph = self.graph.prepare(loaded, found)?;
            Ok((graph, leave))
        });
        let graph = match prepared {
            Ok((graph, leave)) => {
                self.ownership.accept(leave, renamed);
                graph
            }
            Err(why) => {
                self.discard_replaced();
                return self.refuse(why);
            }
        };
        let mut recall = self.recall_renamed();
        for identity in self.values.drop_lost(&self.graph) {
            tracing::info!(
                event = "value_lost",
                "{identity}: no receiver has got the value, and it was not saved; a new one is made"
            );
        }
        let silent = self.values.silent_senders(&self.graph);
        if let Some(mut recalled) = self.mode.end_start() {
            self.rename_recalled(&mut recalled);
            self.forget_strangers(&recalled);
            self.restore_pauses(&recalled);
            self.forget_removals(&recalled);
            let is_read_only = self.mode.read_only().is_some() || self.ownership.is_noop();
            if !is_read_only && self.permission.lease.loss().is_none() {
                self.permission.start_cleanup(&self.runtime.host, self.runtime.inbox());
            }
            recall = self.graph.recall(&recalled.resources);
            self.take_skipped_as_done(&recall, recalled.stamp);
            for id in silent.into_iter().chain(self.values.outdated_receivers(&self.graph)) {
                // A value was never sent, or another value was received: the run is repeated.
                recall.entry(id).and_modify(|recall| recall.done = None);
            }
        } else {
            self.recall_departed(&mut recall, &silent);
            self.ask_to_send(silent);
        }
        self.look_at_clock();
        self.pass_pauses_to_engine(true);
        self.graph.loads.accept(Instant::now());
        self.note_taken(&[]);
        self.turn(Event::Swap(Swap { graph: Arc::new(graph), recall, operator }));
        self.check_command_secrets();
        self.discard_replaced();
    }

    /// Rejects a graph: the running graph stays.
    pub(in crate::driver) fn refuse(&mut self, why: LoadError) {
        let text = why.to_string();
        self.notifier.notify(&Notification::Rejected(&text));
        if self.settings.one_shot {
            drop(self.mode.end_start());
            self.one_shot.rejection = Some(text);
        }
        self.graph.loads.reject(why, Instant::now());
    }

    /// Loads the last-good graph if no graph was accepted since the start: the host stays managed although a newer
    /// graph is rejected. The rejection stays reported.
    pub(in crate::driver) fn load_again(&mut self, loaded: LoadedGraph) {
        if !self.mode.is_starting() || self.mode.is_broken() {
            return;
        }
        let rejection = self.graph.loads.clone_rejection();
        self.load(loaded, false);
        self.graph.loads.restore_rejection(rejection);
    }

    /// Returns the status of the graph that waits to run.
    pub(in crate::driver) fn swap_status(&self) -> Option<SwapStatus> {
        let (graph, _) = self.graph.change()?;
        // Some of the recorded runs may have ended.
        let is_busy = |name: &&String| {
            let standing = self.graph.number(name).and_then(|id| self.current_status(id));
            matches!(standing, Some(VertexStatus::Running(..) | VertexStatus::Stuck(..)))
        };
        let waits_for = self.graph.loads.swap_waits.iter().filter(is_busy).cloned().collect();
        let waiting_for = self.graph.loads.accepted_for().as_secs();
        Some(SwapStatus { graph: graph.to_owned(), waiting_for, waits_for })
    }

    /// Records that the waiting graph is accepted; it runs after the runs of `waits` have ended.
    pub(in crate::driver) fn note_taken(&mut self, waits: &[VertexId]) {
        if let Some((graph, change)) = self.graph.change() {
            let (graph, change) = (graph.to_owned(), change.clone());
            self.graph.loads.swap_waits = self.names(waits);
            let (waits, noop) = (self.graph.loads.swap_waits.clone(), self.ownership.is_noop());
            self.graph.loads.outcome = Ok(LoadOutcome { graph, change, waits, noop });
        }
    }

    /// Frees replaced graphs on another thread.
    pub(in crate::driver) fn discard_replaced(&mut self) {
        for replaced in self.graph.take_replaced() {
            self.runtime.discard(Box::new(replaced));
        }
    }
}

/// Returns the first line with an error: warnings may come first, each with its context.
fn first_error(full: &str) -> &str {
    let is_error = |line: &&str| !line.starts_with(' ') && !line.contains(": warning: ");
    full.lines().find(is_error).or_else(|| full.lines().next()).unwrap_or_default()
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
