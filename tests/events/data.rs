//! Typed events: their words, their JSON, their rows, and the migration of a log of an older version.

use crate::samples::{change, samples};
use crate::start;
use std::collections::BTreeSet;
use std::path::Path;
use steadfast::api::{ChangeClass, Event, EventKind, Level, api_schema};
use steadfast::events::render::{headline, message};
use steadfast::events::{DATABASE, Log, NewEvent, PublishedEvent, Reader, Retention};

fn open(directory: &Path) -> Log {
    Log::open(directory, Retention::default(), None).expect("opened")
}

fn all(directory: &Path) -> Vec<PublishedEvent> {
    let reader = Reader::open(directory).expect("readable").expect("there");
    reader.read(0, u64::MAX, usize::MAX).expect("read")
}

/// The table of names is complete: each name has a sample, and each sample has the expected words.
#[test]
fn each_event_has_its_words() {
    let mut names = BTreeSet::new();
    for (kind, expected) in samples() {
        assert_eq!(message(&kind), expected, "{kind:?}");
        names.insert(kind.name().to_owned());
    }
    let table: BTreeSet<String> =
        EventKind::TABLE.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(names, table);
}

/// C-11: each event comes back from its row and from its JSON as it was, with its data.
#[test]
fn each_event_comes_back_from_row_and_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let told: Vec<(u64, NewEvent)> = samples()
        .into_iter()
        .filter(|(kind, _)| !matches!(kind, EventKind::RunStart(_) | EventKind::RunEnd(_)))
        .map(|(kind, _)| (5, NewEvent::of("file[a]", kind, Level::Info)))
        .collect();
    open(folder.path()).append(&told, &[]).expect("kept");
    let found = all(folder.path());
    assert_eq!(found.len(), told.len());
    for (event, (_, expected)) in found.iter().zip(&told) {
        assert_eq!((&event.kind, &event.message), (&expected.kind, &expected.message));
        let json: Event = serde_json::from_str(event.json()).expect("an event");
        assert_eq!(json, **event, "{}", event.json());
    }
}

/// The JSON of an event has the name, the data and the rendered words side by side.
#[test]
fn json_has_data_and_words() {
    let told = NewEvent::of("file[a]", change(ChangeClass::Corrective), Level::Info);
    let event = PublishedEvent::new(Some(4), 1000, told);
    let json: serde_json::Value = serde_json::from_str(event.json()).expect("JSON");
    let expected = serde_json::json!({
        "number": 4, "at": 1000, "resource": "file[a]", "level": "info", "event": "changed",
        "message": "mode: 0600 -> 0644, ran: exit 0 (3 ms, corrective)",
        "data": {
            "class": "corrective",
            "differences": [{"aspect": "mode", "from": "0600", "to": "0644"}],
            "notes": ["mode", "ran: exit 0"],
            "took": 3,
            "run": {"number": 7, "cause": "drift"},
        },
    });
    assert_eq!(json, expected);
    let shown = headline("retrying", Some("file[a]"), "in 200 ms: busy");
    assert_eq!(shown, "retrying file[a] in 200 ms: busy");
}

/// The tables of schema 1, as that version created them.
const SCHEMA_1: &str = "
CREATE TABLE event (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, what TEXT NOT NULL, resource TEXT, class TEXT,
    count INTEGER, run INTEGER, level INTEGER NOT NULL, says TEXT NOT NULL) STRICT;
CREATE TABLE run (number INTEGER PRIMARY KEY) STRICT;
CREATE TABLE cursor (recorder TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL) STRICT;
CREATE TABLE batch (recorder TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY (recorder, first)) STRICT, WITHOUT ROWID;
CREATE TABLE log (id INTEGER PRIMARY KEY CHECK (id = 1), born INTEGER NOT NULL) STRICT;
INSERT INTO log VALUES (1, 5);
INSERT INTO event VALUES (1, 10, 'run_start', NULL, 'run', NULL, NULL, 1, 'steadfast 0.1.0, process 7');
INSERT INTO event VALUES (2, 11, 'changed', 'file[a]', 'corrective', NULL, NULL, 1, 'mode (3 ms, corrective)');
INSERT INTO event VALUES (3, 12, 'recovered', 'file[a]', NULL, NULL, NULL, 1, '');
INSERT INTO event VALUES (4, 13, 'worker_started', NULL, NULL, NULL, NULL, 1, 'driver');
INSERT INTO run VALUES (1);
INSERT INTO cursor VALUES ('r', 2);
PRAGMA user_version=1;
PRAGMA journal_mode=WAL;
";

