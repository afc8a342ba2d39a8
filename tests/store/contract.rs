//! The contract of every store: one suite for all implementations. A reopening stands for a crash and a new start.

use super::{begin, end};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use steadfast::config::KindSet;
use steadfast::store::{
    Call, Ended, Entry, Fault, Faulty, MemoryStore, OpaqueText, PauseRecord, RecordReaders,
    ResourceRecord, SqliteStore, StateLock, Store, StoreError, StoredState, Verb, violations,
};
use steadfast::workers::readers;

/// A function that opens the same store again; the previous handle has been dropped.
type Open<'o> = &'o mut dyn FnMut() -> Box<dyn Store>;

fn remembered(recalled: &StoredState, identity: &str) -> ResourceRecord {
    recalled.resources.get(identity).cloned().unwrap_or_default()
}

fn after(open: Open<'_>, batches: &[&[Entry]]) -> StoredState {
    let mut store = open();
    for batch in batches {
        store.commit(batch).expect("kept");
    }
    drop(store);
    open().recall().expect("told back")
}

fn begin_and_end(open: Open<'_>) {
    let well = after(open, &[&[begin("a", 1, &["b"])], &[end("a", 1, Ended::Well, &[], None)]]);
    let expected = ResourceRecord { done: Some(1001), ..ResourceRecord::default() };
    assert_eq!(remembered(&well, "a"), expected);
    assert_eq!(
        remembered(&well, "b"),
        ResourceRecord::default(),
        "an end without owes owes nothing"
    );
    assert_eq!(well.stamp, 1);

    let failed = after(open, &[&[begin("a", 2, &["b"]), end("a", 2, Ended::Failed, &["b"], None)]]);
    assert_eq!(remembered(&failed, "a"), expected, "B-2: a failure keeps what was done");
    assert_eq!(remembered(&failed, "b").owed, Some((2, "a".to_owned())));
}

/// B-7: sent values are stored independently of runs: they need no begin or end, and leave no run open.
fn values(open: Open<'_>) {
    let sent = |text: &str| Entry::Sent { identity: "v".into(), values: OpaqueText(text.into()) };
    let taken = |text: &str| Entry::Taken { identity: "v".into(), hashes: text.into() };
    let kept = after(open, &[&[sent("one"), taken("x")], &[sent("two")]]);
    assert_eq!(remembered(&kept, "v").sent, Some(OpaqueText("two".into())), "the last counts");
    assert_eq!(remembered(&kept, "v").taken.as_deref(), Some("x"));
    assert_eq!((remembered(&kept, "v").done, remembered(&kept, "v").interrupted), (None, None));
    // A run leaves the values alone, and forgetting the identity deletes them.
    let kept = after(open, &[&[begin("v", 40, &[]), end("v", 40, Ended::Well, &[], None)]]);
    assert_eq!(remembered(&kept, "v").sent, Some(OpaqueText("two".into())));
    let kept = after(open, &[&[Entry::Forget("v".into())]]);
    assert_eq!(remembered(&kept, "v"), ResourceRecord::default());
}

fn begin_without_end(open: Open<'_>) {
    let recalled = after(open, &[&[begin("a", 5, &["b", "c"])]]);
    assert!(remembered(&recalled, "a").interrupted.is_some());
    assert_eq!(remembered(&recalled, "b").owed, Some((5, "a".to_owned())));
    assert_eq!(remembered(&recalled, "c").owed, Some((5, "a".to_owned())));
    assert_eq!(recalled.stamp, 5);
    assert_eq!(after(open, &[]), recalled, "B-12: told back again, it is the same");

    // An end of a later run without a begin (the check found nothing to do) does not clear the debts of the lost run.
    let adopted = after(open, &[&[end("a", 6, Ended::Well, &[], None)]]);
    assert!(remembered(&adopted, "a").interrupted.is_none());
    assert_eq!(remembered(&adopted, "a").done, Some(1006));
    assert_eq!(remembered(&adopted, "b").owed, Some((5, "a".to_owned())));
}

