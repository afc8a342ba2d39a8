//! The stream of events: handed over without waiting, recorded in batches, then told to whoever follows.

use super::event::{Event, Level, NewEvent, unix_ms, what};
use super::export::dead_letter_file::DeadLetter;
use super::log::Mark;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, oneshot, watch};

/// So many are kept for whoever asks what happened lately where the log cannot be read.
pub(super) const KEPT: usize = 4096;

/// So many may be on their way to one follower.
pub(super) const AHEAD: usize = 4096;

/// So many may wait to be recorded. What more there is is dropped, and counted.
pub(super) const WAITING: usize = 65_536;

/// Where events are handed over. Handing over never waits.
#[derive(Clone, Debug)]
pub struct Publisher {
    pub(super) shared: Arc<Shared>,
}

/// Where events are read.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(super) shared: Arc<Shared>,
}

/// How far the log has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The number of the last event that is recorded.
    pub last_number: u64,
    /// The number of the start of this run, once it is recorded.
    pub run: Option<u64>,
    /// Why nothing can be recorded at the moment.
    pub trouble: Option<String>,
    /// Nothing more will be recorded.
    pub is_over: bool,
}

#[derive(Debug)]
pub(super) struct Shared {
    followers: broadcast::Sender<Option<Arc<Event>>>,
    buffer: Mutex<Kept>,
    queue: Mutex<Queue>,
    more: Condvar,
    pub(super) progress: watch::Sender<Standing>,
    /// Told when those who wait for several together may look ([`Stream::beat`]).
    beats: watch::Sender<()>,
    /// Nobody records any more, nor will.
    pub(super) closed: AtomicBool,
    /// What is told waits so many milliseconds for what is told after it.
    gathering: AtomicU64,
    /// The last event was handed over.
    ended: AtomicBool,
    /// Told after the end.
    late: AtomicU64,
    /// What recorders have put aside, by their names.
    aside: DeadLetter,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Arc<Event>>,
    is_over: bool,
}

/// What waits for the one who records.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) told: VecDeque<(u64, NewEvent)>,
    /// So many had no room.
    pub(super) dropped: u64,
    pub(super) marks: Vec<MarkRequest>,
    /// Those who want to know whether the one who records lives.
    pings: Vec<oneshot::Sender<()>>,
    /// How the run has ended.
    pub(super) end: Option<NewEvent>,
    /// Whoever records it has to leave: another one takes over.
    pub(super) leave: bool,
}

/// A mark, and who waits for it.
#[derive(Debug)]
pub(super) struct MarkRequest {
    pub(super) mark: Mark,
    pub(super) done: oneshot::Sender<Result<(), String>>,
}

/// One who follows.
#[derive(Debug)]
pub struct Subscriber {
    events: broadcast::Receiver<Option<Arc<Event>>>,
    beats: watch::Receiver<()>,
    is_over: bool,
}

/// What a follower is told next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// An event.
    Event(Arc<Event>),
    /// So many were lost: it was too slow.
    Missed(u64),
}

/// A stream with its two ends. It moves once somebody records it ([`super::LogWriter`]).
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
    });
    (Publisher { shared: Arc::clone(&shared) }, Stream { shared })
}

impl Publisher {
    /// Hands an event over. Never waits: what has no room is counted, and so is what comes after the end (C-16, C-20).
    pub fn tell(&self, happening: NewEvent) {
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

    /// How many came after the end.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.shared.late.load(Ordering::Relaxed)
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn buffer(&self) -> MutexGuard<'_, Kept> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the one who records.
    pub(super) fn wake(&self) {
        self.more.notify_one();
    }

    /// Answered by the one who records before anything else.
    pub(super) fn ping(&self) -> oneshot::Receiver<()> {
        let (ping, answer) = oneshot::channel();
        self.lock().pings.push(ping);
        self.wake();
        answer
    }

    /// Takes what waits; waits for something, at most so long.
    pub(super) fn take(&self, within: Option<Duration>) -> Queue {
        let mut queue = self.lock();
        let nothing = |queue: &mut Queue| {
            for ping in queue.pings.drain(..) {
                // Who asked may have gone.
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
        // Seen with the lock held: what is told later would stand behind the last event.
        if queue.end.is_some() {
            self.ended.store(true, Ordering::SeqCst);
        }
        std::mem::take(&mut *queue)
    }

    /// Tells an event to all who follow.
    pub(super) fn pass_on(&self, event: Event) {
        let event = Arc::new(event);
        let mut kept = self.buffer();
        if kept.events.len() == KEPT {
            kept.events.pop_front();
        }
        kept.events.push_back(Arc::clone(&event));
        // Sent with the lock held, so that who begins to follow misses nothing and gets nothing twice.
        let _nobody = self.followers.send(Some(event));
    }

    /// Tells all who follow that there is no more.
    pub(super) fn end(&self) {
        let mut kept = self.buffer();
        kept.is_over = true;
        let _nobody = self.followers.send(None);
        drop(kept);
        self.progress.send_modify(|standing| standing.is_over = true);
    }
}

impl Stream {
    /// Those of the last events that are wanted, oldest first, and a follower of all that come after them.
    pub fn follow(&self, wanted: impl Fn(&Event) -> bool) -> (Vec<Arc<Event>>, Subscriber) {
        let kept = self.shared.buffer();
        let (events, is_over) = (self.shared.followers.subscribe(), kept.is_over);
        let beats = self.shared.beats.subscribe();
        let last = kept.events.iter().filter(|event| wanted(event)).cloned().collect();
        (last, Subscriber { events, beats, is_over })
    }

    /// Gives the beat to all who wait by [`Subscriber::together`], until the end: so long after the first of several events. However many
    /// follow, one is woken by each event, and the others once for all that belong together, after it was done.
    pub async fn send_marks(&self, after: Duration) {
        let (_, mut own) = self.follow(|_| false);
        while own.next().await.is_some() {
            tokio::time::sleep(after).await;
            while own.try_next().is_some() {}
            self.shared.beats.send_replace(());
        }
        self.shared.beats.send_replace(());
    }

    /// What is told from now on waits so long for what is told after it, and is recorded together with it: so the end of a daemon does not take as many
    /// syncs as there are workers that stop.
    pub fn gather(&self, within: Duration) {
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.shared.gathering.store(within, Ordering::SeqCst);
    }

    /// How far the log has come, from now on.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<Standing> {
        self.shared.progress.subscribe()
    }

    /// Where events are handed over to it.
    #[must_use]
    pub fn teller(&self) -> Publisher {
        Publisher { shared: Arc::clone(&self.shared) }
    }

    /// What recorders have put aside since the daemon began.
    #[must_use]
    pub fn aside(&self) -> &DeadLetter {
        &self.shared.aside
    }

    /// Has a mark written to the log; done when it is durable.
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
    /// Waits for the next one; none when there will be no more.
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

    /// Waits for the next beat at which something is there ([`Stream::beat`]); what came with it is there too.
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

    /// The next one, if it is there already.
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

/// What stands in the log for events that had no room.
pub(super) fn dropped(count: u64) -> NewEvent {
    let says = format!("{count} events came faster than they could be recorded and were lost");
    NewEvent { count: Some(count), ..NewEvent::new(what::GAP, says, Level::Warn) }
}
