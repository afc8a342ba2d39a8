//! Blockers: the resources for which a resource waits, worst first, and those that wait for it.

use super::phase;
use crate::api::Phase;
use crate::driver::Driver;
use steadfast_engine::{VertexId, VertexStatus};

/// The maximum number of dependents among which waiting ones are searched.
const LOOKED_AT: usize = 1000;

impl Driver {
    /// Sorts blockers by severity: those without a retry, then those with one, then those in progress.
    pub(in crate::driver) fn worst_first(&self, ids: &mut [VertexId]) {
        ids.sort_by_cached_key(|id| {
            (self.current_status(*id).map(|standing| rank(&standing)), *id)
        });
    }

    /// Returns the identities of the resources that wait for this one.
    pub(in crate::driver) fn waiters(&self, id: VertexId) -> Vec<String> {
        self.names(&self.engine.waiters(self.graph.groups().leader(id), LOOKED_AT))
    }

    /// Describes the awaited semaphores and their holders.
    pub(in crate::driver) fn semaphores_in_words(&self, id: VertexId) -> (String, Vec<String>) {
        let mut holders = Vec::new();
        let taken = self.engine.semaphores_waited_for(self.graph.groups().leader(id));
        let words = taken.iter().map(|taken| {
            let names = self.names(&taken.holders);
            let name = self.graph.semaphore_name(taken.semaphore).unwrap_or("?");
            let by = if names.is_empty() { "" } else { ", held by " };
            let words = format!("semaphore `{name}` ({}){by}{}", taken.count, names.join(", "));
            holders.extend(names);
            words
        });
        let words: Vec<String> = words.collect();
        holders.sort_unstable();
        holders.dedup();
        if words.is_empty() {
            // The semaphores are free by now: the next turn of the engine starts the run.
            return ("waiting for semaphores".to_owned(), holders);
        }
        (format!("waiting for {}", words.join(" and ")), holders)
    }
}

/// Returns the severity of a status: the first ones need an operator, the others may pass.
fn rank(standing: &VertexStatus) -> u8 {
    match phase(standing) {
        Phase::Stuck => 0,
        Phase::Failed => 1,
        Phase::Held => 2,
        Phase::Contended => 3,
        Phase::Delayed => 4,
        Phase::Waiting => 5,
        Phase::Running => 6,
        Phase::Settled | Phase::Inactive => 7,
    }
}
