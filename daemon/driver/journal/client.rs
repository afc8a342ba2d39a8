//! Begin and end against the store: which answer of the journal means which event of the engine.
//!
//! A begin that cannot be kept is refused, and nothing is changed. An end that cannot be kept is kept for later, and while one
//! waits no begin is accepted: the log stays in order.

use crate::driver::commands::state_commands::{CommandResult, Rejection};
use crate::store::{AuditEntry, Entry, Journal};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steadfast_engine::{Event, RunId};
use tokio::time::Instant;

/// How long to wait before an end that could not be kept is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The driver's side of the journal.
#[derive(Debug)]
pub(in crate::driver) struct JournalClient {
    journal: Journal,
    next: u64,
    asked: HashMap<u64, JournalQuery>,
    /// Entries that could not be kept, and those that came after them, in their order.
    stalled: Vec<(u64, Entry)>,
    /// Those of them that are being tried again.
    retrying: BTreeSet<u64>,
    retry_at: Option<Instant>,
    /// Something was kept: until then nothing is changed before its begin is.
    has_kept: bool,
    /// Nothing is tried once more.
    ends: bool,
    /// What was ordered and is durable now, until it is told.
    done: Vec<AuditEntry>,
}

#[derive(Debug)]
enum JournalQuery {
    /// With what takes it back.
    Begin(RunId, Vec<Entry>),
    End(RunId, Entry),
    Pause(Entry),
    /// One of several; the last of them answers.
    Part,
    Other(Entry),
    Order(Entry, AwaitedEntry),
}

/// What waits until several entries are durable: the last of them answers, or the first that could not be kept.
type AwaitedEntry = Arc<Mutex<PendingReply>>;

/// Who waits, and for what answer.
pub(in crate::driver) struct PendingReply {
    /// None once it was answered. Who asked may have gone, or was answered that it takes longer; it is done all the same.
    pub(in crate::driver) to: Option<Box<dyn FnOnce(CommandResult) + Send>>,
    pub(in crate::driver) messages: Vec<String>,
    /// What is done by it.
    pub(in crate::driver) deeds: Vec<AuditEntry>,
}

impl std::fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Promise").field("says", &self.messages).finish_non_exhaustive()
    }
}

impl PendingReply {
    /// Answers what is done when the last of it is durable.
    fn keep(awaited: AwaitedEntry) -> Vec<AuditEntry> {
        let Some(last) = Arc::into_inner(awaited) else { return Vec::new() };
        let Self { to, messages: says, deeds } =
            last.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = to {
            to(Ok(says));
        }
        deeds
    }

    /// Answers that it is done later, or never where this is the end.
    fn put_off(awaited: &AwaitedEntry, why: &str, ends: bool) {
        let to = awaited.lock().unwrap_or_else(PoisonError::into_inner).to.take();
        let declined = if ends {
            Rejection::Refused(format!("the change could not be stored and was not made: {why}"))
        } else {
            let says =
                format!("the change is in effect and will be stored as soon as possible: {why}");
            Rejection::Later(says)
        };
        if let Some(to) = to {
            to(Err(declined));
        }
    }
}

