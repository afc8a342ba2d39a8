//! Databases of each older schema, as those programs created them: read and migrated with all their records.

use std::path::Path;
use std::sync::Arc;
use steadfast::store::{
    Ended, Entry, OpaqueText, Origin, Ownership, PauseRecord, ResourceRecord, SqliteStore,
    Store as _, StoredState,
};

/// The databases of older programs: their tables, with rows and checksums.
const SCHEMAS: [&str; 8] = [
    include_str!("schemas/1.sql"),
    include_str!("schemas/2.sql"),
    include_str!("schemas/3.sql"),
    include_str!("schemas/4.sql"),
    include_str!("schemas/5.sql"),
    include_str!("schemas/6.sql"),
    include_str!("schemas/7.sql"),
    include_str!("schemas/8.sql"),
];

fn pause(reason: &str) -> PauseRecord {
    PauseRecord { reason: reason.to_owned(), until_unix: 4_102_444_800, lasts: None }
}

/// Returns the expected state after the migration, without the key.
fn expected(schema: usize) -> StoredState {
    let owed = Some((6, "file[b]".to_owned()));
    let a = ResourceRecord {
        done: Some(u64::MAX - 1),
        owed: owed.clone(),
        ..ResourceRecord::default()
    };
    let c = ResourceRecord { interrupted: Some(13), owed, ..ResourceRecord::default() };
    let b = ResourceRecord { done: Some(9), interrupted: Some(11), ..ResourceRecord::default() };
    let sent = Some(OpaqueText("{\"password\":\"s\"}".into()));
    let password = ResourceRecord {
        done: Some(3),
        sent,
        taken: Some("h".into()),
        ..ResourceRecord::default()
    };
    let paused = ResourceRecord { pause: Some(pause("the operator")), ..ResourceRecord::default() };
    let whose = Ownership {
        origin: Some(Origin::Created),
        graph: "g".into(),
        delete: true,
        protect: true,
        thing: u64::MAX - 98,
        removal: Some("{}".into()),
        after: vec!["exec[c]".into(), "file[b]".into()],
        ..Ownership::default()
    };
    let made =
        ResourceRecord { done: Some(4), owned: Some(Arc::new(whose)), ..ResourceRecord::default() };
    let all = [
        (1, "exec[a]", a),
        (1, "exec[c]", c),
        (1, "file[b]", b),
        (2, "password[p]", password),
        (3, "file[parked]", paused),
        (4, "file[made]", made),
    ];
    let known = all.into_iter().filter(|(since, _, _)| *since <= schema);
    let resources = known.map(|(_, name, kept)| (name.to_owned(), kept)).collect();
    StoredState { resources, pause: Some(pause("USR1")), stamp: 6, key: None }
}

fn keyless(recalled: StoredState) -> StoredState {
    StoredState { key: None, ..recalled }
}

fn make(path: &Path, sql: &str) {
    // A state directory as the program creates it, without a database.
    drop(SqliteStore::open(path).expect("opened"));
    std::fs::remove_file(path.join("state.db")).expect("removed");
    let connection = rusqlite::Connection::open(path.join("state.db")).expect("opened");
    connection.execute_batch(sql).expect("as it was");
}

/// F-21, B-21: a reader reads an old database as it is; a writer migrates it with a copy and without repairs; the new
/// schema's records are stored from then on.
#[test]
fn states_of_older_programs_are_migrated() {
    for (schema, sql) in (1..).zip(SCHEMAS) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state");
        make(&path, sql);
        let before = std::fs::read(path.join("state.db")).expect("read");
        let peeked = SqliteStore::peek(&path).expect("read");
        assert_eq!(keyless(peeked), expected(schema), "looked at, schema {schema}");
        assert_eq!(std::fs::read(path.join("state.db")).expect("read"), before, "only looked at");

        let mut store = SqliteStore::open(&path).expect("opened");
        assert_eq!(store.repair_report().lines(), [] as [String; 0], "schema {schema}");
        assert_eq!(keyless(store.recall().expect("told")), expected(schema), "schema {schema}");
        let copies = std::fs::read_dir(&path).expect("listed").flatten();
        let names = copies.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let begins = format!("state.db.schema-{schema}-");
        let copy = names.filter(|name| name.starts_with(&begins)).collect::<Vec<_>>();
        assert_eq!(copy.len(), 1, "schema {schema}");
        let database = rusqlite::Connection::open(path.join(&copy[0])).expect("opened");
        let version =
            database.pragma_query_value(None, "user_version", |row| row.get::<_, usize>(0));
        assert_eq!(version.expect("a version"), schema, "the copy is of the old schema");

        keeps_all(store, &path, expected(schema));
        assert!(SqliteStore::verify(&path).expect("read").unsound.is_empty(), "schema {schema}");
    }
}

/// Writes every record of the present schema and reads it back together with the old ones.
fn keeps_all(mut store: SqliteStore, path: &Path, mut expected: StoredState) {
    let name: Arc<str> = "file[new]".into();
    let owned = Arc::new(Ownership { protect: true, graph: "g".into(), ..Ownership::default() });
    let entries = [
        Entry::Sent { identity: Arc::clone(&name), values: OpaqueText("{}".into()) },
        Entry::ResourcePause { identity: Arc::clone(&name), pause: Some(pause("r")) },
        Entry::Own { identity: Arc::clone(&name), owned: Some(Arc::clone(&owned)) },
        super::end(&name, 8, Ended::Well, &[], None),
    ];
    store.commit(&entries).expect("kept");
    drop(store);
    let new = ResourceRecord {
        done: Some(1008),
        sent: Some(OpaqueText("{}".into())),
        pause: Some(pause("r")),
        owned: Some(owned),
        ..ResourceRecord::default()
    };
    expected.resources.insert(name.to_string(), new);
    expected.stamp = 8;
    let mut again = SqliteStore::open(path).expect("opened");
    assert_eq!(again.repair_report().lines(), [] as [String; 0]);
    assert_eq!(keyless(again.recall().expect("told")), expected);
}
