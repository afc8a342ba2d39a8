//! The event stream: publishers hand in events without waiting, the log writer records them in batches, and subscribers
//! receive them.

use super::event::{NewEvent, PublishedEvent, unix_ms};
use super::export::dead_letter_file::DeadLetter;
use super::log::Mark;
use crate::api::Level;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, oneshot, watch};

/// The number of recent events in memory, for readers when the log cannot be read.
pub(super) const KEPT: usize = 4096;

/// The number of events that a subscriber may be behind.
pub(super) const AHEAD: usize = 4096;

/// The number of events that may wait for the log writer. Further events are dropped and counted.
pub(super) const WAITING: usize = 65_536;

/// The publishing side of the stream. Publishing never waits.
#[derive(Clone, Debug)]
pub struct Publisher {
    pub(super) shared: Arc<Shared>,
}

/// The reading side of the stream.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(super) shared: Arc<Shared>,
}

/// The progress of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The number of the last recorded event.
    pub last_number: u64,
    /// The number of the start event of this session, once recorded.
    pub run: Option<u64>,
    /// The reason why the log cannot be written at present.
    pub problem: Option<String>,
    /// True if nothing more will be recorded.
    pub is_over: bool,
}

#[derive(Debug)]
pub(super) struct Shared {
    followers: broadcast::Sender<Option<Arc<PublishedEvent>>>,
    buffer: Mutex<EventBuffer>,
    queue: Mutex<Queue>,
    more: Condvar,
    pub(super) progress: watch::Sender<Standing>,
    /// Notified when subscribers that read in batches may read ([`Stream::send_marks`]).
    beats: watch::Sender<()>,
    /// True if no writer will record any more.
    pub(super) closed: AtomicBool,
    /// The time, in milliseconds, for which the writer waits for further events.
    gathering: AtomicU64,
    /// True if the last event was handed in.
    ended: AtomicBool,
    /// The number of events published after the end.
    late: AtomicU64,
    /// The dead-lettered batches of the recorders.
    aside: DeadLetter,
    /// The number of recorders that ask for debug events.
    debug_readers: AtomicUsize,
}

#[derive(Debug, Default)]
struct EventBuffer {
    events: VecDeque<Arc<PublishedEvent>>,
    is_over: bool,
}

/// The input of the log writer.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) told: VecDeque<(u64, NewEvent)>,
    /// The number of dropped events.
    pub(super) dropped: u64,
    pub(super) marks: Vec<MarkRequest>,
    /// The senders of pending liveness checks of the log writer.
    pings: Vec<oneshot::Sender<()>>,
    /// The result of the session at its end, in one word and in full.
    pub(super) end: Option<(&'static str, String)>,
    /// True if the writer thread must end because another thread takes over.
    pub(super) leave: bool,
}

/// A mark to write, and the sender of its result.
#[derive(Debug)]
pub(super) struct MarkRequest {
    pub(super) mark: Mark,
    pub(super) done: oneshot::Sender<Result<(), String>>,
}

/// The recording of debug events, until the value is dropped.
#[derive(Debug)]
pub struct DebugRecording(Arc<Shared>);

