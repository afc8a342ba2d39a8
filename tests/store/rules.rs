//! The rules of the stored state, broken one by one: in a recall, at a load, and at a write.

use crate::state_checksums::Sum;
use std::path::Path;
use std::sync::{Arc, Mutex};
use steadfast::store::{
    Ended, Entry, Imported, LEFT_ALONE, OpaqueText, Origin, Ownership, REPAIRED, RecordReaders,
    ResourceRecord, SqliteStore, StateLock, Store as _, StoreError, StoredState, UNSOUND, Verb,
    export_format, violations,
};

type Reported = Arc<Mutex<Vec<(&'static str, String)>>>;

/// Returns readers for which identities begin with `file[` and the value `bad` is invalid; reports are collected.
fn readers() -> (RecordReaders, Reported) {
    let told = Reported::default();
    let own = Arc::clone(&told);
    let readers = RecordReaders {
        identity: Arc::new(|name| (!name.starts_with("file[")).then(|| "no identity".to_owned())),
        values: Arc::new(|sent, taken| {
            let bad = sent.is_some_and(|OpaqueText(text)| &**text == "bad") || taken == Some("bad");
            bad.then(|| "no values".to_owned())
        }),
        kind: Arc::new(|name| name.contains("[newer").then(|| "no such kind".to_owned())),
        report: Arc::new(move |event, line| own.lock().expect("sound").push((event, line.into()))),
        ..RecordReaders::default()
    };
    (readers, told)
}

fn sound() -> Ownership {
    Ownership {
        origin: Some(Origin::Created),
        graph: "g".into(),
        delete: true,
        removal: Some("{}".into()),
        after: vec!["file[gone]".into(), "file[there]".into()],
        ..Ownership::default()
    }
}

/// A broken rule: the entries, the finding, and the repair at a load.
struct Break {
    entries: Vec<Entry>,
    found: &'static str,
    repaired: &'static str,
    after: fn(&ResourceRecord) -> bool,
}

fn own(change: impl FnOnce(&mut Ownership)) -> Vec<Entry> {
    let mut owned = sound();
    change(&mut owned);
    vec![Entry::Own { identity: "file[a]".into(), owned: Some(Arc::new(owned)) }]
}

fn owed_by(cause: &str) -> Vec<Entry> {
    vec![Entry::End {
        identity: cause.into(),
        definition: 1,
        outcome: Ended::Failed,
        begun: None,
        stamp: 3,
        owes: vec!["file[a]".into()],
        paid: None,
    }]
}

fn breaks() -> Vec<Break> {
    vec![
        Break {
            entries: vec![Entry::Taken { identity: "file[a]".into(), hashes: "bad".into() }],
            found: "file[a]: no values",
            repaired: "the value is received again",
            after: |kept| kept.taken.is_none(),
        },
        Break {
            entries: owed_by("x"),
            found: "file[a]: owed by x: no identity",
            repaired: "the refresh stays owed",
            after: |kept| kept.owed == Some((3, "file[a]".to_owned())),
        },
        Break {
            entries: vec![Entry::Begin {
                identity: "file[a]".into(),
                definition: 1,
                stamp: 5,
                verb: Verb::Create,
                owes: vec!["y".into()],
                pays: None,
            }],
            found: "file[a]: the run owes y a refresh: no identity",
            repaired: "omitted",
            after: |kept| kept.interrupted == Some(1),
        },
        Break {
            entries: own(|owned| owned.after.push("y".into())),
            found: "file[a]: ordered after y: no identity",
            repaired: "omitted",
            after: |kept| kept.owned.as_deref() == Some(&sound()),
        },
        Break {
            entries: own(|owned| owned.after.insert(0, "file[a]".into())),
            found: "file[a]: ordered after itself",
            repaired: "omitted",
            after: |kept| kept.owned.as_deref() == Some(&sound()),
        },
        Break {
            entries: own(|owned| owned.after.reverse()),
            found: "file[a]: the list of predecessors is not sorted",
            repaired: "sorted",
            after: |kept| kept.owned.as_deref() == Some(&sound()),
        },
        Break {
            entries: own(|owned| owned.delete = false),
            found: "file[a]: removal data is stored, but the object is not to be removed",
            repaired: "omitted",
            after: |kept| {
                kept.owned.as_ref().is_some_and(|o| o.removal.is_none() && o.origin.is_some())
            },
        },
    ]
}

fn open(state: &Path, readers: &RecordReaders) -> SqliteStore {
    let state_lock = Arc::new(StateLock::take(state).expect("held"));
    SqliteStore::open_held(state_lock, readers.clone()).expect("opened")
}

fn take(told: &Reported) -> Vec<(&'static str, String)> {
    std::mem::take(&mut *told.lock().expect("sound"))
}

/// B-19, B-20: a write that breaks a rule is noticed in its transaction, reported, and stored anyway; no reader
/// accepts that generation.
#[test]
fn each_rule_is_looked_at_after_a_write() {
    for Break { entries, found, .. } in breaks() {
        let directory = tempfile::tempdir().expect("a directory");
        let (readers, told) = readers();
        let mut store = open(directory.path(), &readers);
        store.commit(&own(|_| {})).expect("kept");
        assert!(take(&told).is_empty(), "sound before {found}");
        store.commit(&entries).expect("a fact is never lost");
        let says = take(&told);
        let (event, line) = says.iter().find(|(_, line)| line.contains(found)).expect(found);
        assert_eq!(*event, UNSOUND);
        assert!(line.starts_with("inconsistent, kept: "), "{line}");
        let verified = SqliteStore::verify(directory.path()).expect("read");
        assert!(verified.unsound.iter().any(|line| line.contains(found)), "{verified:?}");
        // A later write that corrects the state makes the state sound again.
        let forget = ["file[a]", "x", "y"].map(|name| Entry::Forget(name.into()));
        store.commit(&forget).expect("kept");
        let verified = SqliteStore::verify(directory.path()).expect("read");
        assert_eq!(verified.unsound, Vec::<String>::new(), "{found}");
    }
}

/// B-19, B-21: a load repairs each broken rule with a report and a copy of the old state; the next load finds
/// nothing.
#[test]
fn each_rule_is_looked_at_at_a_load() {
    for Break { entries, found, repaired, after } in breaks() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut store = SqliteStore::open(directory.path()).expect("opened");
        store.commit(&own(|_| {})).expect("kept");
        store.commit(&entries).expect("kept");
        drop(store);
        let (readers, told) = readers();
        let mut store = open(directory.path(), &readers);
        let says = take(&told);
        let (event, line) = says.iter().find(|(_, line)| line.contains(found)).expect(found);
        assert_eq!(*event, REPAIRED);
        assert!(line.contains(repaired), "{line}");
        let recalled = store.recall().expect("told back");
        assert!(after(&recalled.resources["file[a]"]), "{found}: {recalled:?}");
        let copy = store.repair_report().copy().expect("kept beside").to_owned();
        assert!(copy.exists());
        drop(store);
        let store = open(directory.path(), &readers);
        assert!(store.repair_report().lines().is_empty(), "{found}: {:?}", store.repair_report());
        assert!(take(&told).is_empty(), "{found}");
    }
}