fn lost_run_is_not_told_back_first(open: Open<'_>) {
    // Without a recall between the crash and the next run, the debts of the lost run still hold.
    let next = [begin("a", 7, &[]), end("a", 7, Ended::Well, &[], None)];
    let recalled = after(open, &[&[begin("a", 6, &["b"])], &next]);
    assert_eq!(remembered(&recalled, "b").owed, Some((6, "a".to_owned())));
    let adopted = [end("a", 9, Ended::Well, &[], None)];
    let recalled = after(open, &[&[begin("a", 8, &["b"])], &adopted]);
    assert_eq!(remembered(&recalled, "b").owed, Some((8, "a".to_owned())));
    assert!(remembered(&recalled, "a").interrupted.is_none());
}

/// B-1: a rejected begin is withdrawn, stored or not; no other begin is affected, and a repeated withdrawal has no
/// effect.
fn withdrawn(open: Open<'_>) {
    let withdraw = |stamp| Entry::Withdraw { identity: "a".into(), stamp };
    let before = after(open, &[&[end("a", 1, Ended::Well, &[], None)]]);
    let recalled = after(open, &[&[begin("a", 5, &["b"])], &[withdraw(5), withdraw(5)]]);
    assert_eq!(recalled.resources, before.resources);
    assert_eq!(recalled.stamp, 5, "a stamp is never used again");
    let recalled = after(open, &[&[begin("a", 6, &["b"]), withdraw(5)]]);
    assert!(remembered(&recalled, "a").interrupted.is_some());
    assert_eq!(remembered(&recalled, "b").owed, Some((6, "a".to_owned())));
    // A begin written twice is one run, which owes a refresh only if it is lost.
    let again = [begin("c", 7, &["d"]), begin("c", 7, &["d"]), end("c", 7, Ended::Well, &[], None)];
    assert_eq!(remembered(&after(open, &[&again]), "d"), ResourceRecord::default());
    // A repeated end does not end a later run.
    let ends = || end("e", 10, Ended::Failed, &[], None);
    let late = [begin("e", 10, &["f"]), ends(), begin("e", 12, &["f"]), ends()];
    let withdrawn = Entry::Withdraw { identity: "e".into(), stamp: 12 };
    assert_eq!(remembered(&after(open, &[&late, &[withdrawn]]), "f"), ResourceRecord::default());
}

fn interrupted(open: Open<'_>) {
    let cut = [begin("a", 3, &["b"]), end("a", 3, Ended::Interrupted, &["c"], None)];
    let recalled = after(open, &[&cut]);
    assert!(remembered(&recalled, "a").interrupted.is_some());
    assert_eq!(remembered(&recalled, "a").done, None);
    assert_eq!(remembered(&recalled, "b").owed, Some((3, "a".to_owned())), "its begin owed this");
    assert_eq!(remembered(&recalled, "c").owed, Some((3, "a".to_owned())));
    assert_eq!(remembered(&recalled, "a").cut, Some(Verb::Update), "what was cut off");
    let again = [begin("a", 4, &[]), end("a", 4, Ended::Failed, &[], None)];
    let ended = remembered(&after(open, &[&again]), "a");
    assert_eq!((ended.interrupted, ended.cut), (None, None));
}

fn owed_and_paid(open: Open<'_>) {
    let owe = |stamp, by| end(by, stamp, Ended::Well, &["b"], None);
    let recalled = after(open, &[&[owe(4, "a"), owe(9, "x"), owe(7, "a")]]);
    assert_eq!(remembered(&recalled, "b").owed, Some((9, "x".to_owned())), "the latest counts");
    let less = after(open, &[&[end("b", 10, Ended::Well, &[], Some(8))]]);
    assert_eq!(remembered(&less, "b").owed, Some((9, "x".to_owned())), "more is owed than paid");
    let all = after(open, &[&[end("b", 11, Ended::Well, &[], Some(9))]]);
    assert_eq!(remembered(&all, "b").owed, None);
    assert_eq!(remembered(&all, "b").done, Some(1011));
}

