//! The writer of the history: runs hand in prior states, and one thread commits them in batches.

use super::batch_writer::{BatchWriter, Handed, LastProblem, Live, QUEUE, Written};
use super::database::{Job, StoredPrior};
use super::interrupted_writer::cut_off;
use super::renames::Said;
use super::run_capture::OfRun;
use super::shared_limits::SharedLimits;
use super::{HistoryError, Limits, Reader, database, last_number};
use crate::file_identity::FileIdentity;
use crate::store::database::with_suffix;
use crate::store::retention_clock::since_boot;
use crate::store::write_ahead_log::is_emptied;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use steadfast_resources::PriorStateRecorder;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A clock that returns the time since 1970, or since the boot.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The history of a state directory, open for writing. The database is opened when the first entry arrives.
pub struct History {
    pub(super) state_directory: PathBuf,
    pub(super) limits: SharedLimits,
    pub(super) clock: Clock,
    /// The time since the boot.
    since_boot: Clock,
    front: Mutex<Front>,
    /// The error of the last write, if it failed.
    problem: LastProblem,
    /// Notified when the thread has ended unexpectedly.
    broken: Arc<Notify>,
    pub(super) live: Live,
    /// The names of the loaded graphs.
    pub(super) said: Said,
    /// True if the previous writer was killed and the affected directories were not cleaned yet.
    pub(super) was_cut_off: AtomicBool,
    /// The state directory of the first use.
    place: OnceLock<FileIdentity>,
    /// The loss of entries since the last session.
    loss: Arc<Mutex<Option<String>>>,
}