fn old_log(directory: &Path) {
    let connection = rusqlite::Connection::open(directory.join(DATABASE)).expect("opened");
    connection.execute_batch(SCHEMA_1).expect("made");
    connection.close().expect("closed");
}

/// Checks the rows of [`SCHEMA_1`]: they keep their names, texts and fields.
fn assert_old_rows(events: &[PublishedEvent]) {
    let lines: Vec<String> = events
        .iter()
        .map(|event| headline(event.kind.name(), event.resource.as_deref(), &event.message))
        .collect();
    let expected = [
        "run_start: steadfast 0.1.0, process 7",
        "changed file[a]: mode (3 ms, corrective)",
        "recovered file[a]",
        "worker_started: driver",
    ];
    assert_eq!(lines[..4], expected);
    assert_eq!(events[1].kind.class(), Some("corrective"));
    let json: serde_json::Value = serde_json::from_str(events[1].json()).expect("JSON");
    assert_eq!((&json["event"], &json["data"]["class"]), (&"changed".into(), &"corrective".into()));
    let back: Event = serde_json::from_value(json).expect("an event");
    assert_eq!(back, *events[1]);
}

/// A log of schema 1 is read as it is, and is migrated by the next session: old rows keep their text, new rows have
/// data, the session that was open is ended, and the place of a recorder stays.
#[test]
fn a_log_of_schema_1_is_migrated() {
    let folder = tempfile::tempdir().expect("a folder");
    old_log(folder.path());
    assert_old_rows(&all(folder.path()));
    let mut log = open(folder.path());
    assert_eq!(log.last_number(), 5, "four events and the end of the open session");
    let changed = NewEvent::of("file[a]", change(ChangeClass::Corrective), Level::Info);
    log.append(&[(20, start()), (21, changed.clone())], &[]).expect("kept");
    drop(log);
    let events = all(folder.path());
    assert_old_rows(&events);
    let EventKind::RunEnd(end) = &events[4].kind else { panic!("{:?}", events[4]) };
    assert_eq!((end.run, &*end.result, &end.session), (Some(1), "interrupted", &None));
    assert_eq!((&events[6].kind, events[6].number), (&changed.kind, Some(7)));
    let reader = Reader::open(folder.path()).expect("readable").expect("there");
    assert_eq!(reader.place("r").expect("read").expect("known").number, 2);
    assert_eq!(reader.created_at().expect("read"), 5);
    drop(open(folder.path()));
    let count = all(folder.path()).len();
    assert_eq!(count, 8, "a second opening changes nothing but the end of the last session");
}

/// Data that this version cannot read leave the text of the event.
#[test]
fn unknown_data_leave_the_text() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(open(folder.path()));
    let connection = rusqlite::Connection::open(folder.path().join(DATABASE)).expect("opened");
    let insert = "INSERT INTO event (number, at, what, level, says, data) VALUES \
                  (1, 5, 'teleported', 1, 'far away', '{\"metres\": 3}'), \
                  (2, 5, 'changed', 1, 'mode (3 ms)', 'no JSON')";
    connection.execute_batch(insert).expect("inserted");
    connection.close().expect("closed");
    let events = all(folder.path());
    let both: Vec<_> = events.iter().map(|event| (event.kind.name(), &*event.message)).collect();
    assert_eq!(both, [("teleported", "far away"), ("changed", "mode (3 ms)")]);
}

/// The schema names every event, and each request by its verb.
#[test]
fn the_schema_covers_events_and_requests() {
    let schema = api_schema().to_string();
    for (name, levels, meaning) in EventKind::TABLE {
        assert!(schema.contains(&format!("\"{name}\"")), "{name}");
        assert!(!levels.is_empty() && meaning.trim_end().ends_with('.'), "{name}: {meaning}");
    }
    for verb in ["status", "show", "undo", "log-level", "state-import"] {
        assert!(schema.contains(&format!("\"{verb}\"")), "{verb}");
    }
    // Programs with and without fault injection have one schema.
    assert!(!schema.contains("\"fault\""));
}
