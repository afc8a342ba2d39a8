//! The journal of one session: its client, if changes are recorded at all, and the state of failed writes.

use super::client::{JournalClient, PendingReply};
use crate::driver::{DriverEvent, END_RECORD_PATIENCE, Inbox};
use crate::metrics::Histogram;
use crate::store::{AuditEntry, Entry, Journal};
use std::time::Duration;
use steadfast_engine::{Event, RunId};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The journal of one session. Without a client (a plan) nothing is recorded, and every request succeeds at once.
#[derive(Debug)]
pub(in crate::driver) struct SessionJournal {
    client: Option<JournalClient>,
    /// The time since which the state cannot be written, and the reason; `None` while the state can be written.
    write_failure: Option<(Instant, String)>,
    /// True if a one-shot command gave up because the state could not be written.
    gave_up: bool,
    /// Callers that wait until the pause of the daemon is durable.
    pause_waiters: Vec<oneshot::Sender<Option<String>>>,
}

/// The consequences of replies of the journal.
#[derive(Debug, Default)]
pub(in crate::driver) struct JournalReplies {
    /// The events for the engine.
    pub(in crate::driver) events: Vec<Event>,
    /// The audit entries that are durable now.
    pub(in crate::driver) done: Vec<AuditEntry>,
    /// True if the state cannot be written from now on.
    pub(in crate::driver) has_failed: bool,
    /// True if the state can be written again.
    pub(in crate::driver) has_recovered: bool,
}

impl SessionJournal {
    /// Connects to a journal; its replies go to the inbox.
    pub(in crate::driver) fn new(journal: Option<Journal>, inbox: Inbox<DriverEvent>) -> Self {
        let client = journal.map(|journal| {
            JournalClient::new(journal, move |tickets, refused| {
                inbox.put(DriverEvent::JournalReplies(tickets, refused));
            })
        });
        Self { client, write_failure: None, gave_up: false, pause_waiters: Vec::new() }
    }

    /// Returns true if the session has a journal.
    pub(in crate::driver) fn exists(&self) -> bool {
        self.client.is_some()
    }

    /// Returns the number of entries that wait for a commit, and the times of all commits.
    pub(in crate::driver) fn load(&self) -> (usize, Histogram) {
        self.client.as_ref().map(JournalClient::load).unwrap_or_default()
    }

    /// Returns true if no entry is stalled or being tried again.
    pub(in crate::driver) fn is_sound(&self) -> bool {
        self.client.as_ref().is_none_or(JournalClient::is_sound)
    }

    /// Records the begin of a run; returns the event of the engine if nothing is to be waited for.
    pub(in crate::driver) fn begin(
        &mut self,
        run: RunId,
        entries: Vec<Entry>,
        urgent: bool,
    ) -> Option<Event> {
        match &mut self.client {
            Some(client) => client.begin(run, entries, urgent),
            None => Some(Event::Refused(run)),
        }
    }

    /// Records the end of a run; returns the event of the engine if nothing is to be waited for.
    pub(in crate::driver) fn end(
        &mut self,
        run: RunId,
        entries: Vec<Entry>,
        urgent: bool,
    ) -> Option<Event> {
        let Some(client) = &mut self.client else { return Some(Event::Durable(run)) };
        client.end(run, entries, urgent);
        None
    }

    /// Records a pause of the daemon, or its end; returns the event of the engine if nothing is to be waited for.
    pub(in crate::driver) fn save_pause(&mut self, entry: Entry) -> Option<Event> {
        let Some(client) = &mut self.client else { return Some(Event::PauseSaved) };
        client.pause(entry);
        None
    }

    /// Records an entry whose reply nobody waits for.
    pub(in crate::driver) fn record(&mut self, entry: Entry) {
        if let Some(client) = &mut self.client {
            client.other(entry);
        }
    }

    /// Records several entries in this order.
    pub(in crate::driver) fn record_all(&mut self, entries: impl IntoIterator<Item = Entry>) {
        for entry in entries {
            self.record(entry);
        }
    }

    /// Records an entry that must reach the disk soon, although nobody waits for its reply.
    pub(in crate::driver) fn record_soon(&mut self, entry: Entry) {
        if let Some(client) = &mut self.client {
            client.soon(entry);
        }
    }