impl Drop for DebugRecording {
    fn drop(&mut self) {
        self.0.debug_readers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A subscriber of the stream.
#[derive(Debug)]
pub struct Subscriber {
    events: broadcast::Receiver<Option<Arc<PublishedEvent>>>,
    beats: watch::Receiver<()>,
    is_over: bool,
}

/// The next item of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// An event.
    Event(Arc<PublishedEvent>),
    /// The number of events lost because the subscriber was too slow.
    Missed(u64),
}

/// Creates a stream with its two sides. Events move once a [`super::LogWriter`] runs.
#[must_use]
pub fn stream() -> (Publisher, Stream) {
    let (followers, _) = broadcast::channel(AHEAD);
    let shared = Arc::new(Shared {
        followers,
        buffer: Mutex::default(),
        queue: Mutex::default(),
        more: Condvar::new(),
        progress: watch::Sender::default(),
        beats: watch::Sender::default(),
        closed: AtomicBool::new(false),
        gathering: AtomicU64::new(0),
        ended: AtomicBool::new(false),
        late: AtomicU64::new(0),
        aside: DeadLetter::default(),
        debug_readers: AtomicUsize::new(0),
    });
    (Publisher { shared: Arc::clone(&shared) }, Stream { shared })
}

impl Publisher {
    /// Publishes an event without waiting. Events beyond the queue's room, or after the end, are only counted (C-16,
    /// C-20).
    pub fn publish(&self, happening: NewEvent) {
        let at = unix_ms();
        let mut queue = self.shared.lock();
        if self.shared.ended.load(Ordering::SeqCst) {
            self.shared.late.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if queue.told.len() < WAITING {
            queue.told.push_back((at, happening));
        } else {
            queue.dropped += 1;
        }
        drop(queue);
        self.shared.more.notify_one();
    }

    /// Returns the number of events published after the end.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.shared.late.load(Ordering::Relaxed)
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn buffer(&self) -> MutexGuard<'_, EventBuffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if debug events are recorded, because a recorder asks for them.
    pub(super) fn records_debug(&self) -> bool {
        self.debug_readers.load(Ordering::SeqCst) > 0
    }

    /// Wakes the log writer.
    pub(super) fn wake(&self) {
        self.more.notify_one();
    }

    /// Starts a liveness check; the log writer answers before any other work.
    pub(super) fn ping(&self) -> oneshot::Receiver<()> {
        let (ping, answer) = oneshot::channel();
        self.lock().pings.push(ping);
        self.wake();
        answer
    }

    /// Takes the waiting input; waits for some at most for the time `within`.
    pub(super) fn take(&self, within: Option<Duration>) -> Queue {
        let mut queue = self.lock();
        let nothing = |queue: &mut Queue| {
            for ping in queue.pings.drain(..) {
                // The requester may be gone.
                let _gone = ping.send(());
            }
            queue.told.is_empty() && queue.marks.is_empty() && queue.end.is_none() && !queue.leave
        };
        queue = match within {
            Some(within) => {
                let waited = self.more.wait_timeout_while(queue, within, nothing);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.more.wait_while(queue, nothing).unwrap_or_else(PoisonError::into_inner),
        };
        let gathers = Duration::from_millis(self.gathering.load(Ordering::SeqCst));
        if !gathers.is_zero() && !queue.told.is_empty() {
            let only_told =
                |queue: &mut Queue| queue.end.is_none() && queue.marks.is_empty() && !queue.leave;
            let gathered = self.more.wait_timeout_while(queue, gathers, only_told);
            queue = gathered.unwrap_or_else(PoisonError::into_inner).0;
        }
        // Set under the lock: a later event must not follow the last one.
        if queue.end.is_some() {
            self.ended.store(true, Ordering::SeqCst);
        }
        std::mem::take(&mut *queue)
    }

    /// Sends an event to all subscribers.
    pub(super) fn pass_on(&self, event: PublishedEvent) {
        let event = Arc::new(event);
        let mut kept = self.buffer();
        if kept.events.len() == KEPT {
            kept.events.pop_front();
        }
        kept.events.push_back(Arc::clone(&event));
        // Sent under the lock, so that a new subscriber neither misses an event nor receives one twice.
        let _nobody = self.followers.send(Some(event));
    }

    /// Ends the stream for all subscribers.
    pub(super) fn end(&self) {
        let mut kept = self.buffer();
        kept.is_over = true;
        let _nobody = self.followers.send(None);
        drop(kept);
        self.progress.send_modify(|standing| standing.is_over = true);
    }
}

impl Stream {
    /// Returns the recent events that match, oldest first, and a subscriber of all later events.
    pub fn follow(
        &self,
        wanted: impl Fn(&PublishedEvent) -> bool,
    ) -> (Vec<Arc<PublishedEvent>>, Subscriber) {
        let kept = self.shared.buffer();
        let (events, is_over) = (self.shared.followers.subscribe(), kept.is_over);
        let beats = self.shared.beats.subscribe();
        let last = kept.events.iter().filter(|event| wanted(event)).cloned().collect();
        (last, Subscriber { events, beats, is_over })
    }

    /// Wakes the subscribers that read by [`Subscriber::next_batch`], until the stream ends: once for several events,
    /// the time `after` the first of them. One task wakes per event, regardless of the number of subscribers.
    pub async fn send_marks(&self, after: Duration) {
        let (_, mut own) = self.follow(|_| false);
        while own.next().await.is_some() {
            tokio::time::sleep(after).await;
            while own.try_next().is_some() {}
            self.shared.beats.send_replace(());
        }
        self.shared.beats.send_replace(());
    }

    /// Makes the log writer wait for further events for the time `within`, so that the stop of a daemon does not cost
    /// one sync per stopping worker.
    pub fn gather(&self, within: Duration) {
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.shared.gathering.store(within, Ordering::SeqCst);
    }

    /// Makes the log writer record debug events too, until the returned value is dropped.
    #[must_use]
    pub fn record_debug(&self) -> DebugRecording {
        self.shared.debug_readers.fetch_add(1, Ordering::SeqCst);
        DebugRecording(Arc::clone(&self.shared))
    }

    /// Returns a receiver of the progress of the log.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<Standing> {
        self.shared.progress.subscribe()
    }

    /// Returns the publishing side of the stream.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher { shared: Arc::clone(&self.shared) }
    }

    /// Returns the batches dead-lettered since the start of the daemon.
    #[must_use]
    pub fn aside(&self) -> &DeadLetter {
        &self.shared.aside
    }

    /// Writes a mark to the log, durably.
    ///
    /// # Errors
    /// A message if the log is closed or cannot be written.
    pub async fn mark(&self, mark: Mark) -> Result<(), String> {
        let (done, answer) = oneshot::channel();
        {
            let mut queue = self.shared.lock();
            if self.shared.closed.load(Ordering::SeqCst) {
                return Err("the event log is closed".to_owned());
            }
            queue.marks.push(MarkRequest { mark, done });
        }
        self.shared.wake();
        answer.await.unwrap_or_else(|_| Err("the event log is closed".to_owned()))
    }
}

impl Subscriber {
    /// Waits for the next item; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Next> {
        if self.is_over {
            return None;
        }
        let next = match self.events.recv().await {
            Ok(next) => next.map(Next::Event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Next::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        };
        self.is_over = next.is_none();
        next
    }

    /// Waits for the next wake-up with an item ([`Stream::send_marks`]); further items may be ready then.
    pub async fn next_batch(&mut self) -> Option<Next> {
        while !self.is_over {
            if self.beats.changed().await.is_err() {
                return self.next().await;
            }
            if let Some(next) = self.try_next() {
                return Some(next);
            }
        }
        None
    }

    /// Returns the next item if one is ready.
    pub fn try_next(&mut self) -> Option<Next> {
        if self.is_over {
            return None;
        }
        match self.events.try_recv() {
            Ok(Some(event)) => Some(Next::Event(event)),
            Ok(None) => {
                self.is_over = true;
                None
            }
            Err(broadcast::error::TryRecvError::Lagged(missed)) => Some(Next::Missed(missed)),
            Err(_) => None,
        }
    }
}

/// Creates the event that represents dropped events in the log.
pub(super) fn dropped(count: u64) -> NewEvent {
    let reason = format!("{count} events came faster than they could be recorded and were lost");
    NewEvent::gap(Some(count), reason, Level::Warn)
}
