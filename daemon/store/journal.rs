//! The one writer of a store: a thread that commits together whatever waits (group commit), and answers every ticket.

use super::{Entry, Store, StoreError, StoredState};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The most entries in one transaction: bounds the memory of a commit and the wait of what comes next.
const BATCH: usize = 1024;

/// How long an entry that is not urgent may wait for another to share its sync with.
const LINGER: Duration = Duration::from_millis(5);

/// The shortest time between two attempts to get a handle again.
const REOPEN_EVERY: Duration = Duration::from_millis(100);

/// Who is told what became of tickets.
type OnDone = Box<dyn FnMut(&[u64], Result<(), &StoreError>) + Send>;

type Recall = mpsc::Sender<Result<StoredState, StoreError>>;

/// A handle to the thread that owns the store; clones are the same one. Entries are committed in the order in which they were
/// written. It outlives those that write through it: one at a time is attached to it.
#[derive(Clone)]
pub struct Journal(Arc<Inner>);

/// Ends the thread with the last handle.
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
    /// The thread waits here for work.
    work: Condvar,
    /// Those who flush wait here.
    idle: Condvar,
    /// Who is attached, with its number. Called with the lock held: it must be quick and must not call the journal.
    attached: Mutex<(u64, Option<OnDone>)>,
    /// Cancelled when the thread has ended, however it did.
    ended: CancellationToken,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Tickets that are being committed, with the number of who wrote them.
    under_way: Vec<(u64, u64)>,
    recalls: Vec<Recall>,
    /// Those who want to know whether the thread lives.
    pings: Vec<oneshot::Sender<()>>,
    /// How many of those waiting may not linger.
    urgent: usize,
    /// How many threads wait for the queue to run empty.
    flushing: usize,
    committing: bool,
    closed: bool,
    takes: Takes,
}

/// Whether entries are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Takes {
    #[default]
    All,
    /// Something could not be kept, for this reason, and who wrote it has not said yet that it knows: what comes now must not pass it.
    NothingNew(String),
    /// The thread is gone: whatever comes is refused.
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
    /// Starts the thread.
    pub fn spawn(store: Box<dyn Store>) -> std::io::Result<Self> {
        let (journal, writer) = Self::by_hand(store);
        let thread = std::thread::Builder::new().name("journal".to_owned());
        *journal.0.thread() = Some(thread.spawn(|| writer.run())?);
        Ok(journal)
    }

    /// The same without a thread: nothing is kept but by the hand of whoever holds the writer.
    #[must_use]
    pub fn by_hand(store: Box<dyn Store>) -> (Self, Writer) {
        let shared = Arc::new(Shared::default());
        let writer = Writer { shared: Arc::clone(&shared), store, lost: None };
        (Self(Arc::new(Inner { shared, thread: Mutex::default() })), writer)
    }

    /// From now on entries are this writer's: `on_done` is called once for each batch with its tickets, mostly from the journal's
    /// thread: it must be cheap and must not call the journal. What an earlier writer wrote is kept, and its tickets are answered
    /// to nobody.
    pub fn attach(&self, on_done: impl FnMut(&[u64], Result<(), &StoreError>) + Send + 'static) {
        let mut attached = self.0.shared.attached();
        attached.0 += 1;
        attached.1 = Some(Box::new(on_done));
        drop(attached);
        self.go_on();
    }

    /// After an error all is refused, in its order, until this is called: by who has heard of it, and now tries again in the old order.
    pub fn go_on(&self) {
        let mut queue = self.0.shared.lock();
        if matches!(queue.takes, Takes::NothingNew(_)) {
            queue.takes = Takes::All;
        }
    }

    /// All that is kept, after everything that was written so far. Blocks.
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

    /// Answered by the thread before it does anything else.
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

    /// Cancelled when the thread has ended: because it was closed, or by a panic.
    #[must_use]
    pub fn ended(&self) -> &CancellationToken {
        &self.0.shared.ended
    }

    /// Puts an entry at the end of the log; its ticket is answered when it is durable, or could not be made so. One that comes after
    /// a refused one is refused as well, before [`Self::go_on`].
    ///
    /// An entry that is not `urgent` starts no sync of its own at once: it waits up to 5 ms for another to share one with. Not
    /// urgent is what could be lost without losing anything: the begin of a run that owes nothing and may run again, the
    /// end of a run that nobody waits for. It is never passed by a later entry.
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

    /// Waits until everything written so far is answered. Where there is no thread, nobody is waited for.
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

    /// Answers everything written so far, then ends the thread and gives the store up.
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

    /// Tells who is attached what became of its tickets, each with the number of its writer.
    fn answer(&self, tickets: &[(u64, u64)], result: Result<(), &StoreError>) {
        let mut attached = self.attached();
        let own = tickets.iter().filter(|(writer, _)| *writer == attached.0);
        let own: Vec<u64> = own.map(|(_, ticket)| *ticket).collect();
        if let (Some(on_done), false) = (&mut attached.1, own.is_empty()) {
            on_done(&own, result);
        }
    }
}

