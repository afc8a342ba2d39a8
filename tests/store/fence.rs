//! Two holders of one state directory after somebody removed its lock file: only the later one can write.

use super::end;
use std::path::Path;
use std::sync::Arc;
use steadfast::store::{
    Ended, Imported, RecordReaders, SqliteStore, StateLock, Store as _, StoreError, StoredState,
};

fn state_lock(path: &Path) -> Arc<StateLock> {
    Arc::new(StateLock::take(path).expect("held"))
}

fn open(state_lock: &Arc<StateLock>) -> SqliteStore {
    SqliteStore::open_held(Arc::clone(state_lock), RecordReaders::default()).expect("opened")
}

fn unlink(path: &Path) {
    std::fs::remove_file(path.join("lock")).expect("removed");
}

/// C-10: each commit of the earlier holder is rejected, also with a new handle, and so are state commands; the state
/// contains nothing of them. The later holder writes until an even later one comes.
#[test]
fn a_later_holder_fences_off_the_earlier_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state");
    let (first, mut stores) = (state_lock(&path), Vec::new());
    stores.push(open(&first));
    stores[0].commit(&[end("file[a]", 1, Ended::Well, &[], None)]).expect("kept");
    unlink(&path);
    let second = state_lock(&path);
    let lost = stores[0].commit(&[end("file[a]", 2, Ended::Well, &[], None)]);
    let lost = lost.expect_err("the lock is not ours").to_string();
    assert!(lost.contains("was removed or replaced: the file `lock` was replaced"), "{lost}");
    stores.push(open(&second));
    assert_eq!((first.epoch(), second.epoch()), (1, 2));
    assert!(!first.fenced().is_cancelled(), "it has not tried");
    {
        let late = stores[0].commit(&[end("file[late]", 3, Ended::Well, &[], None)]);
        let late = late.expect_err("refused").to_string();
        assert!(late.contains("another steadfast has taken the state"), "{late}");
        assert!(late.contains("(epoch 2, ours is 1)"), "{late}");
        assert!(first.fenced().is_cancelled() && !second.fenced().is_cancelled());
        stores[0].reopen().expect_err("refused");
    }
    assert!(matches!(first.fault(), StoreError::Fenced { epoch: 2, ours: 1, .. }));
    let nothing = Imported { recalled: StoredState::default(), machine: None };
    SqliteStore::import(&first, nothing, &RecordReaders::default()).expect_err("refused");
    SqliteStore::open_held(Arc::clone(&first), RecordReaders::default()).expect_err("refused");
    stores[1].commit(&[end("file[b]", 4, Ended::Well, &[], None)]).expect("kept");
    let kept = SqliteStore::peek(&path).expect("read");
    assert_eq!(kept.resources.keys().collect::<Vec<_>>(), ["file[a]", "file[b]"]);
    unlink(&path);
    let third = open(&state_lock(&path));
    stores[1].commit(&[end("file[late]", 5, Ended::Well, &[], None)]).expect_err("refused");
    drop(third);
}

/// C-10: one holder can open the state any number of times; the epoch grows with each holder, in the lock file too.
#[test]
fn the_epoch_grows_with_each_holder() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state");
    for expected in 1..4 {
        let state_lock = state_lock(&path);
        for _ in 0..2 {
            let mut store = open(&state_lock);
            store.commit(&[end("file[a]", 1, Ended::Well, &[], None)]).expect("kept");
        }
        assert_eq!(state_lock.epoch(), expected);
        state_lock.look();
        assert!(!state_lock.fenced().is_cancelled());
        if expected == 2 {
            unlink(&path);
            state_lock.look();
            assert!(!state_lock.fenced().is_cancelled(), "nobody has taken it");
        }
        let lock = std::fs::read_to_string(path.join("lock")).unwrap_or_default();
        let said = lock.lines().nth(1).map(str::to_owned);
        assert_eq!(said, (expected != 2).then(|| expected.to_string()));
    }
}

/// C-10: a holder of a damaged state cannot write to the repaired one.
#[test]
fn a_repaired_state_keeps_its_fence() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state");
    let first = state_lock(&path);
    let mut store = open(&first);
    store.commit(&[end("file[a]", 1, Ended::Well, &[], None)]).expect("kept");
    unlink(&path);
    rusqlite::Connection::open(path.join("state.db"))
        .and_then(|open| open.execute("UPDATE resource SET sum = 0", ()))
        .expect("damaged");
    let second = state_lock(&path);
    SqliteStore::repair(Arc::clone(&second), RecordReaders::default()).expect("repaired");
    assert_eq!(second.epoch(), 2);
    first.look();
    assert!(first.fenced().is_cancelled());
    assert!(matches!(first.fault(), StoreError::Fenced { epoch: 2, ours: 1, .. }));
}