#[derive(Default)]
struct Front {
    writer: Option<(SyncSender<Handed>, JoinHandle<()>)>,
    /// The database that the writer has open.
    database: Option<FileIdentity>,
    /// The number of the next entry.
    next: u64,
    has_warned: bool,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl History {
    /// Creates the history of a state directory, of which the caller holds the lock.
    #[must_use]
    pub fn new(state_directory: PathBuf, limits: Limits) -> Arc<Self> {
        let wall = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::with_clocks(state_directory, limits, (Arc::new(wall), Arc::new(since_boot)))
    }

    /// Creates a history that reads the time since 1970 and the time since the boot from given clocks.
    #[must_use]
    pub fn with_clocks(
        state_directory: PathBuf,
        limits: Limits,
        (clock, since_boot): (Clock, Clock),
    ) -> Arc<Self> {
        let log = with_suffix(&database(&state_directory), "-wal");
        // A clean end leaves no write-ahead log.
        let was_cut_off =
            log.metadata().is_ok_and(|log| log.len() > 0) || cut_off(&state_directory).exists();
        Arc::new(Self {
            was_cut_off: AtomicBool::new(was_cut_off),
            state_directory,
            limits: SharedLimits::new(limits),
            clock,
            since_boot,
            front: Mutex::default(),
            problem: LastProblem::default(),
            broken: Arc::default(),
            live: Live::default(),
            said: Said::default(),
            place: OnceLock::new(),
            loss: Arc::default(),
        })
    }

    /// Returns a recorder for one run of a resource; `None` if the history is turned off.
    #[must_use]
    pub fn keeper(
        self: &Arc<Self>,
        resource: &str,
        cause: &str,
    ) -> Option<Arc<dyn PriorStateRecorder>> {
        self.keeper_of(resource, cause, 0)
    }

    /// Returns a recorder for a run that continues another run; `run` is 0 if there is none.
    pub(crate) fn keeper_of(
        self: &Arc<Self>,
        resource: &str,
        cause: &str,
        run: u64,
    ) -> Option<Arc<dyn PriorStateRecorder>> {
        (self.limits.get().total > 0).then(|| {
            Arc::new(OfRun {
                history: Arc::clone(self),
                resource: resource.to_owned(),
                cause: cause.to_owned(),
                run: AtomicU64::new(run),
            }) as Arc<dyn PriorStateRecorder>
        })
    }

    /// Drops expired entries, now and then at a fixed interval, if a database exists or was lost.
    pub fn drop_expired(&self) {
        if let Err(error) = self.check_place() {
            tracing::debug!(%error, "checked again before each entry");
        }
        let was_there =
            || self.limits.get().total > 0 && last_number::path(&self.state_directory).exists();
        if (database(&self.state_directory).exists() || was_there())
            && let Err(error) = self.open(&mut self.lock())
        {
            tracing::warn!(event = "history_write_failed", "{error}");
        }
    }

    /// Takes the loss of entries since the last session, once.
    pub fn take_loss(&self) -> Option<String> {
        self.loss.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until the thread of the writer has ended unexpectedly. The next write starts another thread.
    pub async fn broken(&self) {
        self.broken.notified().await;
    }

    /// Returns the error of the last write, if it failed.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.problem.get()
    }

    /// Opens the history for reading after all pending writes, if it exists. Fails if it is unusable.
    pub fn read(&self) -> Result<Option<Reader>, HistoryError> {
        self.flush();
        Reader::open(&self.state_directory)
    }

    /// Waits until all pending writes are done.
    pub fn flush(&self) {
        let Some(sender) = self.lock().writer.as_ref().map(|(sender, _)| sender.clone()) else {
            return;
        };
        let (told, written) = sync_channel(1);
        if sender.send(Handed::Flush(told)).is_ok() {
            // A thread that has ended writes nothing more.
            written.recv().unwrap_or_default();
        }
    }

    /// Completes all pending writes and closes the database. A later write opens the database again.
    pub fn close(&self) {
        if self.has_to_rename()
            && let Err(error) = self.open(&mut self.lock())
        {
            tracing::debug!(%error, "records under former names are moved at a later start");
        }
        self.let_go();
    }

    /// Wakes the thread of the writer, if there is one.
    pub(super) fn nudge(&self) {
        if let Ok(front) = self.front.try_lock()
            && let Some((sender, _)) = &front.writer
        {
            // A full queue means that the thread is awake.
            drop(sender.try_send(Handed::Named));
        }
    }

    fn let_go(&self) {
        let writer = self.lock().writer.take();
        if let Some((sender, thread)) = writer {
            drop(sender);
            if thread.join().is_err() {
                tracing::error!("the thread of the history panicked");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Front> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the state directory is the one of the first call: in another one, no entry would be found again.
    fn check_place(&self) -> Result<(), HistoryError> {
        let path = || self.state_directory.display().to_string();
        let Some(place) = self.place.get() else {
            let place =
                FileIdentity::of(&self.state_directory).map_err(|error| match error.kind() {
                    ErrorKind::NotFound | ErrorKind::NotADirectory => HistoryError::Gone(path()),
                    _ => HistoryError::Database { path: path(), why: error.to_string() },
                })?;
            // A concurrent call has recorded the same directory.
            drop(self.place.set(place));
            return Ok(());
        };
        if place.change().is_none() { Ok(()) } else { Err(HistoryError::Gone(path())) }
    }

    /// Checks that the files of an open database are in their places. The thread of the writer checks the write-ahead
    /// log.
    pub fn check_files(&self) {
        let mut front = self.lock();
        Self::leave_removed(&mut front);
        if let Some((sender, _)) = &front.writer {
            // A full queue means that the thread is awake.
            drop(sender.try_send(Handed::Check));
        }
    }

    /// Ends a writer if its database was removed, replaced or truncated: nobody would find its entries again.
    fn leave_removed(front: &mut Front) {
        let is_changed = |database: &mut FileIdentity| {
            database.change().is_some() || is_emptied(database.path())
        };
        let Some(database) = front.database.take_if(is_changed) else { return };
        if let Some((sender, thread)) = front.writer.take() {
            drop(sender);
            drop(thread.join());
        }
        let path = database.path().display();
        if database.change().is_none() {
            tracing::error!(
                event = "history_lost",
                "{path} was truncated while in use; entries are lost"
            );
        } else {
            tracing::error!(
                event = "history_lost",
                "the history was removed while in use, and is recreated: {path}"
            );
        }
    }

    fn open(&self, front: &mut Front) -> Result<(), HistoryError> {
        Self::leave_removed(front);
        if front.writer.as_ref().is_some_and(|(_, thread)| !thread.is_finished()) {
            return Ok(());
        }
        let opened = self.open_anew(front);
        let path = database(&self.state_directory);
        front.database = FileIdentity::of(&path).ok().filter(|_| opened.is_ok());
        self.problem.note(&opened);
        opened
    }

    fn open_anew(&self, front: &mut Front) -> Result<(), HistoryError> {
        self.remember_cut_off();
        let (sender, handed) = sync_channel(QUEUE);
        let (told, opened) = sync_channel(1);
        let writer = BatchWriter {
            state_directory: self.state_directory.clone(),
            limits: self.limits.clone(),
            clock: Arc::clone(&self.clock),
            since_boot: Arc::clone(&self.since_boot),
            retention: None,
            book: None,
            tidied: Instant::now(),
            problem: self.problem.clone(),
            live: Arc::clone(&self.live),
            said: self.said.clone(),
            is_first: front.next == 0,
            loss: Arc::clone(&self.loss),
        };
        let broken = Arc::clone(&self.broken);
        let thread = std::thread::Builder::new().name("history".to_owned());
        let thread = thread.spawn(move || writer.open_and_run(&handed, &told, broken));
        let thread = thread.map_err(|error| self.refuse(error.to_string()))?;
        let ended = |_ended| self.refuse("the history thread has ended".to_owned());
        let next = opened.recv().map_err(ended)??;
        front.next = next.max(front.next);
        front.writer = Some((sender, thread));
        Ok(())
    }

    /// Hands in an entry and returns its number. With `wait`, the entry is durable on return.
    pub(super) fn hand_in(
        &self,
        kept: StoredPrior,
        run: &AtomicU64,
        wait: bool,
    ) -> Result<u64, HistoryError> {
        let (number, answer) = self.begin(kept, run, wait)?;
        answer.map_or(Ok(()), |answer| self.wait_for(&answer))?;
        Ok(number)
    }

    /// Waits until an entry is durable.
    pub(super) fn wait_for(&self, answer: &Receiver<Written>) -> Written {
        answer.recv().map_err(|_ended| self.refuse("the history thread has ended".to_owned()))?
    }

    /// Hands in an entry and returns its number. With `wants_answer`, an answer comes when the entry is durable.
    pub(super) fn begin(
        &self,
        mut kept: StoredPrior,
        run: &AtomicU64,
        wants_answer: bool,
    ) -> Result<(u64, Option<Receiver<Written>>), HistoryError> {
        self.check_place()?;
        let mut front = self.lock();
        self.open(&mut front)?;
        let number = front.next;
        front.next += 1;
        kept.stored.number = number;
        // The number of a run is that of its first entry.
        kept.stored.run = run
            .compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst)
            .map_or_else(|first| first, |_| number);
        self.live.lock().unwrap_or_else(PoisonError::into_inner).insert(kept.stored.run);
        let (reply, answer) = sync_channel(1);
        let job = Handed::Job(Job::Keep(Box::new(kept)), wants_answer.then_some(reply));
        let sender = front.writer.as_ref().map(|(sender, _)| sender);
        let ended = || self.refuse("the history thread has ended".to_owned());
        sender.ok_or_else(ended)?.send(job).map_err(|_ended| ended())?;
        Ok((number, wants_answer.then_some(answer)))
    }

    /// Hands in a job other than an entry, and waits until it is durable.
    pub(super) fn hand_in_and_wait(&self, job: Job) -> Written {
        let mut front = self.lock();
        self.open(&mut front)?;
        let (reply, answer) = sync_channel(1);
        let sender = front.writer.as_ref().map(|(sender, _)| sender);
        let ended = || self.refuse("the history thread has ended".to_owned());
        let job = Handed::Job(job, Some(reply));
        sender.ok_or_else(ended)?.send(job).map_err(|_ended| ended())?;
        drop(front);
        answer.recv().map_err(|_ended| ended())?
    }

    /// Hands in the result of a change, without waiting.
    pub(super) fn hand_over(&self, job: Job) {
        let front = self.lock();
        if let Some((sender, _)) = &front.writer {
            // A failed thread has reported its failure; a missing result does no harm.
            sender.send(Handed::Job(job, None)).unwrap_or_default();
        }
    }

    fn refuse(&self, why: String) -> HistoryError {
        HistoryError::Database { path: database(&self.state_directory).display().to_string(), why }
    }

    pub(super) fn warn(&self, why: &HistoryError) {
        let first = !std::mem::replace(&mut self.lock().has_warned, true);
        if first {
            tracing::warn!(
                event = "history_write_failed",
                "the prior state was not recorded: {why}"
            );
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.let_go();
    }
}
