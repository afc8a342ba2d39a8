//! The only writer of a store: a thread that commits all waiting entries together (group commit), and replies to every
//! ticket.

use super::write_ahead_log::QUIET;
use super::{Entry, Store, StoreError, StoredState};
use crate::metrics::Histogram;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The largest number of entries in one transaction: limits the memory of a commit and the wait of later entries.
const BATCH: usize = 1024;

/// The time for which an entry that is not urgent may wait for others to share its sync.
const LINGER: Duration = Duration::from_millis(5);

/// The shortest time between two attempts to reopen the handle.
const REOPEN_EVERY: Duration = Duration::from_millis(100);

/// The callback that receives the result of tickets.
type OnDone = Box<dyn FnMut(&[u64], Result<(), &StoreError>) + Send>;

type Recall = mpsc::Sender<Result<StoredState, StoreError>>;

/// A handle to the thread that owns the store; clones share the thread. Entries are committed in the order in which
/// they were written. The journal outlives its clients: one at a time is attached.
#[derive(Clone)]
pub struct Journal(Arc<Inner>);

/// The shared state of all handles; dropping the last one ends the thread.
struct Inner {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("waiting", &self.0.shared.lock().waiting.len())
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signals work to the thread.
    work: Condvar,
    /// Signals an empty queue to threads that flush.
    idle: Condvar,
    /// The attached client with its number. The callback runs with the lock held: it must be quick and must not call
    /// the journal.
    attached: Mutex<(u64, Option<OnDone>)>,
    /// Cancelled when the thread has ended for any reason.
    ended: CancellationToken,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Tickets that are being committed, with the number of their writer.
    under_way: Vec<(u64, u64)>,
    recalls: Vec<Recall>,
    /// Requests for a sign of life of the thread.
    pings: Vec<oneshot::Sender<()>>,
    /// The files of the store must be checked.
    is_check_due: bool,
    /// The number of waiting entries that are urgent.
    urgent: usize,
    /// The number of threads that wait for an empty queue.
    flushing: usize,
    committing: bool,
    closed: bool,
    takes: Takes,
    /// The times of all commits.
    commits: Histogram,
}

/// The acceptance of new entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Takes {
    #[default]
    All,
    /// An entry could not be stored, for this reason, and its writer has not acknowledged that yet: newer entries must
    /// not overtake it.
    NothingNew(String),
    /// The thread has ended: every entry is rejected.
    Nothing,
}

struct Waiting {
    entry: Entry,
    ticket: u64,
    writer: u64,
    urgent: bool,
    since: Instant,
}

impl Journal {
    /// Starts the journal's thread.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the thread cannot be started.
    pub fn spawn(store: Box<dyn Store>) -> std::io::Result<Self> {
        let (journal, writer) = Self::by_hand(store);
        let thread = std::thread::Builder::new().name("journal".to_owned());
        *journal.0.thread() = Some(thread.spawn(|| writer.run())?);
        Ok(journal)
    }

    /// Makes a journal without a thread: entries are committed only by calls to the returned writer.
    #[must_use]
    pub fn by_hand(store: Box<dyn Store>) -> (Self, Writer) {
        let shared = Arc::new(Shared::default());
        let writer = Writer { shared: Arc::clone(&shared), store, lost: None, committed: None };
        (Self(Arc::new(Inner { shared, thread: Mutex::default() })), writer)
    }

    /// Attaches a client. `on_done` is called once for each batch with the client's tickets, mostly from the journal's
    /// thread; it must be quick and must not call the journal. Entries of an earlier client are still stored, and their
    /// results are discarded.
    pub fn attach(&self, on_done: impl FnMut(&[u64], Result<(), &StoreError>) + Send + 'static) {
        let mut attached = self.0.shared.attached();
        attached.0 += 1;
        attached.1 = Some(Box::new(on_done));
        drop(attached);
        self.go_on();
    }

    /// Accepts entries again after an error. Until this call all entries are rejected in their order. The client calls
    /// it when it knows of the error and repeats the entries in the old order.
    pub fn go_on(&self) {
        let mut queue = self.0.shared.lock();
        if matches!(queue.takes, Takes::NothingNew(_)) {
            queue.takes = Takes::All;
        }
    }

    /// Returns the stored state, after everything that was written so far. Blocks.
    ///
    /// # Errors
    ///
    /// Returns the error of the store, or [`StoreError::Ended`] if the thread has ended.
    pub fn recall(&self) -> Result<StoredState, StoreError> {
        let (recall, recalled) = mpsc::channel();
        let mut queue = self.0.shared.lock();
        if queue.takes != Takes::Nothing {
            queue.recalls.push(recall);
        }
        drop(queue);
        self.0.shared.work.notify_one();
        recalled.recv().unwrap_or(Err(StoreError::Ended))
    }

