//! The database after some of its bytes were cut off or flipped.

use super::{begin, end, readers};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast::store::{
    Ended, MemoryStore, RecordReaders, SqliteStore, StateLock, Store as _, StoreError, StoredState,
};

/// A way to damage a file.
type Loss = fn(&Path);

/// Returns the distance between two tested bytes; 1 with `STORE_DAMAGE=all`.
fn stride() -> usize {
    if std::env::var_os("STORE_DAMAGE").is_some() { 1 } else { 61 }
}

/// Creates a state directory with these files.
fn made_of(files: &[(&str, &[u8])]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    std::fs::create_dir(&state).expect("made");
    std::fs::write(state.join("lock"), "").expect("written");
    for (name, bytes) in files {
        std::fs::write(state.join(name), bytes).expect("written");
    }
    std::fs::write(state.join("values.key"), [7; 32]).expect("written");
    (directory, state)
}

/// Opens a state made of these files, repairing it if needed. Returns the state and true for a repair, or none if the
/// state was rejected. Readers must agree.
fn start(what: &str, files: &[(&str, &[u8])]) -> Option<(StoredState, bool)> {
    // Readers use a copy, since they may create the file that readers and writers share.
    let (_own, seen) = made_of(files);
    let looked = readers::looked(&seen);
    let (_directory, state) = made_of(files);
    let opened = SqliteStore::open(&state).and_then(|mut store| store.recall());
    let tells_alone = |error: &StoreError| error.to_string().contains("the format is read-only");
    if !opened.as_ref().is_err_and(tells_alone) {
        readers::agree(what, looked, &opened);
    }
    let mut aside = None;
    match opened {
        Ok(_) => {}
        Err(StoreError::Damaged { .. }) => {
            // Only an explicit repair replaces a damaged state.
            let again = SqliteStore::open(&state).expect_err("still as it is");
            assert!(matches!(again, StoreError::Damaged { .. }), "{again}");
            let state_lock = Arc::new(StateLock::take(&state).expect("held"));
            let repaired =
                SqliteStore::repair(state_lock, RecordReaders::default()).expect("repaired");
            aside = repaired.copy().map(Path::to_owned);
        }
        Err(_) => return None,
    }
    let mut store = SqliteStore::open(&state).expect("opened");
    if let Some(aside) = &aside {
        let kept = std::fs::read(aside).expect("the bad copy is kept");
        let (_, bytes) = files.iter().find(|(name, _)| *name == "state.db").expect("given");
        // Opening the database may have moved the valid part of its log into it.
        assert!(!kept.is_empty() || bytes.is_empty());
    }
    let told = store.recall().expect("told back");
    // Every opened state accepts writes.
    store.commit(&[begin("probe", 1, &[])]).expect("kept");
    Some((told, aside.is_some()))
}

/// Returns the state after each batch, and the files after a crash directly behind the last one.
fn history() -> (Vec<StoredState>, Vec<u8>, Vec<u8>, usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let mut store = SqliteStore::open(&state).expect("opened");
    let mut model = MemoryStore::default();
    let mut states = vec![StoredState::default()];
    let mut before_last = 0;
    for stamp in 1..=12 {
        let name = format!("file[/etc/{}]", stamp % 4);
        let batch = if stamp % 2 == 1 {
            vec![begin(&name, stamp, &["svc[a]", "svc[b]"])]
        } else {
            vec![end(&format!("file[/etc/{}]", (stamp - 1) % 4), stamp - 1, Ended::Well, &[], None)]
        };
        before_last = std::fs::metadata(state.join("state.db-wal")).expect("there").len();
        store.commit(&batch).expect("kept");
        model.commit(&batch).expect("kept");
        states.push(model.fork().recall().expect("told back"));
    }
    let database = std::fs::read(state.join("state.db")).expect("read");
    let wal = std::fs::read(state.join("state.db-wal")).expect("read");
    (states, database, wal, usize::try_from(before_last).expect("small"))
}

