//! Retention: entries that are deleted for space, entries that are not, and histories that belong to another program.

use crate::entries::noise;
use crate::{Stage, is_changed, open, open_after_jump};
use std::path::PathBuf;
use steadfast::history::{Limits, Reader};
use steadfast_resources::{NotRecorded, Outcome};

/// Returns file content of which about thirty stored copies fill one mebibyte.
fn small(seed: u64) -> String {
    noise(seed, 45_000)
}

/// B-6: the entry of a change is not deleted for space by that change or the next one; older entries are.
#[test]
fn the_entry_of_a_change_outlives_the_change() {
    let place = Stage::new(Limits { total: 1 << 20, ..Limits::default() });
    let absent = [("state", "absent")];
    for seed in 0..30 {
        let name = format!("small{seed:02}");
        std::fs::write(place.path(&name), small(seed)).unwrap();
        assert!(is_changed(&place.apply(&name, &absent)), "{name}");
    }
    let large = [("removed", &absent[..]), ("replaced", &[("content", "new")])];
    for (seed, (name, given)) in (50..).zip(large) {
        std::fs::write(place.path(name), noise(seed, 250_000)).unwrap();
        assert!(is_changed(&place.apply(name, given)), "{name}");
        assert_eq!(place.entries(name).len(), 1, "{name}");
    }
    for (seed, (name, _)) in (50..).zip(large) {
        place.undo(name, None).expect("it is kept");
        assert!(std::fs::read(place.path(name)).unwrap() == noise(seed, 250_000).as_bytes());
    }
    assert!(place.entries("small00").is_empty(), "the oldest has made room");
    place.undo("small29", None).expect("the newest of the small ones");
    assert!(std::fs::read(place.path("small29")).unwrap() == small(29).as_bytes());
}

/// B-6: the prior state of one change is stored whole, or the change stops; its own entries never make room for each
/// other.
#[test]
fn content_beyond_the_size_limit_is_not_removed() {
    let place = Stage::new(Limits { total: 1 << 20, ..Limits::default() });
    let files: Vec<PathBuf> = (0..8).map(|n| place.path(&format!("tree/{n}"))).collect();
    std::fs::create_dir(place.path("tree")).unwrap();
    for (seed, path) in (70..).zip(&files) {
        std::fs::write(path, noise(seed, 240_000)).unwrap();
    }
    let given = [("state", "absent"), ("force", "true")];
    let Outcome::Failed { failure, .. } = place.apply("tree", &given) else {
        panic!("expected a refusal")
    };
    assert!(
        failure.what.contains("the content exceeds the size limit of the history (max_total"),
        "{failure}"
    );
    assert!(failure.hint.as_ref().is_some_and(|hint| hint.contains("raise `max_total`")));
    let gone = files.iter().filter(|path| !path.exists()).count();
    assert!((2..8).contains(&gone), "{gone}");
    place.undo("tree", None).expect("all that is gone is kept");
    for (seed, path) in (70..).zip(&files) {
        assert!(std::fs::read(path).unwrap() == noise(seed, 240_000).as_bytes());
    }
    // With enough space the tree is removed.
    let limits = Limits { total: 8 << 20, ..place.limits };
    place.history.close();
    let place = Stage { history: open(place.folder.path(), limits, &place.clock), ..place };
    assert!(is_changed(&place.apply("tree", &given)));
    place.undo("tree", None).expect("undone");
    assert!(files.iter().all(|path| path.exists()));
}

/// L10: a purge continues with a full history; the remaining entries say that the content was not stored.
#[test]
fn a_purge_is_not_stopped_by_a_full_history() {
    let place = Stage::new(Limits { total: 1 << 20, ..Limits::default() });
    std::fs::create_dir(place.path("tree")).unwrap();
    for (number, seed) in (80..88).enumerate() {
        std::fs::write(place.path(&format!("tree/{number}")), noise(seed, 240_000)).unwrap();
    }
    let purged = place.apply("tree/", &[("purge", "true")]);
    assert!(is_changed(&purged), "{purged:?}");
    assert_eq!(std::fs::read_dir(place.path("tree")).unwrap().count(), 0);
    let entries = place.entries("tree/");
    let large =
        entries.iter().filter(|one| one.missing_content() == Some(NotRecorded::Large)).count();
    assert!((2..8).contains(&large) && entries.len() == 8, "{large} of {}", entries.len());
}

/// B-6: a history of a newer program is not changed, and the error names the remedy.
#[test]
fn a_history_of_a_newer_program_is_left_as_it_is() {
    let mut place = Stage::made_by_another("PRAGMA user_version=7");
    let database = place.state().join("history/history.db");
    let before = std::fs::read(&database).unwrap();
    place.open_again();
    match place.apply("f", &[("content", "three")]) {
        Outcome::Failed { failure, touched: false } => {
            assert!(failure.what.contains("made by a newer steadfast (schema 7"), "{failure}");
            let hint = failure.hint.expect("a hint");
            assert!(hint.contains("install the steadfast version that wrote"), "{hint}");
        }
        other => panic!("expected a refusal, found {other:?}"),
    }
    assert_eq!(std::fs::read(place.path("f")).unwrap(), b"two");
    assert_eq!(std::fs::read(&database).unwrap(), before);
    let refused = Reader::open(&place.state()).expect_err("refused").to_string();
    assert!(refused.contains("newer steadfast"), "{refused}");
}

/// A database of another program under the history's name is moved aside byte for byte, whatever its version number.
#[test]
fn a_history_of_another_program_goes_aside_as_it_is() {
    let place = Stage::new(Limits::default());
    std::fs::write(place.path("f"), "mine").unwrap();
    let folder = place.state().join("history");
    std::fs::create_dir(&folder).unwrap();
    let database = folder.join("history.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute_batch("CREATE TABLE entry (foreign_to_us); PRAGMA user_version=1").unwrap();
    connection.close().unwrap();
    let before = std::fs::read(&database).unwrap();
    assert!(is_changed(&place.apply("f", &[("content", "declared")])));
    place.undo("f", None).expect("it goes on");
    let aside = std::fs::read_dir(&folder).unwrap().map(|one| one.unwrap().path());
    let aside: Vec<PathBuf> =
        aside.filter(|path| path.to_string_lossy().contains(".bad-")).collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert!(std::fs::read(&aside[0]).unwrap() == before);
}

/// R3: a system clock that jumps by 200 days, and back again, deletes no entry.
#[test]
fn a_jump_of_the_clock_deletes_nothing() {
    let mut place = Stage::new(Limits::default());
    std::fs::write(place.path("f"), "first").unwrap();
    assert!(is_changed(&place.apply("f", &[("content", "second")])));
    for (days, content) in [(200, "third"), (0, "fourth")] {
        place.history.close();
        place.history = open_after_jump(place.folder.path(), place.limits, &place.clock, days);
        place.history.drop_expired();
        assert!(is_changed(&place.apply("f", &[("content", content)])));
    }
    assert_eq!(place.entries("f").len(), 3);
}