/// B-19: a record with an invalid identity is dropped, but a refresh that its run owes stays owed. A stamp that is
/// too old is raised.
#[test]
fn invalid_identities_are_left_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = SqliteStore::open(directory.path()).expect("opened");
    let begin = Entry::Begin {
        identity: "nothing".into(),
        definition: 1,
        stamp: 4,
        verb: Verb::Delete,
        owes: vec!["file[a]".into()],
        pays: None,
    };
    store.commit(&[begin]).expect("kept");
    drop(store);
    let (readers, told) = readers();
    let mut store = open(directory.path(), &readers);
    let recalled = store.recall().expect("told back");
    let names: Vec<_> = recalled.resources.keys().collect();
    assert_eq!(names, ["file[a]"]);
    assert_eq!(recalled.resources["file[a]"].owed, Some((4, "file[a]".to_owned())));
    assert!(take(&told).iter().any(|(_, line)| line == "nothing: no identity; left out"));
    assert!(violations(&recalled, &readers).is_empty());
    let late = StoredState { stamp: 2, ..recalled };
    let late = violations(&late, &readers).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(late, ["file[a]: owed at 4, and the newest stamp is 2"]);
}

/// B-19, B-20: an invalid identity is reported by the write that brings it, and stored: no fact is lost.
#[test]
fn invalid_identities_are_found_at_a_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let (readers, told) = readers();
    let mut store = open(directory.path(), &readers);
    store.commit(&[crate::end("nothing", 4, Ended::Well, &[], None)]).expect("kept");
    let line = "inconsistent, kept: nothing: no identity".to_owned();
    assert_eq!(take(&told), [(UNSOUND, line)]);
    assert_eq!(store.recall().expect("told").resources["nothing"].done, Some(1004));
    store.commit(&[Entry::Forget("nothing".into())]).expect("kept");
    assert!(take(&told).is_empty());
    assert!(SqliteStore::verify(directory.path()).expect("read").unsound.is_empty());
}

