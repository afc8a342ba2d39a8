//! A state that is only read until the first commit.

use super::{begin, end};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use steadfast::store::{
    Ended, Entry, RecordReaders, SqliteStore, StateLock, Store as _, StoreError,
};

/// Creates a state with one record, as a clean end leaves it.
fn kept() -> (tempfile::TempDir, PathBuf) {
    let above = tempfile::tempdir().expect("a directory");
    let path = above.path().join("state");
    let mut store = SqliteStore::open(&path).expect("opened");
    SqliteStore::key(&path).expect("made");
    store.commit(&[well("file[a]", 1)]).expect("kept");
    (above, path)
}

fn well(identity: &str, stamp: u64) -> Entry {
    end(identity, stamp, Ended::Well, &[], None)
}

fn later(path: &Path) -> (Arc<StateLock>, SqliteStore) {
    let state_lock = Arc::new(StateLock::take_unsaid(path).expect("held"));
    let store =
        SqliteStore::open_later(Arc::clone(&state_lock), RecordReaders::default()).expect("opened");
    (state_lock, store)
}

/// Returns name, content and modification time of each file.
fn all(path: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let entries = std::fs::read_dir(path).expect("listed");
    let each = entries.map(|entry| entry.expect("an entry").path());
    each.map(|path| {
        let changed = path.metadata().and_then(|found| found.modified()).expect("there");
        (path.clone(), (std::fs::read(&path).expect("read"), changed))
    })
    .collect()
}

fn names(path: &Path) -> Vec<String> {
    SqliteStore::peek(path).expect("read").resources.into_keys().collect()
}

fn holder(path: &Path) -> String {
    let text = std::fs::read_to_string(path.join("lock")).expect("there");
    text.lines().next().unwrap_or_default().to_owned()
}

/// B-5: without a commit nothing is written; the first commit takes the state, records its holder, and stores the
/// entry.
#[test]
fn nothing_is_written_before_there_is_something_to_keep() {
    let (_above, path) = kept();
    std::fs::write(path.join("lock"), "1\n7\n").expect("of one before");
    let before = all(&path);
    let (state_lock, mut store) = later(&path);
    assert_eq!(store.recall().expect("told back").resources.len(), 1);
    store.reopen().expect("a new handle");
    assert_eq!(all(&path), before);
    drop((store, state_lock));
    assert_eq!(all(&path), before);
    let (state_lock, mut store) = later(&path);
    store.commit(&[well("file[b]", 2)]).expect("kept");
    assert_eq!(store.recall().expect("told back").resources.len(), 2);
    drop(store);
    assert_eq!(names(&path), ["file[a]", "file[b]"]);
    assert_eq!((state_lock.epoch(), holder(&path)), (8, std::process::id().to_string()));
}

/// C-1, C-10: a second holder is rejected with the name of the first, also if the first has not written its name.
#[test]
fn a_holder_without_a_write_is_named() {
    let (_above, path) = kept();
    std::fs::write(path.join("lock"), "1\n7\n1\nelsewhere\n").expect("of one before");
    let (_hold, store) = later(&path);
    for refused in [StateLock::take(&path), StateLock::take_unsaid(&path)] {
        match refused.expect_err("refused") {
            StoreError::Locked { pid, host, since: None, .. } => {
                let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
                assert_eq!((pid, host), (std::process::id().to_string(), Some(here)));
            }
            other => panic!("{other}"),
        }
    }
    drop(store);
}