fn forget(open: Open<'_>) {
    let owed = [end("a", 1, Ended::Well, &["b"], None), begin("p", 2, &["c"])];
    let both = [Entry::Forget("b".into()), Entry::Forget("p".into())];
    let recalled = after(open, &[&owed, &both]);
    assert!(!recalled.resources.contains_key("b"), "only this ends what is owed");
    assert!(!recalled.resources.contains_key("p"));
    assert_eq!(
        remembered(&recalled, "c").owed,
        Some((2, "p".to_owned())),
        "E-9: outlives its cause"
    );
    assert_eq!(recalled.stamp, 2, "a stamp is never used again");
}

fn pause(open: Open<'_>) {
    let record =
        PauseRecord { reason: "USR1".to_owned(), until_unix: u64::MAX - 1, lasts: Some(9) };
    let recalled = after(open, &[&[Entry::Pause(Some(record.clone()))]]);
    assert_eq!(recalled.pause, Some(record));
    assert_eq!(after(open, &[&[Entry::Pause(None)]]).pause, None);
}

fn pause_of_one(open: Open<'_>) {
    let record =
        PauseRecord { reason: "a\nb".to_owned(), until_unix: u64::MAX - 1, lasts: Some(9) };
    let pause_of = |pause| Entry::ResourcePause { identity: "a".into(), pause };
    let begun = [pause_of(Some(record.clone())), end("a", 1, Ended::Well, &[], None)];
    let recalled = after(open, &[&begun]);
    assert_eq!(remembered(&recalled, "a").pause, Some(record), "a run does not end it");
    assert_eq!(remembered(&after(open, &[&[pause_of(None)]]), "a").pause, None);
    after(open, &[&begun]);
    let gone = after(open, &[&[Entry::Forget("a".into())]]);
    assert!(!gone.resources.contains_key("a"), "who leaves the graph is paused no more");
}

fn extremes(open: Open<'_>) {
    let name = "file[a b\n\"'é;--]";
    let entry = Entry::Begin {
        identity: name.into(),
        definition: u64::MAX,
        stamp: u64::MAX - 1,
        verb: Verb::Run,
        owes: vec!["exec[,\"[]]".into(), "".into()],
        pays: Some(u64::MAX - 2),
    };
    let recalled = after(open, &[&[entry]]);
    assert!(remembered(&recalled, name).interrupted.is_some());
    assert_eq!(remembered(&recalled, name).cut, Some(Verb::Run));
    assert_eq!(remembered(&recalled, name).cut_pays, Some(u64::MAX - 2));
    assert_eq!(remembered(&recalled, "exec[,\"[]]").owed, Some((u64::MAX - 1, name.to_owned())));
    assert_eq!(recalled.stamp, u64::MAX - 1);
    let mut store = open();
    store.commit(&[]).expect("an empty batch is nothing");
    store.reopen().expect("a new handle");
    assert_eq!(store.recall().expect("told back"), recalled);
}

fn suite(fresh: &mut dyn FnMut() -> Box<dyn FnMut() -> Box<dyn Store>>) {
    for case in [
        begin_and_end,
        begin_without_end,
        lost_run_is_not_told_back_first,
        withdrawn,
        interrupted,
        owed_and_paid,
        forget,
        pause,
        pause_of_one,
        extremes,
        values,
    ] {
        case(&mut *fresh());
    }
}

fn sqlite(directory: &Path) -> Box<dyn Store> {
    Box::new(SqliteStore::open(directory).expect("opened"))
}

/// B-2, B-12: the store in memory meets the contract.
#[test]
fn memory_holds_the_contract() {
    suite(&mut || {
        let store = MemoryStore::default();
        Box::new(move || Box::new(store.clone()))
    });
}

