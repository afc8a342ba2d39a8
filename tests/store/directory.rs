//! The state directory: private, locked, and owned by one daemon.

use super::{begin, end};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use steadfast::store::{Ended, Entry, PauseRecord, SqliteStore, Store as _, StoreError};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("there").permissions().mode() & 0o7777
}

/// S-7: the directory has mode 0700 and each file in it 0600, after each operation and with any umask.
#[test]
fn nobody_else_can_read_the_state() {
    let above = tempfile::tempdir().expect("a directory");
    let directory = above.path().join("a/b/state");
    let mut store = SqliteStore::open(&directory).expect("opened");
    let check = || {
        assert_eq!(mode(&directory), 0o700);
        for entry in std::fs::read_dir(&directory).expect("listed") {
            let path = entry.expect("an entry").path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    };
    check();
    for stamp in 1..200 {
        store.commit(&[begin("a", stamp, &["b"])]).expect("kept");
        store.commit(&[end("a", stamp, Ended::Well, &[], None)]).expect("kept");
    }
    check();
    store.recall().expect("told back");
    store.reopen().expect("opened again");
    check();
    drop(store);
    check();
    // A widened directory of the daemon is narrowed again.
    std::fs::set_permissions(&directory, Permissions::from_mode(0o755)).expect("widened");
    std::fs::set_permissions(directory.join("state.db"), Permissions::from_mode(0o644))
        .expect("widened");
    let _store = SqliteStore::open(&directory).expect("opened");
    check();
}

#[test]
fn a_directory_of_others_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("something"), "else").expect("written");
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o1777)).expect("widened");
    let refused = SqliteStore::open(directory.path()).expect_err("refused");
    assert!(matches!(refused, StoreError::OpenToOthers { mode: 0o1777, .. }), "{refused}");
    assert_eq!(mode(directory.path()), 0o1777);

    let file = directory.path().join("something");
    let refused = SqliteStore::open(&file).expect_err("refused");
    assert!(matches!(refused, StoreError::Directory { .. }), "{refused}");
    let refused = SqliteStore::open(&file.join("below")).expect_err("refused");
    assert!(matches!(refused, StoreError::Directory { .. }), "{refused}");
}

/// C-1, C-10: a second daemon is rejected at once with the holder's process, host and start time; the lock left by
/// `kill -9` does not block.
#[test]
fn one_daemon_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state");
    let store = SqliteStore::open(&path).expect("opened");
    let own = std::process::id().to_string();
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let refused = SqliteStore::open(&path).expect_err("refused");
    let said = refused.to_string();
    assert!(said.contains(&format!("(pid {own} on {name}, for ")), "{said}");
    match refused {
        StoreError::Locked { pid, host, since: Some(_), .. } => {
            assert_eq!((pid, host), (own, Some(name)));
        }
        other => panic!("{other}"),
    }
    // The lock of an older program has fewer fields.
    std::fs::write(path.join("lock"), format!("{}\n1\n", std::process::id())).expect("written");
    match SqliteStore::open(&path).expect_err("refused") {
        StoreError::Locked { host: None, since: None, .. } => {}
        other => panic!("{other}"),
    }
    drop(store);
    std::fs::write(path.join("lock"), "999999\n").expect("a stale lock");
    SqliteStore::open(&path).expect("opened");
}

/// F-21: a state of a newer release is rejected and left unchanged.
#[test]
fn a_newer_schema_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state");
    drop(SqliteStore::open(&path).expect("opened"));
    let database = path.join("state.db");
    rusqlite::Connection::open(&database)
        .and_then(|connection| connection.pragma_update(None, "user_version", 99))
        .expect("changed");
    let before = std::fs::read(&database).expect("read");
    let refused = SqliteStore::open(&path).expect_err("refused").to_string();
    assert!(refused.contains("newer steadfast"), "{refused}");
    assert_eq!(std::fs::read(&database).expect("read"), before);
    assert_eq!(std::fs::read_dir(&path).expect("listed").count(), 2, "lock and database only");
}

/// S-7: the key of the hashes is created once, and nobody else may read it.
#[test]
fn the_key_is_made_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state");
    assert_eq!(SqliteStore::peek_key(&path), None);
    let _store = SqliteStore::open(&path).expect("opened");
    let key = SqliteStore::key(&path).expect("made");
    assert_eq!(SqliteStore::key(&path).expect("the same"), key);
    assert_eq!(SqliteStore::peek_key(&path), Some(key.clone()));
    assert_ne!(key.0, [0; 32]);
    let mode = std::fs::metadata(path.join("values.key")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(format!("{key:?}"), "<key>");
}

/// A state counts as at rest only while a pause is recorded and no run is active.
#[test]
fn it_rests_while_it_is_paused_and_nothing_is_under_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state");
    let rests = || SqliteStore::rests(&path).expect("read");
    assert!(!rests(), "nothing is kept");
    let mut store = SqliteStore::open(&path).expect("opened");
    let until = |until_unix| {
        Entry::Pause(Some(PauseRecord { reason: "r".to_owned(), until_unix, lasts: None }))
    };
    assert!(!rests());
    for (entry, expected) in [
        (until(u64::MAX >> 1), true),
        (begin("file[a]", 1, &[]), false),
        (end("file[a]", 1, Ended::Well, &[], None), true),
        (until(1), false),
        (until(u64::MAX >> 1), true),
        (Entry::Pause(None), false),
    ] {
        store.commit(std::slice::from_ref(&entry)).expect("kept");
        assert_eq!(rests(), expected, "{entry:?}");
    }
}
