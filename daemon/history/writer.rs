//! The one writer: runs hand in what they are about to change, a thread commits together what waits.

use super::database::{Book, Job, Kept, Unwritten};
use super::renames::{Names, Said};
use super::run_capture::OfRun;
use super::shared_limits::SharedLimits;
use super::{HistoryError, Limits, Reader, database};
use crate::store::database::with_suffix;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use steadfast_resources::PriorStateRecorder;
use tokio::sync::Notify;

/// The time since 1970.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// So much waits at most before who hands in more waits too.
const QUEUE: usize = 256;

/// More runs than are under way at once.
const AT_ONCE: u64 = 256;

/// How often it is looked for what has become too old.
const TIDY: Duration = Duration::from_hours(1);

/// The history of a state directory, as far as it is written. Nothing is opened before there is something to keep.
pub struct History {
    pub(super) state_directory: PathBuf,
    pub(super) limits: SharedLimits,
    pub(super) clock: Clock,
    front: Mutex<Front>,
    /// Why the last attempt to write it failed, if it did.
    trouble: Unkept,
    /// Told when the thread has ended though nobody asked it to.
    broken: Arc<Notify>,
    pub(super) live: Live,
    /// What the graph says of names.
    pub(super) said: Said,
    /// Whoever had it before did not come to an end, and nobody has asked yet where that was.
    was_cut_off: AtomicBool,
}

/// The runs that have kept something and go on: none of it is let go of.
type Live = Arc<Mutex<BTreeSet<u64>>>;

#[derive(Clone, Debug, Default)]
struct Unkept(Arc<Mutex<Option<String>>>);

