//! Replies of the journal: durable entries let runs go on, and failed writes are retried.

use super::client::JournalClient;
use crate::driver::{Driver, DriverEvent, Notification, UNKEPT};
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
        let Some(keeper) = &mut self.keeper else { return };
        let was_sound = keeper.is_sound();
        let events = keeper.answered(tickets, refused);
        let (sound, done) = (keeper.is_sound(), keeper.take_done());
        if let Some(why) = refused
            && was_sound
        {
            self.audience.hear(&Notification::Unkept(why));
            self.unkept = Some((Instant::now(), why.to_owned()));
        }
        if sound {
            self.unkept = None;
        }
        self.tell_done(&done);
        for event in events {
            self.turn(event);
        }
        if sound && !was_sound {
            self.try_failed_again();
        }
    }

    /// Reports durable audit entries, even if their client has gone.
    pub(in crate::driver) fn tell_done(&mut self, done: &[AuditEntry]) {
        for deed in done {
            self.audience.hear(&Notification::Done(deed));
        }
    }

    /// Waits for all pending entries after the end of the engine: a state command of the last moment is still recorded
    /// and answered.
    pub(in crate::driver) fn close_keeper(&mut self, mut keeper: JournalClient) {
        for is_last in [false, true] {
            if is_last {
                keeper.try_last();
            }
            keeper.flush();
            let mut batch = Vec::new();
            self.runtime.inbox().take(&mut batch);
            for input in batch {
                match input {
                    DriverEvent::Kept(tickets, refused) => {
                        drop(keeper.answered(&tickets, refused.as_deref()));
                    }
                    other => self.left.push(other),
                }
            }
        }
        self.tell_done(&keeper.take_done());
    }

    /// Stops a one-shot command that has waited too long for an end record that cannot be written; at once if nothing
    /// was recorded.
    pub(in crate::driver) fn give_up_unkept(&mut self, now: Instant) {
        let patience = self.patience();
        let lasts = self.unkept.as_ref().is_some_and(|(since, _)| now >= *since + patience);
        if self.settings.one_shot && lasts && !std::mem::replace(&mut self.given_up, true) {
            self.turn(Event::Stop { grace: Duration::ZERO });
        }
    }

    /// Returns the time for which a one-shot command waits for a failing end record.
    pub(in crate::driver) fn patience(&self) -> Duration {
        let has_kept = self.keeper.as_ref().is_some_and(JournalClient::has_kept);
        if has_kept { UNKEPT } else { Duration::ZERO }
    }

    /// Ends a stop that waits only for a journal that has ended: no begin or end can be stored any more. A running
    /// command keeps its grace period.
    pub(in crate::driver) fn give_up_journal(&mut self) {
        let is_stopping = self.engine.mode() == Mode::Stopping;
        let is_gone = self.keeper.as_ref().is_some_and(JournalClient::has_ended);
        if is_stopping && is_gone && self.runs.0.values().all(|live| live.closing) {
            self.turn(Event::Stop { grace: Duration::ZERO });
        }
    }

    /// Checks failed resources again after the state has become writable: their refused begins get one more attempt.
    pub(in crate::driver) fn try_failed_again(&mut self) {
        let failed: Vec<VertexId> = self
            .table
            .ids()
            .filter(|id| self.engine.vertex_status(*id) == Some(VertexStatus::Failed))
            .collect();
        for id in failed {
            self.turn(Event::Look(id));
        }
    }
}
