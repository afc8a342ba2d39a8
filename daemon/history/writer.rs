//! The writer of the history: runs hand in prior states, and one thread commits them in batches.

use super::database::{Book, Job, StoredPrior, Unwritten};
use super::interrupted_writer::cut_off;
use super::placement::Placement;
use super::renames::{Names, Said};
use super::run_capture::OfRun;
use super::shared_limits::SharedLimits;
use super::{HistoryError, Limits, Reader, database};
use crate::file_identity::FileIdentity;
use crate::store::database::with_suffix;
use crate::store::retention_clock::{RetentionClock, since_boot};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use steadfast_resources::PriorStateRecorder;
use tokio::sync::Notify;

/// A clock that returns the time since 1970, or since the boot.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The length of the queue of entries; a full queue makes the sender wait.
const QUEUE: usize = 256;

/// The interval at which expired entries are dropped.
const TIDY: Duration = Duration::from_hours(1);

/// The history of a state directory, open for writing. The database is opened when the first entry arrives.
pub struct History {
    pub(super) state_directory: PathBuf,
    pub(super) limits: SharedLimits,
    pub(super) clock: Clock,
    /// The time since the boot.
    since_boot: Clock,
    front: Mutex<Front>,
    /// The error of the last write, if it failed.
    trouble: Unkept,
    /// Notified when the thread has ended unexpectedly.
    broken: Arc<Notify>,
    pub(super) live: Live,
    /// The names of the loaded graphs.
    pub(super) said: Said,
    /// True if the previous writer was killed and the affected directories were not cleaned yet.
    pub(super) was_cut_off: AtomicBool,
    /// The state directory of the first use.
    placement: Placement,
}

/// The active runs that have entries; these entries are not dropped.
type Live = Arc<Mutex<BTreeSet<u64>>>;

#[derive(Clone, Debug, Default)]
struct Unkept(Arc<Mutex<Option<String>>>);

impl Unkept {
    fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note<T>(&self, result: &Result<T, HistoryError>) {
        let why = result.as_ref().err().map(ToString::to_string);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

#[derive(Default)]
struct Front {
    writer: Option<(SyncSender<Handed>, JoinHandle<()>)>,
    /// The database that the writer has open.
    place: Option<FileIdentity>,
    /// The number of the next entry.
    next: u64,
    has_warned: bool,
}

pub(super) type Written = Result<(), HistoryError>;

type Reply = SyncSender<Written>;

enum Handed {
    Job(Job, Option<Reply>),
    /// A request for a reply when all earlier messages are written.
    Flush(SyncSender<()>),
    /// A wake-up after the names have changed.
    Named,
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
            trouble: Unkept::default(),
            broken: Arc::default(),
            live: Live::default(),
            said: Said::default(),
            placement: Placement::default(),
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

    /// Drops expired entries, now and then at a fixed interval, if a database exists.
    pub fn drop_expired(&self) {
        if let Err(error) = self.placement.check(&self.state_directory) {
            tracing::debug!(%error, "checked again before each entry");
        }
        if database(&self.state_directory).exists()
            && let Err(error) = self.open(&mut self.lock())
        {
            tracing::warn!(event = "history_unkept", "{error}");
        }
    }

    /// Waits until the thread of the writer has ended unexpectedly. The next write starts another thread.
    pub async fn broken(&self) {
        self.broken.notified().await;
    }

    /// Returns the error of the last write, if it failed.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.trouble.get()
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

    /// Ends a writer whose database was removed or replaced: nobody would find its entries again.
    fn leave_removed(front: &mut Front) {
        let Some(place) = front.place.take_if(|place| !place.is_in_place()) else { return };
        if let Some((sender, thread)) = front.writer.take() {
            drop(sender);
            drop(thread.join());
        }
        tracing::error!(
            event = "history_lost",
            "the history was removed while in use, and is recreated: {}",
            place.path().display()
        );
    }

    fn open(&self, front: &mut Front) -> Result<(), HistoryError> {
        Self::leave_removed(front);
        if front.writer.as_ref().is_some_and(|(_, thread)| !thread.is_finished()) {
            return Ok(());
        }
        let opened = self.open_anew(front);
        front.place = opened.is_ok().then(|| FileIdentity::of(&database(&self.state_directory)));
        self.trouble.note(&opened);
        opened
    }

    fn open_anew(&self, front: &mut Front) -> Result<(), HistoryError> {
        self.remember_cut_off();
        let (sender, handed) = sync_channel(QUEUE);
        let (told, opened) = sync_channel(1);
        let mut writer = Writer {
            state_directory: self.state_directory.clone(),
            limits: self.limits.clone(),
            clock: Arc::clone(&self.clock),
            since_boot: Arc::clone(&self.since_boot),
            retention: None,
            book: None,
            trouble: self.trouble.clone(),
            live: Arc::clone(&self.live),
            said: self.said.clone(),
        };
        let broken = Arc::clone(&self.broken);
        let thread = std::thread::Builder::new().name("history".to_owned());
        let thread =
            thread.spawn(move || match Book::open(&writer.state_directory, writer.limits.get()) {
                Ok(book) => {
                    told.send(Ok(book.next)).unwrap_or_default();
                    writer.book = Some(book);
                    let mut ends = Ends { broken, in_order: false };
                    ends.in_order = writer.run(&handed);
                }
                Err(error) => told.send(Err(error)).unwrap_or_default(),
            });
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
        mut kept: StoredPrior,
        run: &AtomicU64,
        wait: bool,
    ) -> Result<u64, HistoryError> {
        self.placement.check(&self.state_directory)?;
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
        let job = Handed::Job(Job::Keep(Box::new(kept)), wait.then_some(reply));
        let sender = front.writer.as_ref().map(|(sender, _)| sender);
        let ended = || self.refuse("the history thread has ended".to_owned());
        sender.ok_or_else(ended)?.send(job).map_err(|_ended| ended())?;
        drop(front);
        if wait {
            answer.recv().map_err(|_ended| ended())??;
        }
        Ok(number)
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
            tracing::warn!(event = "history_unkept", "the prior state was not recorded: {why}");
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.let_go();
    }
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

struct Writer {
    state_directory: PathBuf,
    limits: SharedLimits,
    clock: Clock,
    since_boot: Clock,
    retention: Option<RetentionClock>,
    /// The open database; `None` after a failure.
    book: Option<Book>,
    trouble: Unkept,
    live: Live,
    said: Said,
}

impl Writer {
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
