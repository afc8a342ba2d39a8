//! A database of another program under the state's name: recognised before anything in it is changed.

use std::path::{Path, PathBuf};
use steadfast::store::{SqliteStore, StoreError};

/// The tables of other programs; the second uses the names of the state's tables.
const TABLES: [&str; 2] = [
    "CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x')",
    "CREATE TABLE resource (identity TEXT, sum INTEGER); CREATE TABLE whole (id INTEGER)",
];

/// Returns the files of a database with their contents, except the file that readers share.
fn files(database: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let names = ["", "-wal", "-journal"].map(|end| format!("{}{end}", database.display()));
    let files = names.into_iter().map(PathBuf::from).filter(|path| path.exists());
    files.map(|path| (path.clone(), std::fs::read(path).expect("read"))).collect()
}

#[track_caller]
fn is_left_alone(state: &Path, at: &str) {
    let database = state.join("state.db");
    let before = files(&database);
    assert!(!before.is_empty(), "{at}");
    for _ in 0..2 {
        match SqliteStore::open(state).expect_err("refused") {
            StoreError::Damaged { why, .. } => {
                assert!(why.contains("made by another program"), "{at}: {why}");
            }
            other => panic!("{at}: {other}"),
        }
        let peeked = SqliteStore::peek(state).expect_err("refused").to_string();
        assert!(peeked.contains("made by another program"), "{at}: {peeked}");
        assert!(files(&database) == before, "{at}: it was changed");
    }
}

/// B-11: a foreign database is left unchanged, journal mode included, whatever its version number and table names.
#[test]
fn foreign_databases_are_left_unchanged() {
    for (version, tables) in (-1..=7).flat_map(|version| TABLES.map(|tables| (version, tables))) {
        let directory = tempfile::tempdir().expect("a directory");
        let connection =
            rusqlite::Connection::open(directory.path().join("state.db")).expect("opened");
        connection.execute_batch(tables).expect("made");
        connection.pragma_update(None, "user_version", version).expect("set");
        connection.close().expect("closed");
        is_left_alone(directory.path(), &format!("version {version}, {tables}"));
    }
}

/// B-11: a foreign database with an unmerged log, as after a kill, is left unchanged, and so is a copy of both.
#[test]
fn a_log_of_another_program_is_left_as_it_is() {
    for with_shared in [true, false] {
        let (theirs, ours) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        let name = theirs.path().join("state.db");
        let connection = rusqlite::Connection::open(&name).expect("opened");
        connection
            .execute_batch("PRAGMA journal_mode=WAL; PRAGMA user_version=3; CREATE TABLE t (a)")
            .expect("made");
        for end in ["", "-wal", "-shm"] {
            if with_shared || end != "-shm" {
                let from = format!("{}{end}", name.display());
                std::fs::copy(from, ours.path().join(format!("state.db{end}"))).expect("copied");
            }
        }
        assert_eq!(files(&ours.path().join("state.db")).len(), 2);
        is_left_alone(ours.path(), &format!("with the shared file: {with_shared}"));
    }
}
