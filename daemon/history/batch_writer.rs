//! The thread of the history: commits waiting entries together, drops expired ones, and renames entries.

use super::database::{Book, Job, Unwritten};
use super::renames::{Names, Said};
use super::shared_limits::SharedLimits;
use super::writer::Clock;
use super::{HistoryError, database};
use crate::store::retention_clock::RetentionClock;
use crate::store::write_ahead_log::QUIET;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The length of the queue of entries; a full queue makes the sender wait.
pub(super) const QUEUE: usize = 256;

/// The interval at which expired entries are dropped.
const TIDY: Duration = Duration::from_hours(1);

/// The active runs that have entries; these entries are not dropped.
pub(super) type Live = Arc<Mutex<BTreeSet<u64>>>;

/// The error of the last write, if it failed.
#[derive(Clone, Debug, Default)]
pub(super) struct LastProblem(Arc<Mutex<Option<String>>>);

impl LastProblem {
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
    /// A request to check the write-ahead log.
    Check,
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
    /// The time at which expired entries were dropped.
    pub(super) tidied: Instant,
    pub(super) problem: LastProblem,
    pub(super) live: Live,
    pub(super) said: Said,
    /// This process had no history open before: a loss is not reported yet.
    pub(super) is_first: bool,
    pub(super) loss: Arc<Mutex<Option<String>>>,
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
            Ok(mut book) => {
                if let Some(loss) = book.loss.take().filter(|_| self.is_first) {
                    tracing::error!(event = "history_lost", "{loss}");
                    *self.loss.lock().unwrap_or_else(PoisonError::into_inner) = Some(loss);
                }
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
            let is_ahead = self.book.as_ref().is_some_and(|book| book.log.is_ahead());
            let first = match handed.recv_timeout(if is_ahead { QUIET } else { TIDY }) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    self.check_log();
                    self.rename(self.said.take());
                    if let Some(book) = &mut self.book {
                        book.numbers.close(book.next);
                    }
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
                    Handed::Named | Handed::Check => {}
                }
            }
            self.check_log();
            if !jobs.is_empty() || self.tidied.elapsed() >= TIDY {
                self.tidied = Instant::now();
                self.write_batch(&jobs, &replies);
            }
            self.rename(names);
            for told in flushed {
                told.send(()).unwrap_or_default();
            }
        }
    }

    /// Saves a removed write-ahead log, gives up an overwritten one, and copies the log into the database after a quiet
    /// second.
    fn check_log(&mut self) {
        let path = database(&self.state_directory);
        let path = path.display();
        let is_overwritten = |book: &mut Book| book.log.is_overwritten(&book.connection);
        if let Some(book) = self.book.take_if(is_overwritten) {
            let what = format!("{path}-wal was truncated or overwritten while in use");
            match book.log.give_up(book.connection) {
                Ok(false) => {
                    tracing::warn!(event = "log_saved", "{what}; its content was in the database");
                }
                Ok(true) => tracing::error!(event = "history_lost", "{what}; entries are lost"),
                Err(why) => tracing::error!(event = "history_lost", "{what}: {why}"),
            }
            return;
        }
        let Some(book) = &mut self.book else { return };
        match book.log.save(&book.connection) {
            Ok(true) => self.book = None,
            Ok(false) => book.log.copy_when_quiet(&book.connection),
            // The open connection is the only one with the last entries.
            Err(error) => tracing::debug!(%error, "the history cannot be saved yet"),
        }
    }

    /// Moves entries to new names; keeps the names for a later attempt after a failure.
    fn rename(&mut self, names: Option<Names>) {
        let Some(names) = names else { return };
        let now = (self.clock)();
        let renamed = self.book.as_mut().map(|book| {
            let renamed = book.rename(&names, now);
            book.log.note_commit(&book.connection);
            renamed
        });
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
            self.problem.note(&alone);
            match (reply, alone) {
                // A run that no longer waits makes no change.
                (Some(reply), result) => reply.send(result).unwrap_or_default(),
                (None, Ok(())) => {}
                (None, Err(why)) => tracing::warn!(event = "history_write_failed", "{why}"),
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
            let committed = book.commit(jobs, now, &live);
            book.log.note_commit(&book.connection);
            match committed {
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
        book.log.note_commit(&book.connection);
        self.book = Some(book);
        written
    }
}
