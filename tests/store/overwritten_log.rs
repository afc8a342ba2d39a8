//! A write-ahead log that another program truncates or overwrites under an open store: no acknowledged entry is lost.

use super::{begin, end};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::store::{
    Ended, Entry, Journal, MemoryStore, RecordReaders, SqliteStore, StateLock, Store as _,
};

/// The damages to a log of a given length.
const DAMAGES: [fn(&Path, u64); 3] = [
    |log, _| drop(File::create(log).expect("truncated")),
    |log, length| {
        std::fs::write(log, vec![7; usize::try_from(length).expect("short")]).expect("overwritten");
    },
    |log, length| {
        let log = File::options().write(true).open(log).expect("opened");
        log.set_len(length / 2).expect("cut");
    },
];

fn log_of(directory: &Path) -> PathBuf {
    directory.join("state.db-wal")
}

/// Damages the log of an open store.
fn damage(directory: &Path, how: fn(&Path, u64)) {
    // The clock of the file system is coarse.
    std::thread::sleep(Duration::from_millis(20));
    let length = log_of(directory).metadata().expect("a log").len();
    how(&log_of(directory), length);
}

fn entries(from: u64, count: u64) -> Vec<Entry> {
    let one = |k| {
        let identity = format!("exec[{}]", k % 7);
        [begin(&identity, k, &["exec[x]"]), end(&identity, k, Ended::Well, &["exec[x]"], None)]
    };
    (from..from + count).flat_map(one).collect()
}

/// Copies the files of a state, as a kill would leave them.
fn killed(directory: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    for entry in std::fs::read_dir(directory).expect("listed").flatten() {
        if !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copied");
        }
    }
    copy
}

#[track_caller]
fn assert_stored(directory: &Path, wanted: &[Entry]) {
    let mut memory = MemoryStore::default();
    memory.commit(wanted).expect("in memory");
    let wanted = memory.recall().expect("in memory").resources;
    let found = SqliteStore::peek(killed(directory).path()).expect("sound").resources;
    assert_eq!(found, wanted);
}

/// The entries that the database lacks are written again, at the next check and at the next commit.
#[test]
fn an_overwritten_log_loses_no_entry() {
    for how in DAMAGES {
        for with_commit in [false, true] {
            let directory = tempfile::tempdir().expect("a directory");
            let state = directory.path().join("state");
            let said: Arc<Mutex<Vec<String>>> = Arc::default();
            let state_lock = Arc::new(StateLock::take(&state).expect("locked"));
            let report = Arc::clone(&said);
            let report = move |name: &str, line: &str| {
                report.lock().expect("sound").push(format!("{name}: {line}"));
            };
            let readers = RecordReaders { report: Arc::new(report), ..RecordReaders::default() };
            let mut store = SqliteStore::open_held(state_lock, readers).expect("opened");
            SqliteStore::key(&state).expect("a key");
            let mut all = entries(1, 20);
            store.commit(&all).expect("committed");
            damage(&state, how);
            if with_commit {
                let more = entries(30, 5);
                store.commit(&more).expect("committed");
                all.extend(more);
            } else {
                store.check_files().expect("checked");
            }
            assert_stored(&state, &all);
            let told = said.lock().expect("sound").clone();
            assert!(told.len() == 1 && told[0].contains("state.db-wal was truncated"), "{told:?}");
            // The restored log is a usual one.
            damage(&state, how);
            let last = entries(50, 2);
            store.commit(&last).expect("committed");
            all.extend(last);
            assert_stored(&state, &all);
            damage(&state, how);
            drop(store);
            assert_stored(&state, &all);
        }
    }
}

/// A commit is in the database after a quiet second, also without a check.
#[test]
fn the_log_is_copied_after_a_quiet_second() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let store = SqliteStore::open(&state).expect("opened");
    SqliteStore::key(&state).expect("a key");
    let journal = Journal::spawn(Box::new(store)).expect("a thread");
    let all = entries(1, 20);
    for (entry, ticket) in all.iter().zip(1..) {
        journal.write(entry.clone(), ticket, true);
    }
    journal.flush();
    std::thread::sleep(Duration::from_millis(1500));
    let copy = killed(&state);
    let mut log = File::create(log_of(copy.path())).expect("truncated");
    log.flush().expect("empty");
    assert_stored(copy.path(), &all);
}
