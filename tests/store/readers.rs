//! Readers of a state: they find what a writer would find, and accept no state that a writer rejects.

use super::{begin, end};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use steadfast::store::{
    Ended, Entry, PauseRecord, RecordReaders, SqliteStore, StateLock, Store as _, StoreError,
    StoredState, Verified,
};

/// The number of reads during the commits.
const LOOKS: usize = 4000;

/// The number of other records.
const OTHERS: usize = 20;

/// The result of reading a state.
pub(crate) type Said = Result<StoredState, StoreError>;

/// Reads a state in each of the read-only ways.
pub(crate) fn looked(state: &Path) -> [(&'static str, Said); 4] {
    let damaged = |why| StoreError::Damaged { path: state.display().to_string(), why };
    let verified = SqliteStore::verify(state).and_then(|Verified { damage, recalled, .. }| {
        damage.first().map_or(Ok(recalled), |first| Err(damaged(first.clone())))
    });
    [
        ("peek", SqliteStore::peek(state)),
        ("foresee", SqliteStore::preview_load(state, &RecordReaders::default())),
        ("verify", verified),
        ("export", SqliteStore::export(state).map(|exported| exported.recalled)),
    ]
}

/// Asserts that each reader agrees with the writer's result.
pub(crate) fn agree(what: &str, looked: [(&'static str, Said); 4], opened: &Said) {
    for (who, said) in looked {
        let agrees = match (&said, opened) {
            (Ok(said), Ok(opened)) => StoredState { key: None, ..said.clone() } == *opened,
            (Err(StoreError::Damaged { .. }), Err(StoreError::Damaged { .. }))
            | (Err(StoreError::Newer { .. }), Err(StoreError::Newer { .. }))
            | (Err(StoreError::Database { .. }), Err(StoreError::Database { .. })) => true,
            _ => false,
        };
        assert!(agrees, "{what}: {who} says {said:?}, who opens it {opened:?}");
    }
}

/// Creates a state of two records with its key, as a clean end leaves it.
fn kept() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let mut store = SqliteStore::open(&state).expect("opened");
    SqliteStore::key(&state).expect("made");
    let batch = [begin("file[/etc/a]", 1, &[]), end("file[/etc/a]", 1, Ended::Well, &[], None)];
    store.commit(&batch).expect("kept");
    (directory, state)
}

/// Opens a state as a command or a daemon does, with its key.
fn opened(state: &Path) -> Said {
    let mut store = SqliteStore::open(state)?;
    SqliteStore::key(state)?;
    store.recall()
}

/// A way to damage a state.
type Loss = fn(&Path);

fn sql(state: &Path, sql: &str) {
    let open = rusqlite::Connection::open(state.join("state.db")).expect("opened");
    open.execute_batch(sql).expect("done");
}

/// B-11, B-19: no reader accepts a state that a writer rejects, whatever part is lost; a repair heals the state for
/// all.
#[test]
fn a_state_rejected_by_writers_is_sound_for_no_reader() {
    let losses: [(&str, Loss); 7] = [
        ("the file has only 1 bytes", |state| {
            std::fs::write(state.join("state.db"), "S").expect("cut");
        }),
        ("the database has no tables", |state| {
            // The state after a kill whose log is then lost.
            std::fs::remove_file(state.join("state.db")).expect("removed");
            sql(state, "PRAGMA journal_mode=WAL");
        }),
        ("the checksum of the lease", |state| {
            let path = state.join("state.db");
            let file = std::fs::OpenOptions::new().write(true).open(path).expect("opened");
            let length = file.metadata().expect("there").len();
            file.set_len(length - 1).expect("cut");
        }),
        ("the checksum of the lease", |state| sql(state, "UPDATE lease SET epoch = epoch + 1")),
        ("Query returned no rows", |state| sql(state, "DELETE FROM lease")),
        ("the checksum of the manifest", |state| sql(state, "UPDATE manifest SET machine = 'm'")),
        ("Query returned no rows", |state| sql(state, "DELETE FROM manifest")),
    ];
    for (says, loss) in losses {
        let (_directory, state) = kept();
        agree("before", looked(&state), &opened(&state));
        loss(&state);
        let looked_at = looked(&state);
        let refused = opened(&state);
        let why = refused.as_ref().expect_err("refused").to_string();
        assert!(why.contains(says), "{says}: {why}");
        agree(says, looked_at, &refused);
        let state_lock = Arc::new(StateLock::take(&state).expect("held"));
        let repaired = SqliteStore::repair(state_lock, RecordReaders::default()).expect("repaired");
        let is_named = |line: &String| line.contains("unreadable") || line.contains("is unknown");
        assert!(repaired.lines().iter().any(is_named), "{repaired:?}");
        agree("repaired", looked(&state), &opened(&state));
    }
}

/// B-11: records without their key are damage for readers too, except for those that show single rows.
#[test]
fn records_without_their_key_are_not_sound() {
    let losses: [Loss; 2] = [
        |state| std::fs::remove_file(state.join("values.key")).expect("removed"),
        |state| std::fs::write(state.join("values.key"), "half").expect("cut"),
    ];
    for loss in losses {
        let (_directory, state) = kept();
        loss(&state);
        let [(_, peeked), others @ ..] = looked(&state);
        assert_eq!(peeked.expect("the rows are whole").resources.len(), 1);
        for (who, said) in others {
            let why = said.expect_err(who).to_string();
            assert!(why.contains("values.key") && why.contains("damaged"), "{who}: {why}");
        }
        assert!(matches!(opened(&state), Err(StoreError::Damaged { .. })));
    }
}

/// A first start in progress, or an interrupted one, reads as an empty state.
#[test]
fn a_state_that_is_being_made_is_empty() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path();
    let nothing = || agree("nothing yet", looked(state), &Ok(StoredState::default()));
    nothing();
    std::fs::write(state.join("state.db"), "").expect("made");
    nothing();
    sql(state, "PRAGMA journal_mode=WAL");
    nothing();
    drop(SqliteStore::open(state).expect("opened"));
    nothing();
    SqliteStore::key(state).expect("made");
    nothing();
}

/// B-25: each read during commits sees one generation: two records and the pause that are always written together
/// always match.
#[test]
fn a_look_is_of_one_generation() {
    let (_directory, state) = kept();
    let generation = |number: u64| {
        let pause = PauseRecord { reason: number.to_string(), until_unix: number, lasts: None };
        let pause_of =
            |name: &str| Entry::ResourcePause { identity: name.into(), pause: Some(pause.clone()) };
        [pause_of("file[a]"), pause_of("file[z]"), Entry::Pause(Some(pause.clone()))]
    };
    let mut store = SqliteStore::open(&state).expect("opened");
    // Enough records that commits happen during a read.
    let others = (0..OTHERS).map(|other| format!("file[k{other}]"));
    let others = others.map(|other| end(&other, 2, Ended::Well, &[], None));
    store.commit(&others.collect::<Vec<_>>()).expect("kept");
    store.commit(&generation(1)).expect("kept");
    let done = AtomicBool::new(false);
    let (looks, last) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 1;
            while !done.load(Ordering::SeqCst) {
                number += 1;
                store.commit(&generation(number)).expect("kept");
            }
            number
        });
        let mut seen = BTreeSet::new();
        for _ in 0..LOOKS {
            let found = SqliteStore::peek(&state);
            let Ok(found) = found else {
                done.store(true, Ordering::SeqCst);
                panic!("a look beside who commits: {found:?}");
            };
            let of = |name: &str| found.resources[name].pause.clone();
            let all = [of("file[a]"), of("file[z]"), found.pause.clone()];
            if all.iter().any(|one| *one != found.pause) {
                done.store(true, Ordering::SeqCst);
                panic!("of several generations: {all:?}");
            }
            seen.insert(found.pause.map(|pause| pause.until_unix));
        }
        done.store(true, Ordering::SeqCst);
        (seen.len(), writer.join().expect("it has written"))
    });
    assert!(looks > 1, "{looks} generations were seen of {last}");
}
