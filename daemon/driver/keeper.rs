//! Begin and end against the store: which answer of the journal means which event of the engine.
//!
//! A begin that cannot be kept is refused, and nothing is changed. An end that cannot be kept is kept for later, and while one
//! waits no begin is accepted: the log stays in order.

use super::ordered::{Declined, Ordered};
use crate::store::Entry;
use crate::store::Journal;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steadfast_engine::{Event, RunId};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long to wait before an end that could not be kept is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The driver's side of the journal.
#[derive(Debug)]
pub(super) struct Keeper {
    journal: Journal,
    next: u64,
    asked: HashMap<u64, Asked>,
    /// Entries that could not be kept, and those that came after them, in their order.
    stalled: Vec<(u64, Entry)>,
    /// Those of them that are being tried again.
    retrying: BTreeSet<u64>,
    retry_at: Option<Instant>,
}

#[derive(Debug)]
enum Asked {
    Begin(RunId),
    End(RunId, Entry),
    Pause(Entry),
    /// One of several; the last of them answers.
    Part,
    Other(Entry),
    Order(Entry, Awaited),
}

/// What waits until several entries are durable: the last of them answers, or the first that could not be kept.
type Awaited = Arc<Mutex<Option<Promise>>>;

/// Who waits, and for what answer.
#[derive(Debug)]
pub(super) struct Promise {
    pub(super) to: oneshot::Sender<Ordered>,
    pub(super) says: Vec<String>,
}

impl Promise {
    fn keep(awaited: Awaited) {
        let last = Arc::into_inner(awaited).map(Mutex::into_inner);
        if let Some(Self { to, says }) =
            last.and_then(|last| last.unwrap_or_else(PoisonError::into_inner))
        {
            // Who asked may have gone; it is done all the same.
            drop(to.send(Ok(says)));
        }
    }

    fn put_off(awaited: &Awaited, why: &str) {
        if let Some(promise) = awaited.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let says = format!("it holds now, and is kept as soon as that is possible: {why}");
            drop(promise.to.send(Err(Declined::Later(says))));
        }
    }
}

impl Keeper {
    /// Over this journal, whose answers go there, with the reason where something could not be kept.
    #[must_use]
    pub(super) fn new(
        journal: Journal,
        mut answer: impl FnMut(Vec<u64>, Option<String>) + Send + 'static,
    ) -> Self {
        journal.attach(move |tickets, result| {
            answer(tickets.to_vec(), result.err().map(ToString::to_string));
        });
        Self {
            journal,
            next: 0,
            asked: HashMap::new(),
            stalled: Vec::new(),
            retrying: BTreeSet::new(),
            retry_at: None,
        }
    }

    /// Records a begin. Where losing it could lose nothing (`urgent` is false) the run may go on at once: the answer is then
    /// an event to deliver now.
    pub(super) fn begin(
        &mut self,
        run: RunId,
        mut entries: Vec<Entry>,
        urgent: bool,
    ) -> Option<Event> {
        if !self.is_sound() {
            return Some(Event::Refused(run));
        }
        let entry = entries.pop()?;
        for entry in entries {
            self.write(entry, urgent, Asked::Part);
        }
        let asked = if urgent { Asked::Begin(run) } else { Asked::Other(entry.clone()) };
        self.write(entry, urgent, asked);
        (!urgent).then_some(Event::Begun(run))
    }

    /// Records an end.
    pub(super) fn end(&mut self, run: RunId, mut entries: Vec<Entry>, urgent: bool) {
        let Some(entry) = entries.pop() else { return };
        for entry in entries {
            self.write(entry.clone(), urgent, Asked::Other(entry));
        }
        self.write(entry.clone(), urgent, Asked::End(run, entry));
    }

    /// Records a pause, or its end.
    pub(super) fn pause(&mut self, entry: Entry) {
        self.write(entry.clone(), true, Asked::Pause(entry));
    }

    /// Records what nobody waits for.
    pub(super) fn other(&mut self, entry: Entry) {
        self.write(entry.clone(), false, Asked::Other(entry));
    }

    /// The same for what must not be lost if the next moment is the last.
    pub(super) fn soon(&mut self, entry: Entry) {
        self.write(entry.clone(), true, Asked::Other(entry));
    }

    /// Records what an operator waits for.
    pub(super) fn order(&mut self, entries: Vec<Entry>, promise: Promise) {
        let awaited: Awaited = Arc::new(Mutex::new(Some(promise)));
        for entry in entries {
            self.write(entry.clone(), true, Asked::Order(entry, Arc::clone(&awaited)));
        }
        Promise::keep(awaited);
    }

    fn write(&mut self, entry: Entry, urgent: bool, asked: Asked) {
        let ticket = self.next;
        self.next += 1;
        self.asked.insert(ticket, asked);
        if self.is_sound() {
            self.journal.write(entry, ticket, urgent);
        } else {
            self.stalled.push((ticket, entry));
        }
    }

    /// Whether all that was written so far is kept, or on its way for the first time.
    pub(super) fn is_sound(&self) -> bool {
        self.stalled.is_empty() && self.retrying.is_empty()
    }

    /// What the journal's answer means for the engine.
    pub(super) fn answered(&mut self, tickets: &[u64], refused: Option<&str>) -> Vec<Event> {
        for ticket in tickets {
            self.retrying.remove(ticket);
        }
        if self.retrying.is_empty() && !self.stalled.is_empty() && self.retry_at.is_none() {
            self.retry_at = Some(Instant::now());
        }
        tickets.iter().filter_map(|ticket| self.answer(*ticket, refused)).collect()
    }