    /// Sends a ping, which the thread answers before any other work.
    #[must_use]
    pub fn ping(&self) -> oneshot::Receiver<()> {
        let (ping, answer) = oneshot::channel();
        let mut queue = self.0.shared.lock();
        if queue.takes != Takes::Nothing {
            queue.pings.push(ping);
        }
        drop(queue);
        self.0.shared.work.notify_one();
        answer
    }

    /// Makes the thread check the files of the store, and save what was stored in removed ones.
    pub fn check_files(&self) {
        self.0.shared.lock().is_check_due = true;
        self.0.shared.work.notify_one();
    }

    /// Returns the number of waiting entries, and the times of all commits so far.
    #[must_use]
    pub fn load(&self) -> (usize, Histogram) {
        let queue = self.0.shared.lock();
        (queue.waiting.len(), queue.commits.clone())
    }

    /// Returns a token that is cancelled when the thread has ended, by `close` or by a panic.
    #[must_use]
    pub fn ended(&self) -> &CancellationToken {
        &self.0.shared.ended
    }

    /// Appends an entry to the log. The result of its ticket is reported when the entry is durable, or could not be
    /// made so. An entry after a rejected one is rejected as well, until [`Self::go_on`].
    ///
    /// An entry that is not `urgent` does not start a sync at once: it waits up to 5 ms for another one to share a sync
    /// with. Entries whose loss does no harm are not urgent: the begin of a run that owes nothing and may run again,
    /// and the end of a run that nobody waits for. No later entry overtakes them.
    pub fn write(&self, entry: Entry, ticket: u64, urgent: bool) {
        let shared = &self.0.shared;
        let writer = shared.attached().0;
        let mut queue = shared.lock();
        let refused = match &queue.takes {
            Takes::All => None,
            Takes::NothingNew(why) => Some(StoreError::Behind(why.clone())),
            Takes::Nothing => Some(StoreError::Ended),
        };
        if let Some(refused) = refused {
            drop(queue);
            shared.answer(&[(writer, ticket)], Err(&refused));
            return;
        }
        let since = Instant::now();
        queue.waiting.push_back(Waiting { entry, ticket, writer, urgent, since });
        queue.urgent += usize::from(urgent);
        drop(queue);
        shared.work.notify_one();
    }

    /// Waits until everything written so far is done. Returns at once if there is no thread.
    pub fn flush(&self) {
        if self.0.thread().is_none() {
            return;
        }
        let shared = &self.0.shared;
        let mut queue = shared.lock();
        queue.flushing += 1;
        shared.work.notify_one();
        while queue.takes != Takes::Nothing && (!queue.waiting.is_empty() || queue.committing) {
            queue = shared.idle.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.flushing -= 1;
    }

    /// Completes everything written so far, then ends the thread and drops the store.
    pub fn close(&self) {
        self.0.stop();
    }
}

impl Inner {
    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
        let thread = self.thread().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the journal's thread panicked");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attached(&self) -> MutexGuard<'_, (u64, Option<OnDone>)> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the result of tickets to the attached client, if the client has written them.
    fn answer(&self, tickets: &[(u64, u64)], result: Result<(), &StoreError>) {
        let mut attached = self.attached();
        let own = tickets.iter().filter(|(writer, _)| *writer == attached.0);
        let own: Vec<u64> = own.map(|(_, ticket)| *ticket).collect();
        if let (Some(on_done), false) = (&mut attached.1, own.is_empty()) {
            on_done(&own, result);
        }
    }
}

/// The part of the journal that commits waiting entries, batch by batch.
pub struct Writer {
    shared: Arc<Shared>,
    store: Box<dyn Store>,
    /// The time at which the store's handle was given up.
    lost: Option<Instant>,
    /// The time of the last commit that was not followed by a quiet second yet.
    committed: Option<Instant>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// The result of a batch that is not reported yet.
#[derive(Debug)]
pub struct Committed(Result<(), StoreError>);

impl Committed {
    /// Returns true if the batch is durable.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.0.is_ok()
    }
}

/// Fails all waiting tickets, so that nobody waits for a thread that has ended.
impl Drop for Writer {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.takes = Takes::Nothing;
        queue.recalls.clear();
        queue.pings.clear();
        let mut left = std::mem::take(&mut queue.under_way);
        left.extend(queue.waiting.drain(..).map(|waiting| (waiting.writer, waiting.ticket)));
        drop(queue);
        self.shared.idle.notify_all();
        self.shared.answer(&left, Err(&StoreError::Ended));
        self.shared.ended.cancel();
    }
}

impl Queue {
    /// Returns the time until there is work; none if nothing is waiting.
    fn time_to_next(&self) -> Option<Duration> {
        let Some(first) = self.waiting.front() else {
            return (self.is_check_due || !self.recalls.is_empty()).then_some(Duration::ZERO);
        };
        let pressed =
            self.urgent > 0 || self.closed || self.flushing > 0 || !self.recalls.is_empty();
        if pressed || self.waiting.len() >= BATCH {
            return Some(Duration::ZERO);
        }
        Some(LINGER.saturating_sub(first.since.elapsed()))
    }
}