/// B-11: the newest write in the log, cut at any byte or with any byte flipped, gives the last state or the one
/// before.
#[test]
fn the_newest_write_cut_or_flipped() {
    let (states, database, wal, from) = history();
    let [.., before, last] = states.as_slice() else { panic!("a history") };
    let whole = start("whole", &[("state.db", &database), ("state.db-wal", &wal)]).expect("opened");
    assert_eq!(whole, (last.clone(), false));
    assert!(from < wal.len());
    for place in (from..wal.len()).step_by(stride()).chain(from..from + 32) {
        let mut flipped = wal.clone();
        flipped[place] ^= 0x41;
        for bad in [&wal[..place], &flipped] {
            let files = [("state.db", database.as_slice()), ("state.db-wal", bad)];
            let (told, aside) = start(&format!("byte {place}"), &files).expect("opened");
            assert!(!aside, "byte {place}");
            assert!(told == *before || told == *last, "byte {place}: {told:?}");
        }
    }
}

/// B-11: a flipped byte anywhere in the log gives an earlier state, or the damaged copy is preserved.
#[test]
fn any_byte_of_the_log_flipped() {
    let (states, database, wal, _) = history();
    for place in (0..wal.len()).step_by(stride() * 3).chain(0..64) {
        let mut flipped = wal.clone();
        flipped[place] ^= 0x80;
        let files = [("state.db", database.as_slice()), ("state.db-wal", &flipped)];
        if let Some((told, aside)) = start(&format!("byte {place}"), &files) {
            assert!(aside || states.contains(&told), "byte {place}: {told:?}");
        }
    }
}

/// B-11, F-4: a flipped byte or a cut anywhere in the database gives the last state, a rejection, or a copy moved
/// aside; never another state.
#[test]
fn any_byte_of_the_database_flipped_or_cut() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let mut store = SqliteStore::open(&state).expect("opened");
    for stamp in 1..40 {
        store.commit(&[begin(&format!("file[{stamp}]"), stamp, &["svc[a]"])]).expect("kept");
        if stamp % 3 != 0 {
            let done = end(&format!("file[{stamp}]"), stamp, Ended::Well, &[], None);
            store.commit(&[done]).expect("kept");
        }
    }
    let last = store.recall().expect("told back");
    drop(store);
    assert!(!state.join("state.db-wal").exists(), "a clean end leaves no log");
    let database = std::fs::read(state.join("state.db")).expect("read");
    let mut moved = 0;
    for place in (0..database.len()).step_by(stride()).chain(0..100) {
        for bit in [0x01, 0x80] {
            let mut flipped = database.clone();
            flipped[place] ^= bit;
            let what = format!("byte {place} ^ {bit}");
            if let Some((told, aside)) = start(&what, &[("state.db", &flipped)]) {
                assert!(aside || told == last, "{what}: {told:?}");
                moved += usize::from(aside);
            }
        }
        if place > 0
            && let cut = format!("cut at {place}")
            && let Some((told, aside)) = start(&cut, &[("state.db", &database[..place])])
        {
            assert!(aside || told == last, "{cut}: {told:?}");
        }
    }
    assert!(moved > 20, "damage is noticed: {moved}");
}

/// B-21, F-4: a file that is no database is preserved beside the repaired one.
#[test]
fn rubbish_is_moved_aside() {
    for rubbish in [b"rubbish".as_slice(), &[0x5a; 8192]] {
        let (told, aside) = start("rubbish", &[("state.db", rubbish)]).expect("opened");
        assert_eq!((told, aside), (StoredState::default(), true));
    }
}

