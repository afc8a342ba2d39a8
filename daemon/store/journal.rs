//! The one writer of a store: a thread that commits together whatever waits (group commit), and answers every ticket.

use super::{Entry, Store, StoreError};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The most entries in one transaction: bounds the memory of a commit and the wait of what comes next.
const BATCH: usize = 1024;

/// How long an entry that is not urgent may wait for another to share its sync with.
const LINGER: Duration = Duration::from_millis(5);

/// The shortest time between two attempts to get a handle again.
const REOPEN_EVERY: Duration = Duration::from_millis(100);

/// The thread's side of the callback.
type OnDone = Box<dyn FnMut(&[u64], Result<(), &StoreError>) + Send>;

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
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            work: Condvar::new(),
            idle: Condvar::new(),
        });
        let writer = Writer { shared: Arc::clone(&shared), store, on_done: Box::new(on_done) };
        let thread =
            std::thread::Builder::new().name("journal".to_owned()).spawn(|| writer.run())?;
        Ok(Self { shared, thread: Some(thread) })
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

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Writer {
    shared: Arc<Shared>,
    store: Box<dyn Store>,
    on_done: OnDone,
}

impl Writer {
    fn run(mut self) {
        let mut lost: Option<Instant> = None;
        let mut entries = Vec::new();
        let mut tickets = Vec::new();
        while self.take(&mut entries, &mut tickets) {
            let result = self.commit(&entries, &mut lost);
            if let Err(error) = &result {
                // Whoever asked says so, once.
                tracing::debug!(%error, entries = entries.len(), "entries could not be kept");
                // What waits behind them is refused too: whoever tries again does so in the old order.
                self.refuse_waiting(&mut tickets);
            }
            (self.on_done)(&tickets, result.as_ref().copied());
            entries.clear();
            tickets.clear();
            self.shared.lock().committing = false;
            self.shared.idle.notify_all();
        }
    }

    /// Waits for work and takes a batch of it; false when there will be none any more.
    fn take(&self, entries: &mut Vec<Entry>, tickets: &mut Vec<u64>) -> bool {
        let mut queue = self.shared.lock();
        loop {
            let Some(first) = queue.waiting.front() else {
                if queue.closed {
                    return false;
                }
                queue = self.shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let pressed = queue.urgent > 0 || queue.closed || queue.flushing > 0;
            let left = LINGER.saturating_sub(first.since.elapsed());
            if pressed || left.is_zero() || queue.waiting.len() >= BATCH {
                break;
            }
            let woken = self.shared.work.wait_timeout(queue, left);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = queue.waiting.len().min(BATCH);
        let taken: Vec<Waiting> = queue.waiting.drain(..count).collect();
        queue.urgent -= taken.iter().filter(|waiting| waiting.urgent).count();
        queue.committing = true;
        drop(queue);
        for Waiting { entry, ticket, .. } in taken {
            entries.push(entry);
            tickets.push(ticket);
        }
        true
    }

    fn refuse_waiting(&self, tickets: &mut Vec<u64>) {
        let mut queue = self.shared.lock();
        tickets.extend(queue.waiting.drain(..).map(|waiting| waiting.ticket));
        queue.urgent = 0;
    }

    /// B-6: after an error the handle is given up, and opened anew before the next batch.
    fn commit(&mut self, entries: &[Entry], lost: &mut Option<Instant>) -> Result<(), StoreError> {
        if let Some(since) = *lost {
            // Without the wait, a caller that tries again at once would spin against a full disk.
            std::thread::sleep(REOPEN_EVERY.saturating_sub(since.elapsed()));
            *lost = Some(Instant::now());
            self.store.reopen()?;
            *lost = None;
        }
        let result = self.store.commit(entries);
        if result.is_err() {
            *lost = Some(Instant::now());
        }
        result
    }
}