/// C-10: a commit fails if the state was taken by another holder since it was read, or if an earlier holder has
/// written (after the lock file was removed).
#[test]
fn a_state_changed_in_between_is_not_overwritten() {
    for another_takes_it in [true, false] {
        let (_above, path) = kept();
        let (database, lock) = (path.join("state.db"), path.join("lock"));
        // Two different states under one epoch.
        let mut older = SqliteStore::open(&path).expect("opened");
        older.commit(&[well("file[early]", 2)]).expect("kept");
        let early = path.with_extension("early");
        let copy = rusqlite::Connection::open(&database).expect("opened");
        copy.execute("VACUUM INTO ?1", [early.to_str()]).expect("copied");
        drop(copy);
        older.commit(&[well("file[moved]", 3)]).expect("kept");
        drop(older);
        let moved = std::fs::read(&database).expect("read");
        std::fs::write(&database, std::fs::read(&early).expect("read")).expect("put back");
        let (state_lock, mut store) = later(&path);
        assert!(!names(&path).contains(&"file[moved]".to_owned()));
        if another_takes_it {
            std::fs::remove_file(&lock).expect("removed");
            drop(SqliteStore::open(&path).expect("opened"));
        } else {
            std::fs::write(&database, &moved).expect("written");
        }
        let before = names(&path);
        for _ in 0..2 {
            let late = store.commit(&[well("file[late]", 4)]).expect_err("refused").to_string();
            assert!(late.contains("another steadfast has taken the state"), "{late}");
            store.reopen().expect("it can be read");
        }
        assert!(state_lock.fenced().is_cancelled());
        assert_eq!(names(&path), before);
    }
}

/// B-6: a state that is busy for a moment is taken by the next commit.
#[test]
fn a_failed_takeover_is_tried_again() {
    let (_above, path) = kept();
    let (_hold, mut store) = later(&path);
    let other = rusqlite::Connection::open(path.join("state.db")).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    store.commit(&[well("file[b]", 2)]).expect_err("somebody else writes");
    store.reopen().expect("a new handle");
    drop(other);
    store.commit(&[well("file[b]", 2)]).expect("kept");
    assert_eq!(names(&path), ["file[a]", "file[b]"]);
}

/// A change to a state.
type Change = fn(&Path);

/// B-12, B-21: a state that needs correction is opened at once: after a killed run, from another machine, or readable
/// by others. An unusable state is rejected at once.
#[test]
fn a_state_that_needs_correction_is_opened_at_once() {
    let sql = |path: &Path, sql: &str| {
        let open = rusqlite::Connection::open(path.join("state.db")).expect("opened");
        open.execute_batch(sql).expect("changed");
    };
    let cases: [(&str, Change); 2] = [
        ("a run in flight", |path| {
            let mut store = SqliteStore::open(path).expect("opened");
            store.commit(&[begin("file[b]", 2, &["file[a]"])]).expect("kept");
        }),
        ("another machine", |path| {
            let state_lock = Arc::new(StateLock::take(path).expect("held"));
            let machine = Some("0".repeat(32));
            drop(
                SqliteStore::open_on(state_lock, RecordReaders::default(), machine)
                    .expect("opened"),
            );
        }),
    ];
    for (what, change) in cases {
        let (_above, path) = kept();
        change(&path);
        std::fs::write(path.join("lock"), "1\n7\n").expect("of one before");
        let before = all(&path);
        let (state_lock, mut store) = later(&path);
        store.recall().expect("told back");
        drop(store);
        assert_ne!(all(&path), before, "{what}");
        assert_eq!(
            (state_lock.epoch(), holder(&path)),
            (8, std::process::id().to_string()),
            "{what}"
        );
    }
    for damage in ["UPDATE resource SET sum = 0", "UPDATE whole SET rows = 9"] {
        let (_above, path) = kept();
        sql(&path, damage);
        let state_lock = Arc::new(StateLock::take_unsaid(&path).expect("held"));
        let refused =
            SqliteStore::open_later(state_lock, RecordReaders::default()).expect_err("refused");
        assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
    }
}

/// F6: a database readable by others is narrowed together with the lock.
#[test]
fn a_wide_database_is_narrowed_with_its_lock() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_above, path) = kept();
    let database = path.join("state.db");
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o644)).expect("widened");
    let _held = StateLock::take_unsaid(&path).expect("held");
    let mode = std::fs::metadata(&database).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