/// B-19, B-20: a newest stamp that is older than a debt or a begin (only a foreign write can cause that) is reported
/// by the next write that touches one of these, and raised by the next load.
#[test]
fn a_stamp_that_is_too_late_is_found_at_a_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let (readers, told) = readers();
    let mut store = open(directory.path(), &readers);
    let begin = crate::begin("file[b]", 5, &[]);
    store
        .commit(&[crate::end("file[x]", 4, Ended::Well, &["file[a]"], None), begin])
        .expect("kept");
    let other = rusqlite::Connection::open(directory.path().join("state.db")).expect("opened");
    let tally = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let tally = other.query_row("SELECT rows, digest FROM whole", (), tally).expect("a row");
    let sum = Sum::new().number(Some(2)).text(None).number(None);
    let sum = [tally.0, tally.1].iter().fold(sum, |sum, n| sum.number(Some(n.cast_unsigned())));
    other
        .execute("UPDATE whole SET stamp = 2, sum = ?1", [sum.0.cast_signed()])
        .expect("written past the store");
    drop(other);
    assert!(take(&told).is_empty());
    let touch = |name: &str| Entry::ResourcePause { identity: name.into(), pause: None };
    let sent = Entry::Sent { identity: "file[b]".into(), values: OpaqueText("{}".into()) };
    let taken = Entry::Taken { identity: "file[a]".into(), hashes: "{}".into() };
    store.commit(&[sent, taken, touch("file[x]")]).expect("kept");
    let mut says: Vec<String> = take(&told).into_iter().map(|(_, line)| line).collect();
    says.sort_unstable();
    let late = "inconsistent, kept: ";
    assert_eq!(
        says,
        [
            format!("{late}file[a]: owed at 4, and the newest stamp is 2"),
            format!("{late}file[b]: begun at 5, and the newest stamp is 2"),
        ]
    );
    drop(store);
    let mut store = open(directory.path(), &readers);
    let says = take(&told);
    assert!(says.iter().all(|(event, line)| *event == REPAIRED && line.contains("was raised")));
    assert_eq!((says.len(), store.recall().expect("told").stamp), (2, 5));
}

/// Returns all rows of the tables, except the epoch, which each holder raises.
fn rows(path: &Path) -> Vec<String> {
    let database = rusqlite::Connection::open(path).expect("opened");
    let mut all = Vec::new();
    for table in ["resource", "whole", "manifest"] {
        let mut select = database.prepare(&format!("SELECT * FROM {table}")).expect("prepared");
        let columns = select.column_count();
        let found = select.query_map((), |row| {
            (0..columns).map(|column| Ok(format!("{:?}", row.get_ref(column)?))).collect()
        });
        let found: Result<Vec<Vec<String>>, _> = found.expect("asked").collect();
        all.extend(found.expect("read").into_iter().map(|row| row.join(" ")));
    }
    all
}

/// B-21: a valid record is not touched, also one behind a deleted record.
#[test]
fn valid_records_stay_as_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let (readers, told) = readers();
    let mut store = open(directory.path(), &readers);
    store.commit(&own(|_| {})).expect("kept");
    drop(store);
    let path = directory.path().join("state.db");
    let before = rows(&path);
    assert_eq!(before.len(), 3);
    drop(open(directory.path(), &readers));
    assert!(take(&told).is_empty());
    assert_eq!(rows(&path), before);
    let names = std::fs::read_dir(directory.path()).expect("listed").flatten();
    let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains(".bad-")), "{names:?}");
}