    /// Records the entries of a command; the reply is sent when all are durable.
    pub(in crate::driver) fn record_command(&mut self, entries: Vec<Entry>, reply: PendingReply) {
        if let Some(client) = &mut self.client {
            client.order(entries, reply);
        }
    }

    /// Processes a reply of the journal.
    pub(in crate::driver) fn answered(
        &mut self,
        tickets: &[u64],
        refused: Option<&str>,
    ) -> JournalReplies {
        let Some(client) = &mut self.client else { return JournalReplies::default() };
        let was_sound = client.is_sound();
        let events = client.answered(tickets, refused);
        let (is_sound, done) = (client.is_sound(), client.take_done());
        let has_failed = refused.is_some() && was_sound;
        if let Some(why) = refused.filter(|_| was_sound) {
            self.write_failure = Some((Instant::now(), why.to_owned()));
        }
        if is_sound {
            self.write_failure = None;
        }
        self.answer_pause_waiters();
        JournalReplies { events, done, has_failed, has_recovered: is_sound && !was_sound }
    }

    /// Replies when the pause of the daemon is durable, or with the reason why it cannot be stored now.
    pub(in crate::driver) fn when_pause_saved(&mut self, to: oneshot::Sender<Option<String>>) {
        self.pause_waiters.push(to);
        self.answer_pause_waiters();
    }

    fn answer_pause_waiters(&mut self) {
        let reason = self.write_failure.as_ref().map(|(_, why)| why);
        let saves = self.client.as_ref().is_some_and(JournalClient::saves_pause);
        if saves && reason.is_none() {
            return;
        }
        for to in self.pause_waiters.drain(..) {
            // The client may be gone.
            let _gone = to.send(reason.cloned());
        }
    }

    /// Returns the time at which [`SessionJournal::retry`] is due.
    pub(in crate::driver) fn retry_at(&self) -> Option<Instant> {
        self.client.as_ref().and_then(JournalClient::retry_at)
    }

    /// Tries stalled entries again if they are due.
    pub(in crate::driver) fn retry(&mut self, now: Instant) {
        if let Some(client) = &mut self.client {
            client.retry(now);
        }
    }

    /// Returns the time for which a one-shot command waits for a failing end record; zero if nothing was recorded.
    fn patience(&self) -> Duration {
        let has_kept = self.client.as_ref().is_some_and(JournalClient::has_kept);
        if has_kept { END_RECORD_PATIENCE } else { Duration::ZERO }
    }

    /// Gives up if the state could not be written for too long. Returns true the first time.
    pub(in crate::driver) fn give_up(&mut self, now: Instant) -> bool {
        let patience = self.patience();
        let lasts = self.write_failure.as_ref().is_some_and(|(since, _)| now >= *since + patience);
        lasts && !std::mem::replace(&mut self.gave_up, true)
    }

    /// Returns the time waited and the reason, if the session gave up for a state that could not be written.
    pub(in crate::driver) fn given_up(&self) -> Option<(Duration, String)> {
        let (_, why) = self.write_failure.as_ref().filter(|_| self.gave_up)?;
        Some((self.patience(), why.clone()))
    }

    /// Returns true if the journal has ended: no later entry can be stored.
    pub(in crate::driver) fn has_ended(&self) -> bool {
        self.client.as_ref().is_some_and(JournalClient::has_ended)
    }

    /// Waits for all pending entries after the end of the engine: a state command of the last moment is still recorded
    /// and answered. Returns the audit entries that are durable now; other events of the inbox go to `leftover`.
    pub(in crate::driver) fn close(
        &mut self,
        inbox: &Inbox<DriverEvent>,
        leftover: &mut Vec<DriverEvent>,
    ) -> Vec<AuditEntry> {
        let Some(mut client) = self.client.take() else { return Vec::new() };
        for is_last in [false, true] {
            if is_last {
                client.try_last();
            }
            client.flush();
            let mut batch = Vec::new();
            inbox.take(&mut batch);
            for input in batch {
                match input {
                    DriverEvent::JournalReplies(tickets, refused) => {
                        drop(client.answered(&tickets, refused.as_deref()));
                    }
                    other => leftover.push(other),
                }
            }
        }
        client.take_done()
    }
}
