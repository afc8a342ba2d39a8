//! Construction and marks of a vertex in the oracle's records.

use super::{Cause, Contention, Need, Phase, Vertex, Watched, When};
use steadfast_engine::{Stamp, Tick, VertexSpec};

impl Vertex {
    pub(crate) fn new(declared: &VertexSpec, now: Tick) -> Self {
        let retries = declared.meta.retry.unwrap_or(u32::MAX);
        Self {
            declared: declared.clone(),
            ancestors: Vec::new(),
            need: Need::No,
            cause: None,
            look: None,
            phase: Phase::Rest,
            running: None,
            good: (0, 0),
            seen: 0,
            moved: (0, 0),
            excused: (0, 0),
            budget: (retries, retries),
            failures: 0,
            ill: false,
            backoff_sure: true,
            owed: None,
            owed_stamp: Stamp::NEVER,
            owed_unsure: false,
            watched: Watched::No,
            awaited: None,
            unknown_until: None,
            full_at: 0,
            bucket_unsure: false,
            polls: 0,
            polled: false,
            loaded: now,
            active: now,
            ticket: (None, None),
            asked: true,
            asked_surely: true,
            done: false,
            received: None,
            contention: Contention::default(),
            put_off: (None, None),
            repairs_suspended: false,
            queued: false,
        }
    }

    /// Returns true if a run that is not a look is in progress.
    pub(crate) fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|run| !run.look)
    }

    pub(crate) fn must(&mut self, when: When, cause: Option<Cause>) {
        let before = self.need;
        self.polled = false;
        self.need = match before {
            Need::No => Need::Must { low: when, high: when },
            Need::Maybe(low) => Need::Must { low: low.min(when), high: when },
            Need::Must { low, high } => Need::Must { low, high },
        };
        self.cause = match before {
            Need::No => cause,
            Need::Maybe(_) | Need::Must { .. } if self.cause == cause => cause,
            Need::Maybe(_) | Need::Must { .. } => None,
        };
    }

    pub(crate) fn may(&mut self, when: When) {
        if self.need == Need::No {
            self.need = Need::Maybe(when);
        }
        self.cause = None;
    }

    /// Gives the vertex a new budget, certainly or possibly (E-10).
    pub(crate) fn refill(&mut self, sure: bool) {
        let full = self.declared.meta.retry.unwrap_or(u32::MAX);
        self.budget.1 = self.budget.1.max(full);
        if sure {
            self.budget.0 = self.budget.0.max(full);
        }
        self.backoff_sure &= self.failures == 0;
    }
}