impl JournalClient {
    /// Over this journal, whose answers go there, with the reason where something could not be kept.
    #[must_use]
    pub(in crate::driver) fn new(
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
            has_kept: false,
            ends: false,
            done: Vec::new(),
        }
    }

    /// Records a begin. Where losing it could lose nothing (`urgent` is false) the run may go on at once: the answer is then
    /// an event to deliver now. The first of all waits: a state that cannot be written to lets nobody change anything.
    pub(in crate::driver) fn begin(
        &mut self,
        run: RunId,
        mut entries: Vec<Entry>,
        urgent: bool,
    ) -> Option<Event> {
        if !self.is_sound() {
            return Some(Event::Refused(run));
        }
        let urgent = urgent || !self.has_kept;
        let withdraw = entries.iter().filter_map(|entry| match entry {
            Entry::Begin { identity, stamp, .. } => {
                Some(Entry::Withdraw { identity: Arc::clone(identity), stamp: *stamp })
            }
            _ => None,
        });
        let withdraw = withdraw.collect();
        let entry = entries.pop()?;
        for entry in entries {
            // Where the run goes on, each of them is to be kept; else none is without the last.
            let asked =
                if urgent { JournalQuery::Part } else { JournalQuery::Other(entry.clone()) };
            self.write(entry, urgent, asked);
        }
        let asked = if urgent {
            JournalQuery::Begin(run, withdraw)
        } else {
            JournalQuery::Other(entry.clone())
        };
        self.write(entry, urgent, asked);
        (!urgent).then_some(Event::Begun(run))
    }

    /// Records an end.
    pub(in crate::driver) fn end(&mut self, run: RunId, mut entries: Vec<Entry>, urgent: bool) {
        let Some(entry) = entries.pop() else { return };
        for entry in entries {
            self.write(entry.clone(), urgent, JournalQuery::Other(entry));
        }
        self.write(entry.clone(), urgent, JournalQuery::End(run, entry));
    }

    /// Records a pause, or its end.
    pub(in crate::driver) fn pause(&mut self, entry: Entry) {
        self.write(entry.clone(), true, JournalQuery::Pause(entry));
    }

    /// Records what nobody waits for.
    pub(in crate::driver) fn other(&mut self, entry: Entry) {
        self.write(entry.clone(), false, JournalQuery::Other(entry));
    }

    /// The same for what must not be lost if the next moment is the last.
    pub(in crate::driver) fn soon(&mut self, entry: Entry) {
        self.write(entry.clone(), true, JournalQuery::Other(entry));
    }

    /// Records what an operator waits for.
    pub(in crate::driver) fn order(&mut self, entries: Vec<Entry>, promise: PendingReply) {
        let awaited: AwaitedEntry = Arc::new(Mutex::new(promise));
        for entry in entries {
            self.write(entry.clone(), true, JournalQuery::Order(entry, Arc::clone(&awaited)));
        }
        self.done.extend(PendingReply::keep(awaited));
    }

    fn write(&mut self, entry: Entry, urgent: bool, asked: JournalQuery) {
        let ticket = self.next_ticket();
        self.asked.insert(ticket, asked);
        if self.is_sound() {
            self.journal.write(entry, ticket, urgent);
        } else {
            self.stalled.push((ticket, entry));
        }
    }

    fn next_ticket(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Whether all that was written so far is kept, or on its way for the first time.
    pub(in crate::driver) fn is_sound(&self) -> bool {
        self.stalled.is_empty() && self.retrying.is_empty()
    }

    /// What the journal's answer means for the engine.
    pub(in crate::driver) fn answered(
        &mut self,
        tickets: &[u64],
        refused: Option<&str>,
    ) -> Vec<Event> {
        self.has_kept |= refused.is_none();
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
            (JournalQuery::Begin(run, _), true) => Some(Event::Begun(run)),
            (JournalQuery::Begin(run, withdraw), false) => {
                // It may have been kept, and only its answer is an error. This also finds out when state can be kept again.
                for entry in withdraw {
                    let ticket = self.next_ticket();
                    self.stall(ticket, entry.clone(), JournalQuery::Other(entry));
                }
                Some(Event::Refused(run))
            }
            (JournalQuery::End(run, _), true) => Some(Event::Durable(run)),
            (JournalQuery::Pause(_), true) => Some(Event::PauseSaved),
            (JournalQuery::Other(_), true) | (JournalQuery::Part, _) => None,
            (JournalQuery::Order(_, awaited), true) => {
                self.done.extend(PendingReply::keep(awaited));
                None
            }
            (JournalQuery::Order(entry, awaited), false) => {
                PendingReply::put_off(&awaited, refused.unwrap_or_default(), self.ends);
                self.stall(ticket, entry.clone(), JournalQuery::Order(entry, awaited));
                None
            }
            (JournalQuery::End(run, entry), false) => {
                self.stall(ticket, entry.clone(), JournalQuery::End(run, entry));
                None
            }
            (JournalQuery::Pause(entry), false) => {
                self.stall(ticket, entry.clone(), JournalQuery::Pause(entry));
                None
            }
            (JournalQuery::Other(entry), false) => {
                self.stall(ticket, entry.clone(), JournalQuery::Other(entry));
                None
            }
        }
    }

    fn stall(&mut self, ticket: u64, entry: Entry, asked: JournalQuery) {
        self.asked.insert(ticket, asked);
        self.stalled.push((ticket, entry));
        self.retry_at = Some(Instant::now() + AGAIN);
    }

    /// When [`JournalClient::retry`] is wanted, if ever.
    #[must_use]
    pub(in crate::driver) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Tries again to keep what could not be kept.
    pub(in crate::driver) fn retry(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.write_stalled();
        }
    }

    /// In the old order. What takes something back comes first: nothing else may take that for a run that was cut off.
    fn write_stalled(&mut self) {
        self.retry_at = None;
        let is_other = |entry: &Entry| !matches!(entry, Entry::Withdraw { .. });
        self.stalled.sort_by_key(|(ticket, entry)| (is_other(entry), *ticket));
        self.journal.go_on();
        for (ticket, entry) in self.stalled.drain(..) {
            self.retrying.insert(ticket);
            self.journal.write(entry, ticket, true);
        }
    }

    /// What was ordered and is durable, and was not told yet.
    pub(in crate::driver) fn take_done(&mut self) -> Vec<AuditEntry> {
        std::mem::take(&mut self.done)
    }

    /// Whether anything was kept at all.
    pub(in crate::driver) fn has_kept(&self) -> bool {
        self.has_kept
    }

    /// Tells whether the journal has ended: nothing that is written from now on can be stored.
    pub(in crate::driver) fn has_ended(&self) -> bool {
        self.journal.ended().is_cancelled()
    }

    /// Waits until everything written is answered. The answers are where they always are.
    pub(in crate::driver) fn flush(&self) {
        self.journal.flush();
    }

    /// What could not be kept is tried a last time; is to be followed by [`JournalClient::flush`].
    pub(in crate::driver) fn try_last(&mut self) {
        self.ends = true;
        self.write_stalled();
    }
}

