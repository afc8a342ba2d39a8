//! The event log on disk.

use crate::{changed, start};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steadfast::api::event_data::{Gap, SessionEnd};
use steadfast::api::{EventKind, Level};
use steadfast::events::{DATABASE, Log, Mark, NewEvent, PublishedEvent, Reader, Retention, Wanted};

const HOUR: u64 = 3_600_000;

fn open(directory: &Path) -> Log {
    Log::open(directory, Retention::default(), None).expect("opened")
}

fn all(directory: &Path) -> Vec<PublishedEvent> {
    reader(directory).read(0, u64::MAX, usize::MAX).expect("read")
}

fn reader(directory: &Path) -> Reader {
    Reader::open(directory).expect("readable").expect("there")
}

fn named(names: &[&str]) -> Arc<BTreeSet<String>> {
    Arc::new(names.iter().map(ToString::to_string).collect())
}

fn numbers(events: &[PublishedEvent]) -> Vec<u64> {
    events.iter().filter_map(|event| event.number).collect()
}

fn some(count: u64, at: u64) -> Vec<(u64, NewEvent)> {
    (0..count).map(|n| (at + n, changed(&n.to_string()))).collect()
}

proptest! {
    // Each commit is a sync, so the number of cases is small.
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    /// C-11: event numbers are contiguous and unique for any batches and any number of reopenings.
    #[test]
    fn c11_numbers_have_no_hole(batches in prop::collection::vec((0_u64..20, any::<bool>()), 1..12)) {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, mut expected) = (open(folder.path()), 0);
        for (count, again) in batches {
            prop_assert_eq!(log.append(&some(count, 5), &[]).unwrap(), expected + 1);
            expected += count;
            if again {
                drop(log);
                log = open(folder.path());
            }
            prop_assert_eq!(log.last_number(), expected);
        }
        prop_assert_eq!(numbers(&all(folder.path())), (1..=expected).collect::<Vec<_>>());
    }
}

/// C-11, S-7: a stored event is read back unchanged, with its time in milliseconds; nobody else may read the log.
#[test]
fn c11_an_event_comes_back_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = NewEvent { message: "two\nlines ü".to_owned(), ..changed("a") };
    open(folder.path()).append(&[(1_234_567_890_123, told.clone())], &[]).expect("kept");
    assert_eq!(all(folder.path()), [PublishedEvent::new(Some(1), 1_234_567_890_123, told)]);
    let mode = folder.path().join(DATABASE).metadata().expect("there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
}

/// C-11: a session without an end is ended once, by the next session that opens the log; a session does not end
/// itself.
#[test]
fn c11_a_run_without_an_end_is_ended_by_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || (7, start());
    let mut log = open(folder.path());
    log.append(&[start()], &[]).expect("kept");
    assert_eq!(log.run(), Some(1));
    drop(log);
    // The same session opens the log again, as after a full disk.
    drop(Log::open(folder.path(), Retention::default(), Some(1)).expect("opened"));
    assert_eq!(all(folder.path()).len(), 1);
    let mut log = open(folder.path());
    let end = all(folder.path()).pop().expect("an end");
    let EventKind::RunEnd(end) = &end.kind else { panic!("{end:?}") };
    assert_eq!((&*end.result, end.run), ("interrupted", Some(1)));
    assert_eq!(end.session.as_ref().map(|session| &*session.command), Some("run"));
    log.append(&[start()], &[]).expect("kept");
    let end = SessionEnd { run: Some(3), ..SessionEnd::default() };
    let end = NewEvent::new(EventKind::RunEnd(end), Level::Info);
    log.append(&[(9, end)], &[]).expect("kept");
    drop(log);
    drop(open(folder.path()));
    assert_eq!(all(folder.path()).len(), 4, "each has one end");
}

/// C-21: the oldest events are deleted in small steps when the log is too large. A reader whose place is deleted
/// gets the number of missing events; numbers stay contiguous.
#[test]
fn c21_size_is_bounded_and_a_lost_place_is_a_gap() {
    let folder = tempfile::tempdir().expect("a folder");
    let retention = Retention { bytes: 1 << 20, ..Retention::default() };
    let mut log = Log::open(folder.path(), retention, None).expect("opened");
    for round in 0..40 {
        log.append(&some(1000, round * 1000 + 1), &[]).expect("kept");
        while log.trim(HOUR, false).expect("trimmed") {}
    }
    let size = folder.path().join(DATABASE).metadata().expect("there").len();
    assert!(size < 2 << 20, "{size} bytes");
    let (first, last) = reader(folder.path()).span().expect("read").expect("some");
    assert!(first > 15_000 && last == 40_000, "{first} to {last}");
    let events = reader(folder.path()).read(101, u64::MAX, 3).expect("read");
    let gone = first - 101;
    let EventKind::Gap(Gap { count, .. }) = events[0].kind else { panic!("{events:?}") };
    assert_eq!(
        (events[0].kind.name(), count, events[0].number),
        ("gap", Some(gone), Some(first - 1))
    );
    assert_eq!(numbers(&events), [first - 1, first, first + 1, first + 2]);
    assert_eq!(log.append(&some(1, 1), &[]).expect("kept"), 40_001);
}