/// A state from another machine is adopted, so that a clone deletes nothing that it did not create. Records of runs
/// and of `on_remove` stay. The adoption is reported once.
#[test]
fn a_cloned_state_is_adopted() {
    let directory = tempfile::tempdir().expect("a directory");
    let state_lock = || Arc::new(StateLock::take(directory.path()).expect("held"));
    let on = |machine: Option<&str>| {
        let machine = machine.map(str::to_owned);
        SqliteStore::open_on(state_lock(), RecordReaders::default(), machine).expect("opened")
    };
    let (first, second) = (Some("1".repeat(32)), Some("2".repeat(32)));
    let mut store = on(first.as_deref());
    store.commit(&own(|_| {})).expect("kept");
    drop(store);
    // A machine without a name does not count as another machine.
    for same in [first.as_deref(), None, first.as_deref()] {
        let mut store = on(same);
        assert!(store.repair_report().lines().is_empty());
        let kept = store.recall().expect("told").resources.remove("file[a]").expect("kept");
        assert_eq!(kept.owned.as_deref(), Some(&sound()));
    }
    let mut store = on(second.as_deref());
    let line = store.repair_report().lines().first().expect("said").clone();
    assert!(line.contains("from another machine (1111"), "{line}");
    let kept = store.recall().expect("told").resources.remove("file[a]").expect("kept");
    let adopted = Ownership { origin: Some(Origin::Adopted), ..sound() };
    assert_eq!(kept.owned.as_deref(), Some(&adopted));
    drop(store);
    assert!(on(second.as_deref()).repair_report().lines().is_empty(), "said once");
}

/// A sent value can be a password without a copy: an unreadable one is damage, and only an operator may delete the
/// value.
#[test]
fn sent_values_are_not_forgotten_by_themselves() {
    let directory = tempfile::tempdir().expect("a directory");
    let (readers, told) = readers();
    let mut store = open(directory.path(), &readers);
    let sent = Entry::Sent { identity: "file[a]".into(), values: OpaqueText("bad".into()) };
    store.commit(&[own(|_| {}), vec![sent]].concat()).expect("a fact is never lost");
    drop(store);
    assert_eq!(take(&told).len(), 1, "said when it was written");
    let path = directory.path().join("state.db");
    let before = std::fs::read(&path).expect("read");
    let state_lock = || Arc::new(StateLock::take(directory.path()).expect("held"));
    for _ in 0..2 {
        let refused = SqliteStore::open_held(state_lock(), readers.clone()).expect_err("refused");
        assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
        assert!(refused.to_string().ends_with("file[a]: no values"), "{refused}");
        assert_eq!(std::fs::read(&path).expect("read"), before, "left as it is");
    }
    let repaired = SqliteStore::repair(state_lock(), readers.clone()).expect("repaired");
    let lines = repaired.lines().join("\n");
    assert!(lines.contains("file[a]: no values; forgotten: "), "{lines}");
    assert_eq!(std::fs::read(repaired.copy().expect("beside")).expect("read"), before);
    let recalled = open(directory.path(), &readers).recall().expect("told back");
    let kept = &recalled.resources["file[a]"];
    assert_eq!((kept.sent.as_ref(), kept.owned.as_deref()), (None, Some(&sound())));
}

/// Records of an unknown kind (after a downgrade) stay unchanged without a report; a program that knows the kind
/// reads them again.
#[test]
fn records_of_an_unknown_kind_stay() {
    let directory = tempfile::tempdir().expect("a directory");
    let (readers, told) = readers();
    let newer = || "file[newer]".into();
    let mut store = SqliteStore::open(directory.path()).expect("opened");
    let pinned = Ownership { pinned: true, ..sound() };
    store
        .commit(&[
            Entry::Own { identity: newer(), owned: Some(Arc::new(pinned)) },
            Entry::Sent { identity: newer(), values: OpaqueText("bad".into()) },
            end_of("file[newer]", &["file[a]"]),
            end_of("file[a]", &["file[newer]"]),
        ])
        .expect("kept");
    let before = store.recall().expect("told back");
    drop(store);
    for _ in 0..2 {
        let mut store = open(directory.path(), &readers);
        let says = take(&told);
        let line = "file[newer]: no such kind; the record stays unchanged".to_owned();
        assert_eq!(says, [(LEFT_ALONE, line)]);
        assert!(store.repair_report().lines().is_empty() && store.repair_report().copy().is_none());
        let recalled = store.recall().expect("told back");
        assert!(!recalled.resources.contains_key("file[newer]"), "{recalled:?}");
        assert_eq!(recalled.resources["file[a]"], before.resources["file[a]"]);
        store.commit(&[end_of("file[b]", &[])]).expect("kept");
        assert!(take(&told).is_empty());
    }
    let kept = SqliteStore::peek(directory.path()).expect("read");
    assert!(violations(&kept, &readers).is_empty());
    let mut after = SqliteStore::open(directory.path()).expect("opened").recall().expect("told");
    assert!(after.resources.remove("file[b]").is_some());
    assert_eq!(after, before);
}

