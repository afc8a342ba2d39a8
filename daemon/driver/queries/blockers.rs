//! What stands in the way of a resource, the worst first, and in whose way it stands itself.

use super::phase;
use crate::driver::Driver;
use crate::driver::status::Phase;
use steadfast_engine::{VertexId, VertexStatus};

/// Among so many that need a resource those are found that wait for it.
const LOOKED_AT: usize = 1000;

impl Driver {
    /// Puts first what stands in the way longest: what nobody tries again, then what is tried again, last what is on its way.
    pub(in crate::driver) fn worst_first(&self, ids: &mut [VertexId]) {
        ids.sort_by_cached_key(|id| {
            (self.current_status(*id).map(|standing| rank(&standing)), *id)
        });
    }

    /// Those that wait for it now.
    pub(in crate::driver) fn waiters(&self, id: VertexId) -> Vec<String> {
        self.names(&self.engine.waiters(self.table.groups().leader(id), LOOKED_AT))
    }

    /// The semaphores for which it waits, and who holds them.
    pub(in crate::driver) fn semaphores_in_words(&self, id: VertexId) -> (String, Vec<String>) {
        let mut holders = Vec::new();
        let taken = self.engine.semaphores_waited_for(self.table.groups().leader(id));
        let words = taken.iter().map(|taken| {
            let names = self.names(&taken.holders);
            let name = self.table.semaphore_name(taken.semaphore).unwrap_or("?");
            let by = if names.is_empty() { "" } else { ", held by " };
            let words = format!("semaphore `{name}` ({}){by}{}", taken.count, names.join(", "));
            holders.extend(names);
            words
        });
        let words: Vec<String> = words.collect();
        holders.sort_unstable();
        holders.dedup();
        if words.is_empty() {
            // Free by now: it is let in as soon as the engine turns.
            return ("waiting for semaphores".to_owned(), holders);
        }
        (format!("waiting for {}", words.join(" and ")), holders)
    }
}

/// An operator must see to the first ones; the others may pass by themselves.
fn rank(standing: &VertexStatus) -> u8 {
    match phase(standing) {
        Phase::Stuck => 0,
        Phase::Failed => 1,
        Phase::Held => 2,
        Phase::Contended => 3,
        Phase::Delayed => 4,
        Phase::Waiting => 5,
        Phase::Running => 6,
        Phase::Settled => 7,
    }
}