/// C-21: events beyond the age limit are deleted, except the last one, which determines the next number.
#[test]
fn c21_age_is_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let retention = Retention { age: Duration::from_hours(1), ..Retention::default() };
    let mut log = Log::open(folder.path(), retention, None).expect("opened");
    log.append(&some(10, HOUR), &[]).expect("kept");
    log.append(&some(10, 3 * HOUR), &[]).expect("kept");
    assert!(!log.trim(3 * HOUR + 5, true).expect("trimmed"));
    assert_eq!(numbers(&all(folder.path()))[1..], (11..=20).collect::<Vec<_>>());
    assert_eq!(all(folder.path())[0].kind.name(), "gap");
    assert!(!log.trim(30 * HOUR, true).expect("trimmed"));
    drop(log);
    assert_eq!(open(folder.path()).append(&some(1, 1), &[]).expect("kept"), 21);
}

/// C-21: a query selects events by number, time, resource, or as the last ones.
#[test]
fn queries_begin_at_the_right_event() {
    let folder = tempfile::tempdir().expect("a folder");
    open(folder.path()).append(&some(100, 1000), &[]).expect("kept");
    let begin = |wanted: Wanted| reader(folder.path()).begin(&wanted).expect("read");
    let wanted = Wanted::default;
    assert_eq!(begin(wanted()), 0);
    assert_eq!(begin(Wanted { from: Some(7), ..wanted() }), 7);
    assert_eq!(begin(Wanted { since: Some(1050), ..wanted() }), 51);
    assert_eq!(begin(Wanted { since: Some(2000), ..wanted() }), 101, "nothing since");
    assert_eq!(begin(Wanted { limit: Some(10), ..wanted() }), 91);
    assert_eq!(begin(Wanted { limit: Some(10), since: Some(1095), ..wanted() }), 96);
    let of = Wanted { limit: Some(1), resources: Some(named(&["file[4]"])), ..wanted() };
    assert_eq!(begin(of), 5);
    let of =
        Wanted { limit: Some(2), resources: Some(named(&["file[4]", "file[9]", "x"])), ..wanted() };
    assert_eq!((begin(of.clone()), begin(Wanted { limit: Some(1), ..of })), (5, 10));
    let names = reader(folder.path()).resources().expect("read");
    assert_eq!((names.len(), &*names[0]), (100, "file[0]"));
}

/// C-12: the place of a recorder and its begun batch outlive the process; a confirmed batch is no longer begun.
#[test]
fn c12_the_place_of_a_recorder_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = open(folder.path());
    let place = || reader(folder.path()).place("r").expect("read").expect("known");
    assert_eq!(reader(folder.path()).place("r").expect("read"), None);
    let begin = |first, last| Mark::Begin("r".into(), first, last);
    log.append([], &[Mark::Enlist("r".into(), 4), begin(5, 54), begin(55, 60)]).expect("kept");
    log.append([], &[Mark::Enlist("r".into(), 90), Mark::Done("r".into(), 55, 4)]).expect("kept");
    drop(log);
    assert_eq!((place().number, place().begun), (4, vec![(5, 54)]));
    open(folder.path()).append([], &[Mark::Done("r".into(), 5, 60)]).expect("kept");
    assert_eq!((place().number, place().begun), (60, vec![]));
}

/// C-22: a damaged log is moved aside, and a new one starts with an event about that and with unused numbers.
#[test]
fn c22_a_damaged_log_is_begun_anew() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("garbage", |path| std::fs::write(path, [b'x'; 9000]).expect("written")),
        ("one byte", |path| std::fs::write(path, "x").expect("written")),
        ("half", |path| {
            let file = OpenOptions::new().write(true).open(path).expect("opened");
            file.set_len(file.metadata().expect("there").len() / 2).expect("cut");
        }),
        ("a page of nothing", |path| {
            let file = OpenOptions::new().write(true).open(path).expect("opened");
            file.write_all_at(&[0; 4096], 4096).expect("written");
        }),
    ];
    for (harm, damage) in harms {
        let folder = tempfile::tempdir().expect("a folder");
        let mut log = open(folder.path());
        log.append(&some(500, 1), &[]).expect("kept");
        drop(log);
        damage(&folder.path().join(DATABASE));
        let log = open(folder.path());
        assert!(log.last_number() > 500, "{harm}: {}", log.last_number());
        let events = all(folder.path());
        assert_eq!((events.len(), events[0].kind.name()), (1, "gap"), "{harm}: {events:?}");
        let aside = std::fs::read_dir(folder.path()).expect("read").flatten();
        let aside: Vec<_> =
            aside.filter(|entry| entry.file_name().to_string_lossy().contains(".bad-")).collect();
        assert!(!aside.is_empty(), "{harm}");
    }
}

/// C-22: a log that cannot be written is rejected, and not treated as damaged.
#[test]
fn a_log_that_cannot_be_written_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join(DATABASE)).expect("made");
    Log::open(folder.path(), Retention::default(), None).expect_err("a directory");
    assert!(folder.path().join(DATABASE).is_dir());
    assert!(File::open(folder.path().join("events.db-wal")).is_err());
}

/// C-22: a database of another program under the log's name is moved aside byte for byte, whatever its version
/// number.
#[test]
fn a_log_of_another_program_goes_aside_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(DATABASE);
    let connection = rusqlite::Connection::open(&path).expect("opened");
    connection
        .execute_batch("CREATE TABLE event (number INTEGER, theirs TEXT); PRAGMA user_version=1")
        .expect("made");
    connection.close().expect("closed");
    let before = std::fs::read(&path).expect("read");
    open(folder.path()).append(&some(1, 5), &[]).expect("recorded");
    let told = all(folder.path());
    assert!(told[0].message.contains("made by another program"), "{told:?}");
    let aside = std::fs::read_dir(folder.path()).expect("listed").flatten();
    let aside: Vec<_> = aside
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains(".bad-"))
        .collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert!(std::fs::read(&aside[0]).expect("read") == before);
}