fn end_of(identity: &str, owes: &[&str]) -> Entry {
    Entry::End {
        identity: identity.into(),
        definition: 1,
        outcome: Ended::Well,
        begun: None,
        stamp: 3,
        owes: super::names(owes),
        paid: None,
    }
}

fn made_here(on: Option<&str>) -> Imported {
    let kept = ResourceRecord { owned: Some(Arc::new(sound())), ..ResourceRecord::default() };
    let resources = [("file[a]".to_owned(), kept)].into();
    let recalled = StoredState { resources, ..StoredState::default() };
    Imported { recalled, machine: on.map(str::to_owned) }
}

fn origin(state: &Path, machine: &str) -> Option<Origin> {
    let state_lock = Arc::new(StateLock::take(state).expect("held"));
    let store =
        SqliteStore::open_on(state_lock, RecordReaders::default(), Some(machine.to_owned()));
    let mut recalled = store.expect("opened").recall().expect("told back");
    recalled.resources.remove("file[a]").expect("kept").owned.expect("owned").origin
}

/// A state from another machine, or without a machine name, is imported as adopted, so that nothing from elsewhere is
/// deleted here. The export contains the name.
#[test]
fn objects_of_another_machine_are_imported_as_adopted() {
    for (on, expected) in
        [(Some("here"), Origin::Created), (Some("there"), Origin::Adopted), (None, Origin::Adopted)]
    {
        let directory = tempfile::tempdir().expect("a directory");
        let state_lock = StateLock::take(directory.path()).expect("held");
        let text = export_format::write(&made_here(on), |sent| Some(sent.clone()));
        let read = export_format::read(&text, &RecordReaders::default()).expect("sound");
        assert_eq!(read, made_here(on));
        let here = Some("here".to_owned());
        let repaired = SqliteStore::import_on(&state_lock, read, &RecordReaders::default(), here);
        let lines = repaired.expect("taken in").lines().join("\n");
        assert_eq!(lines.contains("are adopted"), expected == Origin::Adopted, "{lines}");
        drop(state_lock);
        assert_eq!(origin(directory.path(), "here"), Some(expected), "{on:?}");
        let exported = SqliteStore::export(directory.path()).expect("read");
        assert_eq!(exported.machine.as_deref(), Some("here"));
    }
    // Exports of older programs have no machine field.
    let text = export_format::write(&made_here(None), |sent| Some(sent.clone()));
    let before = text.replace("  \"machine\": null,\n", "");
    assert_ne!(before, text);
    assert_eq!(
        export_format::read(&before, &RecordReaders::default()).expect("sound"),
        made_here(None)
    );
}

/// A repair of a damaged clone adopts too, also if the name of the machine is lost.
#[test]
fn a_repaired_clone_is_adopted() {
    for (damage, here, expected) in [
        ("UPDATE whole SET sum = sum + 1", "here", Origin::Created),
        ("UPDATE whole SET sum = sum + 1", "there", Origin::Adopted),
        ("UPDATE manifest SET sum = sum + 1", "here", Origin::Adopted),
        ("PRAGMA user_version = 0", "here", Origin::Adopted),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let state_lock = || Arc::new(StateLock::take(directory.path()).expect("held"));
        let (made, machine) = (Some("here".to_owned()), Some(here.to_owned()));
        let mut store =
            SqliteStore::open_on(state_lock(), RecordReaders::default(), made).expect("opened");
        store.commit(&own(|_| {})).expect("kept");
        drop(store);
        rusqlite::Connection::open(directory.path().join("state.db"))
            .and_then(|database| database.execute_batch(damage))
            .expect("damaged");
        let repaired = SqliteStore::repair_on(state_lock(), RecordReaders::default(), machine)
            .expect("repaired");
        let lines = repaired.lines().join("\n");
        assert_eq!(lines.contains("are adopted"), expected == Origin::Adopted, "{damage}: {lines}");
        assert_eq!(origin(directory.path(), here), Some(expected), "{damage} on {here}");
    }
}
