//! The number of an event, and its publication: an event is shown after it was recorded under its number, or without a
//! number while the log cannot be written.

use super::reserve::Reserve;
use super::writer::{LogWriter, PendingEvent, Work};
use super::{Log, Mark, Unwritable, path, rows, write};
use crate::api::EventKind;
use crate::api::event_data::SessionEnd;
use crate::events::event::{NewEvent, PublishedEvent};
use crate::events::event_queue::WAITING;
use rusqlite::TransactionBehavior;

impl Log {
    /// Writes events and marks in one durable transaction; returns the number of the first event.
    ///
    /// # Errors
    /// [`Unwritable`] if nothing was written.
    pub fn append<'e>(
        &mut self,
        events: impl IntoIterator<Item = &'e (u64, NewEvent)>,
        marks: &[Mark],
    ) -> Result<u64, Unwritable> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let first = self.last_number + 1;
        let (mut number, mut run) = (self.last_number, self.run);
        let mut insert = rows::inserting(&transaction)?;
        for (at, happening) in events {
            number += 1;
            rows::insert(&mut insert, number, *at, happening)?;
            if matches!(happening.kind, EventKind::RunStart(_)) {
                run = Some(number);
                transaction
                    .execute("INSERT INTO run (number) VALUES (?1)", [number.cast_signed()])?;
            }
            if let EventKind::RunEnd(SessionEnd { run: Some(of), .. }) = happening.kind {
                transaction.execute("DELETE FROM run WHERE number = ?1", [of.cast_signed()])?;
            }
        }
        drop(insert);
        for mark in marks {
            write(&transaction, mark)?;
        }
        transaction.commit()?;
        self.write_ahead.note_commit(&self.connection);
        (self.last_number, self.run) = (number, run);
        self.unlooked += number + 1 - first;
        Ok(first)
    }
}

impl LogWriter {
    /// Numbers the written events and sends them to the subscribers.
    pub(super) fn written(&self, work: &mut Work, count: usize, first: u64) {
        let mut next = first;
        let before = work.problem.take();
        if let Some(log) = &work.log {
            work.run = log.run();
            if before.is_some() {
                tracing::warn!(event = "events_written", "the event log can be written again");
            }
            let (last, run) = (log.last_number(), log.run());
            self.shared.progress.send_if_modified(|standing| {
                let is_news = standing.last_number != last || standing.problem.is_some();
                (standing.last_number, standing.run, standing.problem) = (last, run, None);
                is_news
            });
        } else {
            work.problem = before;
        }
        for PendingEvent { event: (at, happening), is_recorded, is_told } in
            work.waiting.drain(..count)
        {
            let number = is_recorded.then_some(next);
            next += u64::from(is_recorded);
            if !is_told {
                self.shared.pass_on(PublishedEvent::new(number, at, happening));
            }
        }
        if work.log.is_some() && work.waiting.is_empty() {
            work.marker(&self.directory).clear();
            // Waiting events come before the reserve.
            if !std::mem::replace(&mut work.is_reserve_tried, true) {
                Reserve::of(&path(&self.directory)).fill();
            }
        }
    }

    /// Handles a failed write: the events are sent without numbers, and stay in memory as far as there is room.
    pub(super) fn unwritten(&self, work: &mut Work, why: &str) {
        self.broken(work, why);
        for draft in work.waiting.iter_mut().filter(|draft| !draft.is_told) {
            draft.is_told = true;
            let (at, happening) = draft.event.clone();
            self.shared.pass_on(PublishedEvent::new(None, at, happening));
        }
        work.waiting.retain(|draft| draft.is_recorded);
        let much = work.waiting.len().saturating_sub(WAITING);
        work.lost += u64::try_from(much).unwrap_or(u64::MAX);
        work.waiting.drain(..much);
        if !work.waiting.is_empty() {
            work.marker(&self.directory).set();
        }
    }
}
