//! What has happened, as a stream that many may follow: each event once, numbered, in order.
//!
//! Who tells an event hands it over and goes on: it is stamped, kept among the last ones and passed to those who follow by a task
//! of its own, which may live on another thread. Whoever follows too slowly loses the oldest events and is told how many;
//! nobody else notices.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{broadcast, mpsc};

/// So many are kept for whoever asks what happened lately.
const KEPT: usize = 4096;

/// So many may be on their way to one follower.
const AHEAD: usize = 4096;

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// For whoever looks for a fault.
    Debug,
    /// A change of state.
    Info,
    /// Something is not as it should be, and may become so by itself.
    Warn,
    /// Something is not as it should be, and stays so.
    Error,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number: one more than that of the one before it.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// What: `changed`, `failed`, `converged`, …
    #[serde(rename = "event")]
    pub what: String,
    /// To which resource; none where it is about the whole.
    pub resource: Option<String>,
    /// In words, printable.
    pub says: String,
    /// How much it matters.
    pub level: Level,
    /// Made once, for all who follow.
    #[serde(skip)]
    json: Json,
}

/// An event as JSON, once somebody has wanted it; no part of what the event is.
#[derive(Clone, Debug, Default)]
struct Json(OnceLock<Box<str>>);

impl PartialEq for Json {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Json {}

impl Event {
    /// As a JSON object. However many want it, it is made once.
    #[must_use]
    pub fn json(&self) -> &str {
        let json = || serde_json::to_string(self).unwrap_or_default().into_boxed_str();
        self.json.0.get_or_init(json)
    }
}

/// What is handed over: an event without a number.
#[derive(Clone, Debug)]
pub struct Happening {
    /// See [`Event::what`].
    pub what: &'static str,
    /// See [`Event::resource`].
    pub resource: Option<String>,
    /// See [`Event::says`].
    pub says: String,
    /// See [`Event::level`].
    pub level: Level,
}

/// Where events are handed over. Handing over never waits.
#[derive(Clone, Debug)]
pub struct Teller {
    queue: mpsc::UnboundedSender<(u64, Happening)>,
}

/// Where events are read.
#[derive(Clone, Debug)]
pub struct Stream {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    followers: broadcast::Sender<Arc<Event>>,
    kept: Mutex<VecDeque<Arc<Event>>>,
}

/// The task that passes events on.
#[derive(Debug)]
pub struct Pump {
    queue: mpsc::UnboundedReceiver<(u64, Happening)>,
    shared: Arc<Shared>,
    /// Of the last event.
    number: u64,
}

/// One who follows.
#[derive(Debug)]
pub struct Follower {
    events: broadcast::Receiver<Arc<Event>>,
}

/// What a follower is told next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// An event.
    Event(Arc<Event>),
    /// So many were lost: it was too slow.
    Missed(u64),
}

/// A stream with its two ends, and the task between them, which the caller runs.
#[must_use]
pub fn stream() -> (Teller, Stream, Pump) {
    let (sender, queue) = mpsc::unbounded_channel();
    let (followers, _) = broadcast::channel(AHEAD);
    let shared = Arc::new(Shared { followers, kept: Mutex::default() });
    let pump = Pump { queue, shared: Arc::clone(&shared), number: 0 };
    (Teller { queue: sender }, Stream { shared }, pump)
}

impl Teller {
    /// Hands an event over. After the pump has ended it is dropped.
    pub fn tell(&self, happening: Happening) {
        let _ended = self.queue.send((unix_ms(), happening));
    }
}

impl Pump {
    /// Passes events on until no teller is left. Cancel-safe: who runs it again goes on where it was.
    pub async fn run(&mut self) {
        while let Some(next) = self.queue.recv().await {
            self.pass_on(next);
            self.pass_all();
        }
    }

    /// Passes on what is there already.
    pub fn pass_all(&mut self) {
        while let Ok(next) = self.queue.try_recv() {
            self.pass_on(next);
        }
    }

    fn pass_on(&mut self, (at, happening): (u64, Happening)) {
        self.number += 1;
        let Happening { what, resource, says, level } = happening;
        let (number, what) = (self.number, what.to_owned());
        let event =
            Arc::new(Event { number, at, what, resource, says, level, json: Json::default() });
        let mut kept = self.shared.kept();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Arc::clone(&event));
        // Sent with the lock held, so that who begins to follow misses nothing and gets nothing twice.
        let _nobody = self.shared.followers.send(event);
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Arc<Event>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// Those of the last events that are wanted, oldest first, and a follower of all that come after them.
    pub fn follow(&self, wanted: impl Fn(&Event) -> bool) -> (Vec<Arc<Event>>, Follower) {
        let kept = self.shared.kept();
        let events = self.shared.followers.subscribe();
        let last = kept.iter().filter(|event| wanted(event)).cloned().collect();
        (last, Follower { events })
    }
}

impl Follower {
    /// Waits for the next one; none when there will be no more.
    pub async fn next(&mut self) -> Option<Next> {
        match self.events.recv().await {
            Ok(event) => Some(Next::Event(event)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Next::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// The next one, if it is there already.
    pub fn try_next(&mut self) -> Option<Next> {
        match self.events.try_recv() {
            Ok(event) => Some(Next::Event(event)),
            Err(broadcast::error::TryRecvError::Lagged(missed)) => Some(Next::Missed(missed)),
            Err(_) => None,
        }
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happening(says: usize) -> Happening {
        let (resource, level) = (Some("file[a]".to_owned()), Level::Info);
        Happening { what: "changed", resource, says: says.to_string(), level }
    }

    #[tokio::test]
    async fn who_follows_gets_each_once_and_in_order() {
        let (teller, stream, mut pump) = stream();
        teller.tell(happening(1));
        let pumping = tokio::spawn(async move { pump.run().await });
        let (_, mut early) = stream.follow(|_| true);
        for n in 2..=5 {
            teller.tell(happening(n));
        }
        drop(teller);
        pumping.await.expect("ended");
        let (last, _late) = stream.follow(|event| event.number > 1);
        assert_eq!(last.iter().map(|event| event.number).collect::<Vec<_>>(), [2, 3, 4, 5]);
        let mut numbers = Vec::new();
        drop(stream);
        while let Some(Next::Event(event)) = early.next().await {
            numbers.push(event.number);
            if event.number == 5 {
                break;
            }
        }
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }

    #[tokio::test]
    async fn who_stalls_is_told_how_many_were_lost_and_only_the_last_are_kept() {
        let (teller, stream, mut pump) = stream();
        let (_, mut slow) = stream.follow(|_| true);
        for n in 0..AHEAD + 10 {
            teller.tell(happening(n));
        }
        drop(teller);
        pump.run().await;
        assert_eq!(slow.next().await, Some(Next::Missed(10)));
        let Some(Next::Event(event)) = slow.next().await else { panic!("an event follows") };
        assert_eq!(event.number, 11);
        let (last, _) = stream.follow(|_| true);
        assert_eq!((last.len(), last[0].number), (KEPT, 11));
    }
}