/// B-11, B-22: a missing or empty database with a key beside it is damage, and its log is left alone; a repair starts
/// anew. An interrupted first start is no damage.
#[test]
fn a_database_that_is_gone_is_no_new_one() {
    let database_of = |state: &Path| state.join("state.db");
    let made = || {
        let directory = tempfile::tempdir().expect("a directory");
        let mut store = SqliteStore::open(directory.path()).expect("opened");
        SqliteStore::key(directory.path()).expect("made");
        store.commit(&[begin("file[/etc/a]", 1, &[])]).expect("kept");
        drop(store);
        directory
    };
    let losses: [(&str, Loss); 2] = [
        ("the file is missing, but values.key exists", |path| {
            std::fs::remove_file(path).expect("removed");
        }),
        ("the file is empty, but values.key exists", |path| {
            std::fs::write(path, "").expect("emptied");
        }),
    ];
    for (says, loss) in losses {
        let directory = made();
        let (state, path) = (directory.path(), database_of(directory.path()));
        loss(&path);
        std::fs::write(state.join("state.db-wal"), "a log").expect("written");
        let there = path.exists();
        for _ in 0..2 {
            let refused = SqliteStore::open(state).expect_err("refused");
            assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
            assert!(refused.to_string().contains(says), "{refused}");
            let refused = SqliteStore::peek(state).expect_err("refused").to_string();
            assert!(refused.contains(says), "{refused}");
            assert_eq!(path.exists(), there, "left as it is");
            assert_eq!(std::fs::read(state.join("state.db-wal")).expect("read"), b"a log");
        }
        assert!(SqliteStore::is_there(state));
        let state_lock = Arc::new(StateLock::take(state).expect("held"));
        let repaired = SqliteStore::repair(state_lock, RecordReaders::default()).expect("repaired");
        assert!(repaired.lines().join("\n").contains(says), "{repaired:?}");
        assert_eq!(repaired.copy().is_some(), there);
        let recalled = SqliteStore::open(state).and_then(|mut store| store.recall());
        assert_eq!(recalled.expect("told back"), StoredState::default());
    }
    // A crash during the first start: before the database has tables, and before there is a key.
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(database_of(directory.path()), "").expect("written");
    drop(SqliteStore::open(directory.path()).expect("a new one"));
    drop(SqliteStore::open(directory.path()).expect("still without a key"));
    SqliteStore::key(directory.path()).expect("made");
    drop(SqliteStore::open(directory.path()).expect("opened"));
}

/// B-6: a database that disappears while it is in use is damage, and no new one is created.
#[test]
fn a_reopened_store_is_not_a_new_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = SqliteStore::open(directory.path()).expect("opened");
    SqliteStore::key(directory.path()).expect("made");
    store.commit(&[begin("file[/etc/a]", 1, &[])]).expect("kept");
    std::fs::remove_file(directory.path().join("state.db")).expect("removed");
    let refused = store.reopen().expect_err("refused").to_string();
    assert!(refused.contains("the file `state.db` was removed"), "{refused}");
    assert!(store.commit(&[begin("file[/etc/b]", 2, &[])]).is_err());
}

/// Records without the key of their hashes are damage; only a repair creates another key, and says so.
#[test]
fn a_key_that_is_lost_is_not_made_anew() {
    let losses: [(&str, Loss); 3] = [
        ("the file is missing", |path| std::fs::remove_file(path).expect("removed")),
        // R8: five other bytes of the right length.
        ("the content does not match values.key.check", |path| {
            let mut bytes = std::fs::read(path).expect("read");
            bytes[3..8].iter_mut().for_each(|byte| *byte = !*byte);
            std::fs::write(path, bytes).expect("written");
        }),
        ("expected a key of 32 bytes, found 7", |path| {
            std::fs::write(path, "foreign").expect("cut");
        }),
    ];
    for (says, loss) in losses {
        let directory = tempfile::tempdir().expect("a directory");
        let (state, path) = (directory.path(), directory.path().join("values.key"));
        let mut store = SqliteStore::open(state).expect("opened");
        let key = SqliteStore::key(state).expect("made");
        store.commit(&[begin("file[/etc/a]", 1, &[])]).expect("kept");
        drop(store);
        loss(&path);
        let before = std::fs::read(&path).ok();
        drop(SqliteStore::open(state).expect("the rows are whole"));
        let refused = SqliteStore::key(state).expect_err("refused");
        assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
        assert!(refused.to_string().contains(says), "{refused}");
        assert_eq!(std::fs::read(&path).ok(), before, "left as it is");
        let state_lock = Arc::new(StateLock::take(state).expect("held"));
        let repaired = SqliteStore::repair(state_lock, RecordReaders::default()).expect("repaired");
        assert!(repaired.lines().join("\n").contains("a new key is created: received values count as changed, and saved passwords are lost"), "{repaired:?}");
        let anew = SqliteStore::key(state).expect("another one");
        assert_ne!(anew, key);
        let recalled = SqliteStore::open(state).and_then(|mut store| store.recall());
        assert_eq!(recalled.expect("told back").resources.len(), 1);
    }
}