#[cfg(test)]
mod tests {
    use super::{JournalClient, PendingReply};
    use crate::driver::commands::state_commands::Rejection;
    use crate::store::{
        Call, Entry, Fault, Faulty, Journal, MemoryStore, PauseRecord, StateCommand, Store as _,
        Writer,
    };
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use steadfast_engine::{Event, RunId};
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    type Answers = Arc<Mutex<Vec<(Vec<u64>, Option<String>)>>>;

    fn deliver(keeper: &mut JournalClient, writer: &mut Writer, answers: &Answers) {
        writer.write_next();
        let all = std::mem::take(&mut *answers.lock().expect("sound"));
        for (tickets, refused) in all {
            assert!(keeper.answered(&tickets, refused.as_deref()).is_empty());
        }
    }

    /// A keeper whose commits fail so as long as it is asked for.
    fn keeper(
        kept: &MemoryStore,
        fault: Fault,
    ) -> (JournalClient, Writer, Answers, Arc<AtomicBool>) {
        let fails = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&fails);
        let store = Faulty::new(kept.clone(), move |call| {
            let writes = matches!(call, Call::Commit(_));
            (writes && asked.load(Ordering::SeqCst)).then_some(fault)
        });
        let (journal, writer) = Journal::by_hand(Box::new(store));
        let answers = Answers::default();
        let own = Arc::clone(&answers);
        let keeper = JournalClient::new(journal, move |tickets, refused| {
            own.lock().expect("sound").push((tickets, refused));
        });
        (keeper, writer, answers, fails)
    }

    /// B-3, B-6: what is written before the driver has heard that something could not be kept does not pass it: the newest is what is kept.
    #[test]
    fn nothing_passes_what_could_not_be_kept() {
        let mut kept = MemoryStore::default();
        let (mut keeper, mut writer, answers, full) = keeper(&kept, Fault::Unanswered);
        full.store(true, Ordering::SeqCst);
        let pause = |until_unix| {
            let record = PauseRecord { reason: "r".to_owned(), until_unix, lasts: None };
            Entry::Pause(Some(record))
        };
        keeper.other(pause(1));
        writer.write_next();
        full.store(false, Ordering::SeqCst);
        assert!(keeper.is_sound(), "it has not heard of it");
        keeper.other(pause(2));
        deliver(&mut keeper, &mut writer, &answers);
        assert!(!keeper.is_sound());
        keeper.retry(Instant::now() + Duration::from_mins(1));
        deliver(&mut keeper, &mut writer, &answers);
        assert!(keeper.is_sound(), "kept in the end");
        let until = kept.recall().expect("told").pause.map(|pause| pause.until_unix);
        assert_eq!(until, Some(2));
    }

    /// B-1, B-6: the first begin waits, whatever it is; a later one that need not is tried again with all that belongs to it.
    #[test]
    fn a_begin_that_does_not_wait_is_kept_whole_in_the_end() {
        let mut kept = MemoryStore::default();
        let (mut keeper, mut writer, answers, full) = keeper(&kept, Fault::Refused);
        let begin = |name: &str, stamp| {
            let owned = crate::store::Ownership { pinned: true, ..Default::default() };
            let own = Entry::Own { identity: name.into(), owned: Some(Arc::new(owned)) };
            let (identity, owes) = (name.into(), Vec::new());
            let verb = crate::store::Verb::Create;
            vec![own, Entry::Begin { identity, definition: 1, stamp, verb, owes }]
        };
        assert_eq!(keeper.begin(RunId(1), begin("a", 1), false), None, "the first waits");
        writer.write_next();
        for (tickets, refused) in std::mem::take(&mut *answers.lock().expect("sound")) {
            assert_eq!(keeper.answered(&tickets, refused.as_deref()).len(), 1);
        }
        full.store(true, Ordering::SeqCst);
        let goes_on = keeper.begin(RunId(2), begin("b", 2), false);
        assert_eq!(goes_on, Some(Event::Begun(RunId(2))));
        deliver(&mut keeper, &mut writer, &answers);
        assert!(!keeper.is_sound());
        full.store(false, Ordering::SeqCst);
        keeper.retry(Instant::now() + Duration::from_mins(1));
        deliver(&mut keeper, &mut writer, &answers);
        let told = kept.recall().expect("told").resources;
        for name in ["a", "b"] {
            let kept = &told[name];
            assert!(kept.owned.is_some() && kept.interrupted.is_some(), "{name}: {kept:?}");
        }
    }

    /// B-24: who orders is answered when all of it is durable, not before; where it cannot be kept that is said, and it is tried again.
    #[test]
    fn an_order_is_answered_when_it_is_durable() {
        let (mut keeper, mut writer, answers, full) =
            keeper(&MemoryStore::default(), Fault::Refused);
        let protect = |name: &str| Entry::Own {
            identity: name.into(),
            owned: Some(Arc::new(crate::store::Ownership { pinned: true, ..Default::default() })),
        };
        let both = || vec![protect("a"), protect("b")];
        let promise = || {
            let (to, answer) = oneshot::channel();
            let deeds = vec![StateCommand::Protect.deed(&"a".into(), "is protected")];
            let to = Box::new(|said| drop(to.send(said)));
            (PendingReply { to: Some(to), messages: vec!["done".to_owned()], deeds }, answer)
        };
        let (asked, mut answer) = promise();
        keeper.order(both(), asked);
        assert!(answer.try_recv().is_err(), "nothing is durable yet");
        assert_eq!(keeper.take_done(), []);
        deliver(&mut keeper, &mut writer, &answers);
        assert_eq!(answer.try_recv(), Ok(Ok(vec!["done".to_owned()])));
        assert_eq!(keeper.take_done().len(), 1, "told when it is durable");

        // Who asked has gone before it was answered.
        keeper.order(both(), promise().0);
        deliver(&mut keeper, &mut writer, &answers);
        assert_eq!(keeper.take_done().len(), 1, "it is done, and told");

        full.store(true, Ordering::SeqCst);
        let (asked, mut answer) = promise();
        keeper.order(both(), asked);
        deliver(&mut keeper, &mut writer, &answers);
        assert!(matches!(answer.try_recv(), Ok(Err(Rejection::Later(_)))));
        assert_eq!(keeper.take_done(), [], "not yet");
        assert!(!keeper.is_sound());
        full.store(false, Ordering::SeqCst);
        keeper.retry(Instant::now() + Duration::from_mins(1));
        deliver(&mut keeper, &mut writer, &answers);
        assert!(keeper.is_sound(), "kept in the end");
        assert_eq!(keeper.take_done().len(), 1, "told in the end, once");

        let (asked, mut answer) = promise();
        keeper.order(Vec::new(), PendingReply { deeds: Vec::new(), ..asked });
        assert_eq!(answer.try_recv(), Ok(Ok(vec!["done".to_owned()])), "nothing to keep");
        assert_eq!(keeper.take_done(), []);
    }
}