impl Unkept {
    fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What came of an attempt.
    fn note<T>(&self, result: &Result<T, HistoryError>) {
        let why = result.as_ref().err().map(ToString::to_string);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

#[derive(Default)]
struct Front {
    writer: Option<(SyncSender<Handed>, JoinHandle<()>)>,
    /// The number of the next entry.
    next: u64,
    /// It was said that nothing can be kept.
    has_warned: bool,
}

pub(super) type Written = Result<(), HistoryError>;

type Reply = SyncSender<Written>;

/// What a run hands in, and who waits for it.
enum Handed {
    Job(Job, Option<Reply>),
    /// All before it is written.
    Flush(SyncSender<()>),
    /// Something was said of names.
    Named,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl History {
    /// Of this state directory, which must be held.
    #[must_use]
    pub fn new(state_directory: PathBuf, limits: Limits) -> Arc<Self> {
        let wall = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::with_clock(state_directory, limits, Arc::new(wall))
    }

    /// The same, by another clock.
    #[must_use]
    pub fn with_clock(state_directory: PathBuf, limits: Limits, clock: Clock) -> Arc<Self> {
        let log = with_suffix(&database(&state_directory), "-wal");
        // A clean end leaves none.
        let was_cut_off =
            log.metadata().is_ok_and(|log| log.len() > 0) || cut_off(&state_directory).exists();
        Arc::new(Self {
            was_cut_off: AtomicBool::new(was_cut_off),
            state_directory,
            limits: SharedLimits::new(limits),
            clock,
            front: Mutex::default(),
            trouble: Unkept::default(),
            broken: Arc::default(),
            live: Live::default(),
            said: Said::default(),
        })
    }

    /// Who keeps for one run of a resource; none where nothing is kept.
    #[must_use]
    pub fn keeper(
        self: &Arc<Self>,
        resource: &str,
        cause: &str,
    ) -> Option<Arc<dyn PriorStateRecorder>> {
        self.keeper_of(resource, cause, 0)
    }

    /// The same for a run that goes on with another; 0: with none.
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

    /// Drops what has become too old, now and from time to time, where anything is kept.
    pub fn drop_expired(&self) {
        if database(&self.state_directory).exists()
            && let Err(error) = self.open(&mut self.lock())
        {
            tracing::warn!(event = "history_unkept", "{error}");
        }
    }

    /// Waits until the thread that writes it has ended though nobody asked it to; [`Self::tend`] starts another.
    pub async fn broken(&self) {
        self.broken.notified().await;
    }

    /// Whether whoever had it before was cut off, and nobody has asked yet where.
    #[must_use]
    pub fn was_cut_off(&self) -> bool {
        self.was_cut_off.load(Ordering::SeqCst)
    }

    /// Where whoever had it before may have been cut off in the middle of a change: the directories of what its last runs have changed; none once that
    /// is seen to.
    #[must_use]
    pub fn where_cut_off(&self) -> BTreeSet<PathBuf> {
        if !self.was_cut_off() {
            return BTreeSet::new();
        }
        let listed = self.read().and_then(|reader| {
            reader.map_or_else(|| Ok(Vec::new()), |reader| reader.last_runs(AT_ONCE))
        });
        let listed = listed.unwrap_or_else(|error| {
            tracing::debug!(%error, "the paths of the last changes cannot be read");
            Vec::new()
        });
        let paths = listed.into_iter().filter_map(|listed| Some(listed.entry()?.path));
        paths.filter_map(|path| path.parent().map(Path::to_owned)).collect()
    }

    /// What was left there is gone.
    pub fn is_seen_to(&self) {
        if self.was_cut_off.swap(false, Ordering::SeqCst)
            && let Err(error) = std::fs::remove_file(cut_off(&self.state_directory))
            && error.kind() != ErrorKind::NotFound
        {
            tracing::debug!(%error, "retried after the next start");
        }
    }

    /// Whoever only looks opens it and closes it well: that does not make anybody else forget.
    fn remember_cut_off(&self) {
        let mark = cut_off(&self.state_directory);
        if self.was_cut_off()
            && !mark.exists()
            && let Err(error) = std::fs::File::create(&mark).and_then(|file| file.sync_all())
        {
            tracing::debug!(%error, "the interrupted run is remembered until this session ends");
        }
    }

    /// Why it cannot be written, as far as was tried.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.trouble.get()
    }

    /// What is kept, as of now; none where nothing is.
    pub fn read(&self) -> Result<Option<Reader>, HistoryError> {
        self.flush();
        Reader::open(&self.state_directory)
    }

    /// Waits until all that was handed in is written.
    pub fn flush(&self) {
        let Some(sender) = self.lock().writer.as_ref().map(|(sender, _)| sender.clone()) else {
            return;
        };
        let (told, written) = sync_channel(1);
        if sender.send(Handed::Flush(told)).is_ok() {
            // Where the thread has ended, nothing more is written.
            written.recv().unwrap_or_default();
        }
    }

    /// Writes all that was handed in, and lets go of the database: nothing of it is left beside. It is opened anew where it is needed.
    pub fn close(&self) {
        if self.has_to_rename()
            && let Err(error) = self.open(&mut self.lock())
        {
            tracing::debug!(%error, "records under former names are moved at a later start");
        }
        self.let_go();
    }

    /// Wakes the thread, where there is one that sleeps.
    pub(super) fn nudge(&self) {
        if let Ok(front) = self.front.try_lock()
            && let Some((sender, _)) = &front.writer
        {
            // Where there is no room, it is awake.
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

    fn open(&self, front: &mut Front) -> Result<(), HistoryError> {
        if front.writer.as_ref().is_some_and(|(_, thread)| !thread.is_finished()) {
            return Ok(());
        }
        let opened = self.open_anew(front);
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

    /// Hands in an entry, in the order of its number; answers when it is durable, if it is waited for.
    pub(super) fn hand_in(
        &self,
        mut kept: Kept,
        run: &AtomicU64,
        wait: bool,
    ) -> Result<u64, HistoryError> {
        let mut front = self.lock();
        self.open(&mut front)?;
        let number = front.next;
        front.next += 1;
        kept.stored.number = number;
        // A run has the number of its first entry.
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

    /// Hands in what is no entry; answers when it is durable.
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

    pub(super) fn settle(&self, number: u64, made: bool) {
        let front = self.lock();
        if let Some((sender, _)) = &front.writer {
            // A thread that has ended has said so, and what it has not undone does no harm.
            sender.send(Handed::Job(Job::Settle(number, made), None)).unwrap_or_default();
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

/// There as long as it is owed to see to what was cut off.
fn cut_off(state_directory: &Path) -> PathBuf {
    database(state_directory).with_file_name("cut-off")
}

impl Drop for History {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// However the thread ends, it is known, unless it was asked to.
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

/// The thread.
struct Writer {
    state_directory: PathBuf,
    limits: SharedLimits,
    clock: Clock,
    /// None after it has failed.
    book: Option<Book>,
    trouble: Unkept,
    live: Live,
    said: Said,
}

impl Writer {
    /// True where it ends since nobody will hand in anything more.
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
            // All that was kept before it was said has been handed in, and is taken out below.
            let names = self.said.take();
            #[cfg(debug_assertions)]
            if crate::fault_injection::suffer("history").is_err() {
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

    /// Moves what is kept under former names; later, where that cannot be done now.
    fn rename(&mut self, names: Option<Names>) {
        let Some(names) = names else { return };
        let now = (self.clock)();
        let renamed = self.book.as_mut().map(|book| book.rename(&names, now));
        if !matches!(renamed, Some(Ok(()))) {
            tracing::debug!(?renamed, "records under former names are not moved yet");
            self.said.give_back(names);
        }
    }

    /// Together; where that fails, each by itself: one that is too much must not take the others with it.
    fn write_batch(&mut self, jobs: &[Job], replies: &[Option<Reply>]) {
        let together = self.write(jobs);
        for (job, reply) in jobs.iter().zip(replies) {
            let alone = match &together {
                Err(_) if jobs.len() > 1 => self.write(std::slice::from_ref(job)),
                other => other.clone(),
            };
            self.trouble.note(&alone);
            match (reply, alone) {
                // Who gave up waiting will not change anything.
                (Some(reply), result) => reply.send(result).unwrap_or_default(),
                (None, Ok(())) => {}
                (None, Err(why)) => tracing::warn!(event = "history_unkept", "{why}"),
            }
        }
    }

    fn write(&mut self, jobs: &[Job]) -> Written {
        let now = (self.clock)();
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
        // After a failed sync nothing is asked of the old handle again; a damaged one is moved aside.
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
