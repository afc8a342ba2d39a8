//! Replies of the journal: durable entries let runs go on, and failed writes are retried.

use crate::driver::{Driver, Notification};
use crate::store::AuditEntry;
use std::time::Duration;
use steadfast_engine::{Event, Mode, VertexId, VertexStatus};
use tokio::time::Instant;

impl Driver {
    pub(in crate::driver) fn handle_journal_replies(
        &mut self,
        tickets: &[u64],
        refused: Option<&str>,
    ) {
        let replies = self.journal.answered(tickets, refused);
        if let Some(why) = refused.filter(|_| replies.has_failed) {
            self.notifier.notify(&Notification::StateWriteFailed(why));
        }
        self.notify_done(&replies.done);
        for event in replies.events {
            self.turn(event);
        }
        if replies.has_recovered {
            self.try_failed_again();
        }
    }

    /// Reports durable audit entries, even if their client has gone.
    pub(in crate::driver) fn notify_done(&mut self, done: &[AuditEntry]) {
        for deed in done {
            self.notifier.notify(&Notification::Done(deed));
        }
    }

    /// Stops a one-shot command that has waited too long for an end record that cannot be written; at once if nothing
    /// was recorded.
    pub(in crate::driver) fn give_up_end_records(&mut self, now: Instant) {
        if self.settings.one_shot && self.journal.give_up(now) {
            self.turn(Event::Stop { grace: Duration::ZERO });
        }
    }

    /// Ends a stop that waits only for a journal that has ended: no begin or end can be stored any more. A running
    /// command keeps its grace period.
    pub(in crate::driver) fn give_up_journal(&mut self) {
        let is_stopping = self.engine.mode() == Mode::Stopping;
        if is_stopping
            && self.journal.has_ended()
            && self.runs.active.values().all(|live| live.closing)
        {
            self.turn(Event::Stop { grace: Duration::ZERO });
        }
    }

    /// Checks failed resources again after the state has become writable: their refused begins get one more attempt.
    pub(in crate::driver) fn try_failed_again(&mut self) {
        let failed: Vec<VertexId> = self
            .graph
            .ids()
            .filter(|id| self.engine.vertex_status(*id) == Some(VertexStatus::Failed))
            .collect();
        for id in failed {
            self.turn(Event::Look(id));
        }
    }
}
