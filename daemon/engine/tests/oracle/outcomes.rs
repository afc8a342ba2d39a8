//! The end of a run in the oracle's record of a vertex.

use crate::oracle_log::{Need, Phase, Running, Vertex};

impl Vertex {
    pub(super) fn went_well(&mut self, running: &Running) {
        self.good = (running.start, running.start);
        self.takes_value(running);
        self.phase = Phase::Rest;
        self.failures = 0;
        self.excused = (0, 0);
        self.backoff_sure = true;
        if self.declared.meta.retryreset {
            self.refill(true);
            self.backoff_sure = true;
        }
    }

    pub(super) fn is_held(&mut self, running: &Running) {
        // The result of a hold includes the received value.
        self.takes_value(running);
        self.good.1 = running.start;
        self.phase = Phase::Held;
        self.failures = 0;
        self.excused.0 = 0;
        self.refill(false);
        self.backoff_sure = true;
        self.owed_unsure |= self.owed.is_some();
    }

    /// Records a difference found by a check without an apply.
    pub(super) fn would_change(&mut self, running: &Running) {
        let before = self.failures;
        self.is_held(running);
        if !self.declared.meta.noop {
            // Neither good nor bad: the vertex is run again.
            self.failures = before;
            self.backoff_sure = false;
        }
    }

    /// Expects that the engine shows the consequence of a failure in this turn; with `lenient` it may not.
    pub(super) fn fails(&mut self, running: &Running, lenient: bool) {
        self.failures += 1;
        let was_failed = running.was_failed;
        let (run, since) = (running.run, running.start);
        self.phase = Phase::JustFailed { run, since, was_failed, maybe_good: lenient };
    }

    /// Records a failure that may have been a success: the rules leave that open.
    pub(super) fn fails_perhaps(&mut self, running: &Running) {
        self.fails(running, true);
        self.backoff_sure = false;
    }

    /// Records a failure for good. Marks during the run may be caused by it.
    pub(crate) fn failed(&mut self, when: u64) {
        self.phase = Phase::Failed;
        if let Need::Must { low, .. } = self.need {
            self.need = Need::Maybe(low.min(when));
        }
    }
}