/// B-2, B-12: the `SQLite` store meets the contract.
#[test]
fn sqlite_holds_the_contract() {
    suite(&mut || {
        let directory = tempfile::tempdir().expect("a directory");
        Box::new(move || sqlite(directory.path()))
    });
}

/// B-2, B-12: a store that takes the state at its first commit meets the contract.
#[test]
fn a_store_taken_over_later_holds_the_contract() {
    suite(&mut || {
        let above = tempfile::tempdir().expect("a directory");
        let path = above.path().join("state");
        drop(sqlite(&path));
        SqliteStore::key(&path).expect("made");
        Box::new(move || {
            let _above = &above;
            let state_lock = Arc::new(StateLock::take_unsaid(&path).expect("held"));
            Box::new(SqliteStore::open_later(state_lock, RecordReaders::default()).expect("opened"))
        })
    });
}

/// A store that repeats each failed call once with a new handle, as the journal does.
struct Stubborn<S>(S);

impl<S: Store> Stubborn<S> {
    fn ask<T>(&mut self, call: impl Fn(&mut S) -> Result<T, StoreError>) -> Result<T, StoreError> {
        call(&mut self.0).or_else(|_| {
            let refused = call(&mut self.0).err().expect("B-6: a handle that failed is given up");
            assert!(refused.to_string().contains("the handle was lost"), "{refused}");
            while self.0.reopen().is_err() {}
            call(&mut self.0)
        })
    }
}

impl<S: Store> Store for Stubborn<S> {
    fn recall(&mut self) -> Result<StoredState, StoreError> {
        self.ask(Store::recall)
    }

    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        self.ask(|store| store.commit(batch))
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.0.reopen()
    }
}

/// Wraps a store so that each call except the reopening fails once.
fn stubborn(store: impl Store + 'static, fault: Fault) -> Box<dyn Store> {
    let mut fails = true;
    let faulty = Faulty::new(store, move |call| {
        let opens = matches!(call, Call::Reopen);
        let fault = (fails && !opens).then_some(fault);
        fails = !opens;
        fault
    });
    Box::new(Stubborn(faulty))
}

/// B-6, B-12: both stores meet the contract if each call fails at first, with or without effect, and is repeated.
#[test]
fn stores_with_faults_hold_the_contract() {
    for fault in [Fault::Refused, Fault::Unanswered] {
        suite(&mut || {
            let store = MemoryStore::default();
            Box::new(move || stubborn(store.clone(), fault))
        });
        suite(&mut || {
            let directory = tempfile::tempdir().expect("a directory");
            Box::new(move || stubborn(SqliteStore::open(directory.path()).expect("opened"), fault))
        });
    }
}

