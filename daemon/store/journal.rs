//! The one writer of a store: a thread that commits together whatever waits (group commit), and answers every ticket.

use super::{Entry, Store, StoreError};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::Instant;

/// The most entries in one transaction: bounds the memory of a commit and the wait of what comes next.
const BATCH: usize = 1024;

/// How long an entry that is not urgent may wait for another to share its sync with.
const LINGER: Duration = Duration::from_millis(5);

/// The shortest time between two attempts to get a handle again.
const REOPEN_EVERY: Duration = Duration::from_millis(100);

/// Is told once for each batch: its tickets, and whether it is kept. It must be cheap and must not wait for the journal.
pub type Answered = Box<dyn FnMut(&[u64], Result<(), &StoreError>) + Send>;

/// A handle to the thread that owns the store. Entries are committed in the order in which they were written.
pub struct Journal {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("waiting", &self.shared.lock().waiting.len())
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
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// How many of those waiting may not linger.
    urgent: usize,
    /// How many threads wait for the queue to run empty.
    flushing: usize,
    committing: bool,
    closed: bool,
}

struct Waiting {
    entry: Entry,
    ticket: u64,
    urgent: bool,
    since: Instant,
}

impl Journal {
    /// Starts the thread. `on_done` is called once for each batch with its tickets, from that thread: it must be cheap and must
    /// not wait for the journal.
    pub fn spawn(
        store: Box<dyn Store>,
        on_done: impl FnMut(&[u64], Result<(), &StoreError>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (mut journal, writer) = Self::by_hand(store, on_done);
        let thread =
            std::thread::Builder::new().name("journal".to_owned()).spawn(|| writer.run())?;
        journal.thread = Some(thread);
        Ok(journal)
    }

    /// The same without a thread: nothing is kept but by the hand of whoever holds the writer.
    pub fn by_hand(
        store: Box<dyn Store>,
        on_done: impl FnMut(&[u64], Result<(), &StoreError>) + Send + 'static,
    ) -> (Self, Writer) {
        let shared = Arc::new(Shared::default());
        let (on_done, lost) = (Box::new(on_done), None);
        let writer = Writer { shared: Arc::clone(&shared), store, on_done, lost };
        (Self { shared, thread: None }, writer)
    }

    /// Puts an entry at the end of the log; its ticket is answered when it is durable, or could not be made so.
    ///
    /// An entry that is not `urgent` starts no sync of its own at once: it waits up to 5 ms for another to share one with. Not
    /// urgent is what could be lost without losing anything: the begin of a run that owes nothing and may run again, the
    /// end of a run that nobody waits for. It is never passed by a later entry.
    pub fn write(&self, entry: Entry, ticket: u64, urgent: bool) {
        let mut queue = self.shared.lock();
        let since = Instant::now();
        queue.waiting.push_back(Waiting { entry, ticket, urgent, since });
        queue.urgent += usize::from(urgent);
        drop(queue);
        self.shared.work.notify_one();
    }

    /// Waits until everything written so far is answered.
    pub fn flush(&self) {
        let mut queue = self.shared.lock();
        queue.flushing += 1;
        self.shared.work.notify_one();
        while !queue.waiting.is_empty() || queue.committing {
            // The time-out only guards against a thread that panicked.
            let woken = self.shared.idle.wait_timeout(queue, Duration::from_millis(100));
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
        }
        queue.flushing -= 1;
    }

    /// Answers everything written so far, then ends the thread and gives the store up.
    pub fn close(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the journal's thread panicked");
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Queue {
    /// How long the first of those waiting may wait for more.
    fn left(&self) -> Option<Duration> {
        let first = self.waiting.front()?;
        let pressed = self.urgent > 0 || self.closed || self.flushing > 0;
        if pressed || self.waiting.len() >= BATCH {
            return Some(Duration::ZERO);
        }
        Some(LINGER.saturating_sub(first.since.elapsed()))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one who commits what waits, batch by batch.
pub struct Writer {
    shared: Arc<Shared>,
    store: Box<dyn Store>,
    on_done: Answered,
    /// Since when the store's handle is given up.
    lost: Option<Instant>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("lost", &self.lost).finish_non_exhaustive()
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
        let left = self.shared.lock().left()?;
        Some(left.max(self.before_reopening()))
    }

    fn before_reopening(&self) -> Duration {
        self.lost.map_or(Duration::ZERO, |since| REOPEN_EVERY.saturating_sub(since.elapsed()))
    }

    /// Commits a batch of what waits, if anything does, and answers it.
    pub fn write_next(&mut self) {
        let (entries, mut tickets) = self.take();
        if entries.is_empty() {
            return;
        }
        let result = self.commit(&entries);
        if let Err(error) = &result {
            // Whoever asked says so, once.
            tracing::debug!(%error, entries = entries.len(), "entries could not be kept");
            // What waits behind them is refused too: whoever tries again does so in the old order.
            self.refuse_waiting(&mut tickets);
        }
        (self.on_done)(&tickets, result.as_ref().copied());
        self.shared.lock().committing = false;
        self.shared.idle.notify_all();
    }

    /// Waits until something is to be written; false when nothing will be any more.
    fn wait(&self) -> bool {
        let mut queue = self.shared.lock();
        loop {
            match queue.left() {
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

    fn take(&self) -> (Vec<Entry>, Vec<u64>) {
        let mut queue = self.shared.lock();
        let count = queue.waiting.len().min(BATCH);
        let taken: Vec<Waiting> = queue.waiting.drain(..count).collect();
        queue.urgent -= taken.iter().filter(|waiting| waiting.urgent).count();
        queue.committing = !taken.is_empty();
        drop(queue);
        taken.into_iter().map(|waiting| (waiting.entry, waiting.ticket)).unzip()
    }

    fn refuse_waiting(&self, tickets: &mut Vec<u64>) {
        let mut queue = self.shared.lock();
        tickets.extend(queue.waiting.drain(..).map(|waiting| waiting.ticket));
        queue.urgent = 0;
    }

    /// B-6: after an error the handle is given up, and opened anew before the next batch.
    fn commit(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        if self.lost.is_some() {
            self.lost = Some(Instant::now());
            self.store.reopen()?;
            self.lost = None;
        }
        let result = self.store.commit(entries);
        if result.is_err() {
            self.lost = Some(Instant::now());
        }
        result
    }
}