/// Creates a state of 300 records with one damaged; returns its bytes.
fn one_row_damaged(state: &Path) -> Vec<u8> {
    let mut store = SqliteStore::open(state).expect("opened");
    let entries = (0..300)
        .map(|number| end(&format!("file[/etc/{number:03}]"), number + 1, Ended::Well, &[], None));
    store.commit(&entries.collect::<Vec<_>>()).expect("kept");
    drop(store);
    let path = state.join("state.db");
    let mut bytes = std::fs::read(&path).expect("read");
    let name = b"file[/etc/150]";
    let places = bytes.windows(name.len()).enumerate().filter(|(_, part)| part == name);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    for at in places {
        bytes[at + 6] = b'x';
    }
    std::fs::write(&path, &bytes).expect("written");
    bytes
}

/// B-21, B-24: a repair recovers each intact row and names the unreadable ones; a limited number of copies is
/// preserved.
#[test]
fn a_repair_keeps_what_can_be_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    for round in 0..5 {
        let bytes = one_row_damaged(&state);
        let state_lock = Arc::new(StateLock::take(&state).expect("held"));
        let repaired = SqliteStore::repair(state_lock, RecordReaders::default()).expect("repaired");
        let lines = repaired.lines().join("\n");
        assert!(lines.contains("the row of file[/xtc/150]: the checksum"), "{round}: {lines}");
        assert!(lines.contains("recovered: 299 resources"), "{round}: {lines}");
        let copy = repaired.copy().expect("kept beside").to_owned();
        assert_eq!(std::fs::read(copy).expect("read"), bytes);
        let recalled = SqliteStore::open(&state).and_then(|mut store| store.recall());
        let recalled = recalled.expect("told back");
        assert_eq!((recalled.resources.len(), recalled.stamp), (299, 300));
    }
    let names = std::fs::read_dir(&state).expect("listed").flatten();
    let bad = names.filter(|entry| entry.file_name().to_string_lossy().contains(".bad-"));
    assert_eq!(bad.count(), 3, "only the newest copies stay");
}

/// B-12, B-24: a repair that is killed anywhere moves nothing before the new database is complete, and the next
/// repair finishes. An unfinished one never replaces a readable state.
#[test]
fn a_repair_that_is_cut_off_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join("state").join(name);
    let state = directory.path().join("state");
    let damaged = one_row_damaged(&state);
    let repair = || {
        let state_lock = Arc::new(StateLock::take(&state).expect("held"));
        SqliteStore::repair(state_lock, RecordReaders::default()).expect("repaired")
    };
    let told = || {
        let recalled = SqliteStore::open(&state).and_then(|mut store| store.recall());
        recalled.expect("told back").resources.len()
    };
    drop(repair());
    let whole = std::fs::read(at("state.db")).expect("read");
    let write = |name: &str, bytes: &[u8]| std::fs::write(at(name), bytes).expect("written");

    write("state.db", &damaged);
    write("state.db.making", &whole[..whole.len() / 2]);
    assert!(!repair().lines().join(" ").contains("interrupted repair"), "nothing was whole yet");
    assert_eq!((told(), at("state.db.making").exists()), (299, false));

    write("state.db", &damaged);
    write("state.db.repaired", &whole);
    assert!(repair().lines().join(" ").contains("completing an interrupted repair"));
    assert_eq!((told(), at("state.db.repaired").exists()), (299, false));

    std::fs::rename(at("state.db"), at("state.db.repaired")).expect("moved");
    assert!(SqliteStore::open(&state).is_err(), "a state that is gone is no new one");
    assert!(repair().lines().join(" ").contains("completing an interrupted repair"));
    assert_eq!(told(), 299);

    let mut store = SqliteStore::open(&state).expect("opened");
    store.commit(&[end("file[later]", 999, Ended::Well, &[], None)]).expect("kept");
    drop(store);
    write("state.db.repaired", &whole);
    assert_eq!((told(), at("state.db.repaired").exists()), (300, false), "it was not wanted");
}