/// B-1, B-6: a rejected commit leaves nothing; a stored commit without a reply is stored; a failed handle answers
/// nothing more.
#[test]
fn a_fault_is_told_and_leaves_what_it_says() {
    for (fault, is_kept) in [(Fault::Refused, false), (Fault::Unanswered, true)] {
        let directory = tempfile::tempdir().expect("a directory");
        let faults = move |call: Call<'_>| {
            let is_it = |entry: &Entry| matches!(entry, Entry::Begin { stamp: 2, .. });
            matches!(call, Call::Commit(batch) if batch.iter().any(is_it)).then_some(fault)
        };
        let disk = SqliteStore::open(directory.path()).expect("opened");
        for mut store in [Faulty::new(MemoryStore::default(), faults), Faulty::new(disk, faults)] {
            store.commit(&[begin("a", 1, &[])]).expect("kept");
            store.commit(&[begin("b", 2, &[])]).expect_err("its answer is an error");
            store.commit(&[begin("c", 3, &[])]).expect_err("the handle is lost");
            store.recall().expect_err("the handle is lost");
            store.reopen().expect("a new one");
            let recalled = store.recall().expect("told back");
            let has = |name: &str| recalled.resources.contains_key(name);
            assert_eq!((has("a"), has("b"), has("c")), (true, is_kept, false), "{fault:?}");
        }
    }
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let identity =
        || prop::sample::select(vec!["a[a]", "b[b]", "c[c]", "d[d]"]).prop_map(Arc::<str>::from);
    let owes = || prop::collection::vec(identity(), 0..3);
    let outcome = prop::sample::select(vec![Ended::Well, Ended::Failed, Ended::Interrupted]);
    prop_oneof![
        4 => (identity(), 0..5u64, 1..40u64, owes()).prop_map(
            |(identity, definition, stamp, owes)| {
                let verbs = [Verb::Create, Verb::Update, Verb::Delete, Verb::Refresh, Verb::Run];
                let verb = verbs[usize::try_from(stamp % 5).expect("small")];
                Entry::Begin { identity, definition, stamp, verb, owes, pays: None }
            }
        ),
        4 => (identity(), 0..5u64, outcome, 1..40u64, owes(), prop::option::of(1..40u64)).prop_map(
            |(identity, definition, outcome, stamp, owes, paid)| {
                let begun = (stamp % 3 > 0).then_some(stamp - 1);
                Entry::End { identity, definition, outcome, begun, stamp, owes, paid }
            }
        ),
        1 => (identity(), 1..40u64)
            .prop_map(|(identity, stamp)| Entry::Withdraw { identity, stamp }),
        1 => identity().prop_map(Entry::Forget),
        1 => identity().prop_map(Entry::Reset),
        1 => identity().prop_map(Entry::Retry),
        1 => identity().prop_map(Entry::ForgetSent),
        2 => (identity(), prop::option::of(crate::owned::any_owned())).prop_map(
            |(identity, owned)| Entry::Own { identity, owned: owned.map(Arc::new) }
        ),
        1 => (identity(), any::<bool>())
            .prop_map(|(identity, protect)| Entry::Protect { identity, protect }),
        1 => (identity(), identity(), prop::option::of((0..5u64, 0..5u64))).prop_map(
            |(from, to, definition)| Entry::Rename { from, to, definition, sent: None }
        ),
        1 => (identity(), prop::option::of(0..9u64)).prop_map(|(identity, until)| {
            let record = |until_unix| PauseRecord { reason: "r".to_owned(), until_unix, lasts: None };
            Entry::ResourcePause { identity, pause: until.map(record) }
        }),
        1 => prop::option::of(0..9u64).prop_map(|until| Entry::Pause(until.map(|until_unix| {
            PauseRecord { reason: format!("until {until_unix}"), until_unix, lasts: Some(until_unix) }
        }))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// B-12, B-23: both stores agree after any sequence of batches and crashes, and after each batch the state on
    /// disk satisfies all rules.
    #[test]
    fn both_stores_agree(batches in prop::collection::vec(
        (prop::collection::vec(any_entry(), 0..6), any::<bool>()), 0..12
    )) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut memory = MemoryStore::default();
        let mut disk = sqlite(directory.path());
        SqliteStore::key(directory.path()).expect("made");
        let readers = readers(KindSet::of_this_build(), |_, _| {});
        for (batch, crash) in batches {
            memory.commit(&batch).expect("kept");
            disk.commit(&batch).expect("kept");
            let verified = SqliteStore::verify(directory.path()).expect("read");
            prop_assert_eq!((verified.damage, verified.unsound), (Vec::new(), Vec::new()));
            prop_assert_eq!(violations(&verified.recalled, &readers), Vec::new());
            prop_assert_eq!(verified.recalled, memory.fork().recall().expect("told back"));
            if crash {
                drop(disk);
                disk = sqlite(directory.path());
                let told = disk.recall().expect("told back");
                prop_assert_eq!(&told, &memory.recall().expect("told back"));
                prop_assert_eq!(&told, &disk.recall().expect("told back"));
            }
        }
        prop_assert_eq!(disk.recall().expect("told back"), memory.recall().expect("told back"));
    }
}