impl Writer {
    fn run(mut self) {
        while self.wait() {
            // Without the wait, a caller that retries at once would spin against a full disk.
            std::thread::sleep(self.before_reopening());
            self.write_next();
        }
    }

    /// Returns the time until the next commit; none if nothing is waiting.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        let left = self.shared.lock().time_to_next()?;
        Some(left.max(self.before_reopening()))
    }

    fn before_reopening(&self) -> Duration {
        self.lost.map_or(Duration::ZERO, |since| REOPEN_EVERY.saturating_sub(since.elapsed()))
    }

    /// Commits and reports one batch, if anything is waiting. Otherwise replies to the waiting recalls.
    pub fn write_next(&mut self) {
        if let Some(committed) = self.commit_next() {
            self.answer(&committed);
        }
    }

    /// Commits one batch without reporting the result. More entries may be queued meanwhile.
    #[must_use]
    pub fn commit_next(&mut self) -> Option<Committed> {
        match self.take() {
            Ok(entries) => Some(Committed(self.commit(&entries))),
            Err(recalls) => {
                self.check_files();
                self.recall(recalls);
                None
            }
        }
    }

    /// Reports the result of a batch from [`Self::commit_next`].
    pub fn answer(&mut self, committed: &Committed) {
        let result = &committed.0;
        let mut queue = self.shared.lock();
        let mut tickets = std::mem::take(&mut queue.under_way);
        if let Err(error) = result {
            // The caller logs the error, once.
            tracing::debug!(%error, entries = tickets.len(), "entries could not be stored");
            // Waiting entries are rejected as well: their writer repeats them in the old order.
            tickets.extend(queue.waiting.drain(..).map(|w| (w.writer, w.ticket)));
            queue.urgent = 0;
            queue.takes = Takes::NothingNew(error.to_string());
        }
        drop(queue);
        self.shared.answer(&tickets, result.as_ref().copied());
        self.shared.lock().committing = false;
        self.shared.idle.notify_all();
    }

    /// Waits for work. Returns false if there will be no more. The files of the store are checked after a quiet second.
    fn wait(&mut self) -> bool {
        let mut queue = self.shared.lock();
        loop {
            for ping in queue.pings.drain(..) {
                // The receiver may be gone.
                let _gone = ping.send(());
            }
            match queue.time_to_next() {
                Some(Duration::ZERO) => return true,
                Some(left) => {
                    let woken = self.shared.work.wait_timeout(queue, left);
                    queue = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
                None if queue.closed => return false,
                None if let Some(since) = self.committed => {
                    let left = QUIET.saturating_sub(since.elapsed());
                    if left.is_zero() {
                        self.committed = None;
                        queue.is_check_due = true;
                        return true;
                    }
                    let woken = self.shared.work.wait_timeout(queue, left);
                    queue = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => {
                    queue = self.shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Takes a batch of waiting entries; if there is none, the waiting recalls.
    fn take(&self) -> Result<Vec<Entry>, Vec<Recall>> {
        let mut queue = self.shared.lock();
        let count = queue.waiting.len().min(BATCH);
        if count == 0 {
            return Err(std::mem::take(&mut queue.recalls));
        }
        let taken: Vec<Waiting> = queue.waiting.drain(..count).collect();
        queue.urgent -= taken.iter().filter(|waiting| waiting.urgent).count();
        queue.committing = true;
        queue.under_way = taken.iter().map(|waiting| (waiting.writer, waiting.ticket)).collect();
        drop(queue);
        Ok(taken.into_iter().map(|waiting| waiting.entry).collect())
    }

    fn recall(&mut self, recalls: Vec<Recall>) {
        for recall in recalls {
            let recalled = self.regain().and_then(|()| {
                self.store.recall().inspect_err(|_| self.lost = Some(Instant::now()))
            });
            // The receiver may be gone.
            let _gone = recall.send(recalled);
        }
    }

    /// Checks the files of the store if that is due. The next commit reports a failure, which lasts until then.
    fn check_files(&mut self) {
        let is_due = std::mem::take(&mut self.shared.lock().is_check_due);
        if is_due
            && self.lost.is_none()
            && let Err(error) = self.store.check_files()
        {
            tracing::debug!(%error, "the files of the store");
            self.lost = Some(Instant::now());
        }
    }

    /// Reopens a handle that was given up after an error, before any other call (B-6).
    fn regain(&mut self) -> Result<(), StoreError> {
        if self.lost.is_some() {
            self.lost = Some(Instant::now());
            self.store.reopen()?;
            self.lost = None;
        }
        Ok(())
    }

    fn commit(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        self.regain()?;
        let began = Instant::now();
        let result = self.store.commit(entries);
        self.shared.lock().commits.observe(began.elapsed());
        match result {
            Ok(()) => self.committed = Some(Instant::now()),
            Err(_) => self.lost = Some(Instant::now()),
        }
        result
    }
}
