//! The thread of the history: commits waiting entries together, drops expired ones, and renames entries.

use super::database::{Book, Job, Unwritten};
use super::renames::{Names, Said};
use super::shared_limits::SharedLimits;
use super::writer::Clock;
use super::{HistoryError, database};
use crate::store::retention_clock::RetentionClock;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The length of the queue of entries; a full queue makes the sender wait.
pub(super) const QUEUE: usize = 256;

/// The interval at which expired entries are dropped.
const TIDY: Duration = Duration::from_hours(1);

/// The active runs that have entries; these entries are not dropped.
pub(super) type Live = Arc<Mutex<BTreeSet<u64>>>;

/// The error of the last write, if it failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Unkept(Arc<Mutex<Option<String>>>);

impl Unkept {
    pub(super) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn note<T>(&self, result: &Result<T, HistoryError>) {
        let why = result.as_ref().err().map(ToString::to_string);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

/// The result of a write.
pub(super) type Written = Result<(), HistoryError>;

/// The channel of a writer that waits until its entry is durable.
pub(super) type Reply = SyncSender<Written>;

/// A message to the thread.
pub(super) enum Handed {
    Job(Job, Option<Reply>),
    /// A request for a reply when all earlier messages are written.
    Flush(SyncSender<()>),
    /// A wake-up after the names have changed.
    Named,
}

/// A guard that reports an unexpected end of the thread, even by a panic.
struct Ends {
    broken: Arc<Notify>,
    in_order: bool,
}

impl Drop for Ends {
    fn drop(&mut self) {
        if !self.in_order {
            self.broken.notify_one();
        }
    }
}

/// The state of the thread.
pub(super) struct BatchWriter {
    pub(super) state_directory: PathBuf,
    pub(super) limits: SharedLimits,
    pub(super) clock: Clock,
    pub(super) since_boot: Clock,
    pub(super) retention: Option<RetentionClock>,
    /// The open database; `None` after a failure.
    pub(super) book: Option<Book>,
    pub(super) trouble: Unkept,
    pub(super) live: Live,
    pub(super) said: Said,
}

impl BatchWriter {
    /// Opens the database, replies with the number of the next entry, and writes until the history is closed.
    pub(super) fn open_and_run(
        mut self,
        handed: &Receiver<Handed>,
        opened: &SyncSender<Result<u64, HistoryError>>,
        broken: Arc<Notify>,
    ) {
        match Book::open(&self.state_directory, self.limits.get()) {
            Ok(book) => {
                opened.send(Ok(book.next)).unwrap_or_default();
                self.book = Some(book);
                let mut ends = Ends { broken, in_order: false };
                ends.in_order = self.run(handed);
            }
            Err(error) => opened.send(Err(error)).unwrap_or_default(),
        }
    }

    /// Runs the thread. Returns true if the history was closed, false after a failure.
    fn run(mut self, handed: &Receiver<Handed>) -> bool {
        self.write(&[]).unwrap_or_else(
            |why| tracing::debug!(%why, "old history entries could not be removed"),
        );
        self.rename(self.said.take());
        loop {
            let first = match handed.recv_timeout(TIDY) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    self.rename(self.said.take());
                    return true;
                }
            };
            // All entries handed in before the names arrived are in the channel, and are taken below.
            let names = self.said.take();
            #[cfg(feature = "fault-injection")]
            if crate::fault_injection::inject_fault("history").is_err() {
                return false;
            }
            let (mut jobs, mut replies, mut flushed) = (Vec::new(), Vec::new(), Vec::new());
            for one in first.into_iter().chain(handed.try_iter().take(QUEUE)) {
                match one {
                    Handed::Job(job, reply) => {
                        jobs.push(job);
                        replies.push(reply);
                    }
                    Handed::Flush(told) => flushed.push(told),
                    Handed::Named => {}
                }
            }
            self.write_batch(&jobs, &replies);
            self.rename(names);
            for told in flushed {
                told.send(()).unwrap_or_default();
            }
        }
    }

    /// Moves entries to new names; keeps the names for a later attempt after a failure.
    fn rename(&mut self, names: Option<Names>) {
        let Some(names) = names else { return };
        let now = (self.clock)();
        let renamed = self.book.as_mut().map(|book| book.rename(&names, now));
        if !matches!(renamed, Some(Ok(()))) {
            tracing::debug!(?renamed, "records under former names are not moved yet");
            self.said.give_back(names);
        }
    }

    /// Writes a batch in one transaction; after a failure each job by itself, so that one cannot fail the others.
    fn write_batch(&mut self, jobs: &[Job], replies: &[Option<Reply>]) {
        let together = self.write(jobs);
        for (job, reply) in jobs.iter().zip(replies) {
            let alone = match &together {
                Err(_) if jobs.len() > 1 => self.write(std::slice::from_ref(job)),
                other => other.clone(),
            };
            self.trouble.note(&alone);
            match (reply, alone) {
                // A run that no longer waits makes no change.
                (Some(reply), result) => reply.send(result).unwrap_or_default(),
                (None, Ok(())) => {}
                (None, Err(why)) => tracing::warn!(event = "history_unkept", "{why}"),
            }
        }
    }

    /// Returns the time of retention.
    fn retention_time(&mut self) -> Duration {
        let beside = || RetentionClock::beside(&database(&self.state_directory));
        let clock = self.retention.get_or_insert_with(beside);
        clock.read((self.clock)(), (self.since_boot)())
    }

    fn write(&mut self, jobs: &[Job]) -> Written {
        let now = self.retention_time();
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let limits = self.limits.get();
        if let Some(book) = &mut self.book {
            book.limits = limits;
            match book.commit(jobs, now, &live) {
                Ok(()) => return Ok(()),
                Err(Unwritten::Beyond) => return Err(HistoryError::Beyond(limits.total)),
                Err(Unwritten::Fault(error)) => {
                    tracing::debug!(%error, "the history was reopened");
                }
            }
        }
        // A handle is not used again after a failed sync; a damaged database is moved aside.
        self.book = None;
        let mut book = Book::open(&self.state_directory, limits)?;
        let written = book.commit(jobs, now, &live).map_err(|why| match why {
            Unwritten::Beyond => HistoryError::Beyond(limits.total),
            Unwritten::Fault(error) => {
                let path = database(&self.state_directory).display().to_string();
                HistoryError::Database { path, why: error.to_string() }
            }
        });
        self.book = Some(book);
        written
    }
}