    fn answer(&mut self, ticket: u64, refused: Option<&str>) -> Option<Event> {
        let asked = self.asked.remove(&ticket)?;
        match (asked, refused.is_none()) {
            (Asked::Begin(run), true) => Some(Event::Begun(run)),
            (Asked::Begin(run), false) => {
                // Nothing else may be waiting: this finds out when state can be kept again.
                if self.stalled.is_empty() {
                    let nothing = Entry::Forget("".into());
                    self.stall(ticket, nothing.clone(), Asked::Other(nothing));
                }
                Some(Event::Refused(run))
            }
            (Asked::End(run, _), true) => Some(Event::Durable(run)),
            (Asked::Pause(_), true) => Some(Event::PauseSaved),
            (Asked::Other(_), true) | (Asked::Part, _) => None,
            (Asked::Order(_, awaited), true) => {
                Promise::keep(awaited);
                None
            }
            (Asked::Order(entry, awaited), false) => {
                Promise::put_off(&awaited, refused.unwrap_or_default());
                self.stall(ticket, entry.clone(), Asked::Other(entry));
                None
            }
            (Asked::End(run, entry), false) => {
                self.stall(ticket, entry.clone(), Asked::End(run, entry));
                None
            }
            (Asked::Pause(entry), false) => {
                self.stall(ticket, entry.clone(), Asked::Pause(entry));
                None
            }
            (Asked::Other(entry), false) => {
                self.stall(ticket, entry.clone(), Asked::Other(entry));
                None
            }
        }
    }

    fn stall(&mut self, ticket: u64, entry: Entry, asked: Asked) {
        self.asked.insert(ticket, asked);
        self.stalled.push((ticket, entry));
        self.retry_at = Some(Instant::now() + AGAIN);
    }

    /// When [`Keeper::retry`] is wanted, if ever.
    #[must_use]
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Tries again to keep what could not be kept.
    pub(super) fn retry(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.stalled.sort_by_key(|(ticket, _)| *ticket);
            for (ticket, entry) in self.stalled.drain(..) {
                self.retrying.insert(ticket);
                self.journal.write(entry, ticket, true);
            }
        }
    }

    /// Waits until everything written is answered.
    pub(super) fn close(self) {
        self.journal.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::{Keeper, Promise};
    use crate::driver::ordered::Declined;
    use crate::store::{Entry, Journal, MemoryStore, Recalled, Store, StoreError, Writer};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    struct Full(MemoryStore, Arc<AtomicBool>);

    impl Store for Full {
        fn recall(&mut self) -> Result<Recalled, StoreError> {
            self.0.recall()
        }

        fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
            if self.1.load(Ordering::SeqCst) {
                return Err(StoreError::Ended);
            }
            self.0.commit(batch)
        }
    }

    type Answers = Arc<Mutex<Vec<(Vec<u64>, Option<String>)>>>;

    fn deliver(keeper: &mut Keeper, writer: &mut Writer, answers: &Answers) {
        writer.write_next();
        let all = std::mem::take(&mut *answers.lock().expect("sound"));
        for (tickets, refused) in all {
            assert!(keeper.answered(&tickets, refused.as_deref()).is_empty());
        }
    }

    /// B-24: who orders is answered when all of it is durable, not before; where it cannot be kept that is said, and it is tried again.
    #[test]
    fn an_order_is_answered_when_it_is_durable() {
        let full = Arc::new(AtomicBool::new(false));
        let store = Full(MemoryStore::default(), Arc::clone(&full));
        let (journal, mut writer) = Journal::by_hand(Box::new(store));
        let answers = Answers::default();
        let own = Arc::clone(&answers);
        let mut keeper = Keeper::new(journal, move |tickets, refused| {
            own.lock().expect("sound").push((tickets, refused));
        });
        let protect = |name: &str| Entry::Own {
            identity: name.into(),
            owned: Some(Arc::new(crate::store::Owned { pinned: true, ..Default::default() })),
        };
        let both = || vec![protect("a"), protect("b")];
        let (to, mut answer) = oneshot::channel();
        keeper.order(both(), Promise { to, says: vec!["done".to_owned()] });
        assert!(answer.try_recv().is_err(), "nothing is durable yet");
        deliver(&mut keeper, &mut writer, &answers);
        assert_eq!(answer.try_recv(), Ok(Ok(vec!["done".to_owned()])));

        full.store(true, Ordering::SeqCst);
        let (to, mut answer) = oneshot::channel();
        keeper.order(both(), Promise { to, says: Vec::new() });
        deliver(&mut keeper, &mut writer, &answers);
        assert!(matches!(answer.try_recv(), Ok(Err(Declined::Later(_)))));
        assert!(!keeper.is_sound());
        full.store(false, Ordering::SeqCst);
        keeper.retry(Instant::now() + Duration::from_mins(1));
        deliver(&mut keeper, &mut writer, &answers);
        assert!(keeper.is_sound(), "kept in the end");

        let (to, mut answer) = oneshot::channel();
        keeper.order(Vec::new(), Promise { to, says: Vec::new() });
        assert_eq!(answer.try_recv(), Ok(Ok(Vec::new())), "nothing to keep");
    }
}