/// The one who commits what waits, batch by batch.
pub struct Writer {
    shared: Arc<Shared>,
    store: Box<dyn Store>,
    /// Since when the store's handle is given up.
    lost: Option<Instant>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// What became of a batch that is not answered yet.
#[derive(Debug)]
pub struct Committed(Result<(), StoreError>);

impl Committed {
    /// Whether it is durable.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.0.is_ok()
    }
}

/// However the thread ends, nobody waits for it in vain.
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
    /// How long there is nothing to be done yet; none where nothing waits.
    fn time_to_next(&self) -> Option<Duration> {
        let Some(first) = self.waiting.front() else {
            return (!self.recalls.is_empty()).then_some(Duration::ZERO);
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
            // Without the wait, a caller that tries again at once would spin against a full disk.
            std::thread::sleep(self.before_reopening());
            self.write_next();
        }
    }

    /// How long nothing is to be written yet; none where nothing waits.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        let left = self.shared.lock().time_to_next()?;
        Some(left.max(self.before_reopening()))
    }

    fn before_reopening(&self) -> Duration {
        self.lost.map_or(Duration::ZERO, |since| REOPEN_EVERY.saturating_sub(since.elapsed()))
    }

    /// Commits a batch of what waits, if anything does, and answers it; when nothing does, tells what is kept to those who asked.
    pub fn write_next(&mut self) {
        if let Some(committed) = self.commit_next() {
            self.answer(&committed);
        }
    }

    /// The first half of it: what waits is committed, or not, and nobody is told yet. Meanwhile more may come to wait.
    #[must_use]
    pub fn commit_next(&mut self) -> Option<Committed> {
        match self.take() {
            Ok(entries) => Some(Committed(self.commit(&entries))),
            Err(recalls) => {
                self.recall(recalls);
                None
            }
        }
    }

    /// The other half.
    pub fn answer(&mut self, committed: &Committed) {
        let result = &committed.0;
        let mut queue = self.shared.lock();
        let mut tickets = std::mem::take(&mut queue.under_way);
        if let Err(error) = result {
            // Whoever asked says so, once.
            tracing::debug!(%error, entries = tickets.len(), "entries could not be stored");
            // What waits behind them is refused too: whoever tries again does so in the old order.
            tickets.extend(queue.waiting.drain(..).map(|w| (w.writer, w.ticket)));
            queue.urgent = 0;
            queue.takes = Takes::NothingNew(error.to_string());
        }
        drop(queue);
        self.shared.answer(&tickets, result.as_ref().copied());
        self.shared.lock().committing = false;
        self.shared.idle.notify_all();
    }

    /// Waits until there is something to be done; false when there will be nothing any more.
    fn wait(&self) -> bool {
        let mut queue = self.shared.lock();
        loop {
            for ping in queue.pings.drain(..) {
                // Who asked may have gone.
                let _gone = ping.send(());
            }
            match queue.time_to_next() {
                Some(Duration::ZERO) => return true,
                Some(left) => {
                    let woken = self.shared.work.wait_timeout(queue, left);
                    queue = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
                None if queue.closed => return false,
                None => {
                    queue = self.shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// A batch of what waits; where nothing does, those who want to know what is kept.
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
            // Who asked may have gone.
            let _gone = recall.send(recalled);
        }
    }

    /// B-6: after an error the handle is given up, and opened anew before anything else is asked of it.
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
        let result = self.store.commit(entries);
        if result.is_err() {
            self.lost = Some(Instant::now());
        }
        result
    }
}
