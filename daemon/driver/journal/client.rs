//! The journal client: records begins and ends, and turns replies of the journal into events of the engine.
//!
//! A begin that cannot be recorded is refused, and nothing is changed. An end that cannot be recorded is retried; until
//! it is durable no begin is accepted, so the entries stay in order.

use crate::driver::commands::state_commands::{CommandResult, Rejection};
use crate::metrics::Histogram;
use crate::store::{AuditEntry, Entry, Journal};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steadfast_engine::{Event, RunId};
use tokio::time::Instant;

/// The time until an entry that could not be recorded is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The driver's interface to the journal.
#[derive(Debug)]
pub(in crate::driver) struct JournalClient {
    journal: Journal,
    next: u64,
    asked: HashMap<u64, JournalQuery>,
    /// Entries that could not be recorded, and all later ones, in their order.
    stalled: Vec<(u64, Entry)>,
    /// Tickets of stalled entries that are being tried again.
    retrying: BTreeSet<u64>,
    retry_at: Option<Instant>,
    /// True after the first entry is durable; until then every begin waits for its own entry.
    has_kept: bool,
    /// True during shutdown: failed entries are not tried again.
    ends: bool,
    /// Audit entries that are durable and not reported yet.
    done: Vec<AuditEntry>,
}

/// The purpose of an entry whose reply is awaited.
#[derive(Debug)]
enum JournalQuery {
    /// A begin, with the entries that withdraw it if it fails.
    Begin(RunId, Vec<Entry>),
    End(RunId, Entry),
    Pause(Entry),
    /// One entry of a begin; the last one gets the reply.
    Part,
    Other(Entry),
    Command(Entry, AwaitedEntry),
}

/// A reply shared by several entries: sent when the last is durable, or at the first failure.
type AwaitedEntry = Arc<Mutex<PendingReply>>;

/// A reply that waits for entries to become durable.
pub(in crate::driver) struct PendingReply {
    /// The receiver; `None` after the reply. The client may be gone, or may have been answered that it takes longer:
    /// the work continues.
    pub(in crate::driver) to: Option<Box<dyn FnOnce(CommandResult) + Send>>,
    pub(in crate::driver) messages: Vec<String>,
    /// The audit entries of the command.
    pub(in crate::driver) deeds: Vec<AuditEntry>,
}

impl std::fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Promise").field("says", &self.messages).finish_non_exhaustive()
    }
}

impl PendingReply {
    /// Sends the success reply if this is the last entry; returns the audit entries to report.
    fn keep(awaited: AwaitedEntry) -> Vec<AuditEntry> {
        let Some(last) = Arc::into_inner(awaited) else { return Vec::new() };
        let Self { to, messages: says, deeds } =
            last.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = to {
            to(Ok(says));
        }
        deeds
    }

    /// Replies that the entry is recorded later, or never if `ends` is true.
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
    /// Returns the number of entries that wait for a commit, and the times of all commits.
    pub(in crate::driver) fn load(&self) -> (usize, Histogram) {
        let (waiting, commits) = self.journal.load();
        (waiting + self.stalled.len(), commits)
    }

    /// Creates a client of this journal. `answer` receives the tickets, with the reason if the entries could not be
    /// recorded.
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

    /// Records a begin. If `urgent` is false, a lost record does no harm, and the event to go on is returned at once.
    /// The first begin of a session always waits: with an unwritable state nothing may change.
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
            // If the run goes on at once, each failed entry must be retried; otherwise the last entry decides for all.
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

    /// Records the end of a run.
    pub(in crate::driver) fn end(&mut self, run: RunId, mut entries: Vec<Entry>, urgent: bool) {
        let Some(entry) = entries.pop() else { return };
        for entry in entries {
            self.write(entry.clone(), urgent, JournalQuery::Other(entry));
        }
        self.write(entry.clone(), urgent, JournalQuery::End(run, entry));
    }

    /// Records a pause of the daemon, or its end.
    pub(in crate::driver) fn pause(&mut self, entry: Entry) {
        self.write(entry.clone(), true, JournalQuery::Pause(entry));
    }

    /// Returns true if the pause of the daemon, or its end, is not durable yet.
    pub(in crate::driver) fn saves_pause(&self) -> bool {
        self.asked.values().any(|asked| matches!(asked, JournalQuery::Pause(_)))
    }

    /// Records an entry whose reply nobody waits for.
    pub(in crate::driver) fn other(&mut self, entry: Entry) {
        self.write(entry.clone(), false, JournalQuery::Other(entry));
    }

    /// Records an entry that must reach the disk soon, although nobody waits for its reply.
    pub(in crate::driver) fn soon(&mut self, entry: Entry) {
        self.write(entry.clone(), true, JournalQuery::Other(entry));
    }

    /// Records the entries of a state command; the reply is sent when all are durable.
    pub(in crate::driver) fn order(&mut self, entries: Vec<Entry>, promise: PendingReply) {
        let awaited: AwaitedEntry = Arc::new(Mutex::new(promise));
        for entry in entries {
            self.write(entry.clone(), true, JournalQuery::Command(entry, Arc::clone(&awaited)));
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

    /// Returns true if no entry is stalled or being tried again.
    pub(in crate::driver) fn is_sound(&self) -> bool {
        self.stalled.is_empty() && self.retrying.is_empty()
    }

    /// Processes a reply of the journal; returns the events for the engine.
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
                // The begin may be durable in spite of the error; withdrawing it also detects that writes succeed
                // again.
                for entry in withdraw {
                    let ticket = self.next_ticket();
                    self.stall(ticket, entry.clone(), JournalQuery::Other(entry));
                }
                Some(Event::Refused(run))
            }
            (JournalQuery::End(run, _), true) => Some(Event::Durable(run)),
            (JournalQuery::Pause(_), true) => Some(Event::PauseSaved),
            (JournalQuery::Other(_), true) | (JournalQuery::Part, _) => None,
            (JournalQuery::Command(_, awaited), true) => {
                self.done.extend(PendingReply::keep(awaited));
                None
            }
            (JournalQuery::Command(entry, awaited), false) => {
                PendingReply::put_off(&awaited, refused.unwrap_or_default(), self.ends);
                self.stall(ticket, entry.clone(), JournalQuery::Command(entry, awaited));
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

    /// Returns the time at which [`JournalClient::retry`] is due.
    #[must_use]
    pub(in crate::driver) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Tries stalled entries again if they are due.
    pub(in crate::driver) fn retry(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.write_stalled();
        }
    }

    /// Writes stalled entries in their old order. Withdrawals come first: a begin to withdraw must not look like an
    /// interrupted run.
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

    /// Takes the durable audit entries that were not reported yet.
    pub(in crate::driver) fn take_done(&mut self) -> Vec<AuditEntry> {
        std::mem::take(&mut self.done)
    }

    /// Returns true if any entry of this session is durable.
    pub(in crate::driver) fn has_kept(&self) -> bool {
        self.has_kept
    }

    /// Returns true if the journal has ended: no later entry can be stored.
    pub(in crate::driver) fn has_ended(&self) -> bool {
        self.journal.ended().is_cancelled()
    }

    /// Waits for the replies to all written entries; they arrive through the usual callback.
    pub(in crate::driver) fn flush(&self) {
        self.journal.flush();
    }

    /// Tries stalled entries a last time; [`JournalClient::flush`] must follow.
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

    /// Returns a client whose commits fail with `fault` while the returned flag is true.
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

    /// B-3, B-6: an entry written before the client learns of a failure does not overtake the failed one; the newest
    /// value stays.
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

    /// B-1, B-6: the first begin waits; a later one that need not wait is retried with all its entries.
    #[test]
    fn a_begin_that_does_not_wait_is_kept_whole_in_the_end() {
        let mut kept = MemoryStore::default();
        let (mut keeper, mut writer, answers, full) = keeper(&kept, Fault::Refused);
        let begin = |name: &str, stamp| {
            let owned = crate::store::Ownership { pinned: true, ..Default::default() };
            let own = Entry::Own { identity: name.into(), owned: Some(Arc::new(owned)) };
            let (identity, owes) = (name.into(), Vec::new());
            let verb = crate::store::Verb::Create;
            vec![own, Entry::Begin { identity, definition: 1, stamp, verb, owes, pays: None }]
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

    /// B-24: a state command is answered when all its entries are durable; a failure is reported and retried.
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
            let deeds = vec![StateCommand::Protect.audit_entry(&"a".into(), "is protected")];
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

        // The receiver has gone before the reply.
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
