//! Histories of older programs: readable as they are, and migrated by the first writer.

use crate::*;

/// A history of schema 1 keeps all entries; aliases and interrupted undos are recorded from then on.
#[test]
fn a_history_of_the_first_schema_goes_on() {
    let older = "DROP TABLE name; DROP TABLE undoing; \
        DROP INDEX by_edited; ALTER TABLE entry DROP COLUMN edited; \
        ALTER TABLE entry DROP COLUMN fields; PRAGMA user_version=1";
    let mut place = Stage::made_by_another(older);
    let database = place.state().join("history/history.db");
    let reader = Reader::open(&place.state()).expect("read as it is").expect("kept");
    assert_eq!(reader.entries(Some(&resource("f")), 9).unwrap().len(), 2);
    assert_eq!(reader.called_now(&resource("f")), None);
    assert!(!reader.was_cut_off(&resource("f")));
    drop(reader);
    place.open_again();
    place.undo("f", None).expect("undone");
    assert_eq!(std::fs::read(place.path("f")).unwrap(), b"one");
    let (old, new) = (Arc::from(resource("f")), Arc::from(resource("g")));
    let alias = Alias { old: Arc::clone(&old), new: Arc::clone(&new), is_gone: false };
    place.history.rename(Names { renamed: vec![(old, new)], aliases: vec![alias] });
    let moved = |name| place.reader().entries(Some(&resource(name)), 9).unwrap().len();
    assert_eq!((moved("f"), moved("g")), (0, 3));
    assert_eq!(place.reader().called_now(&resource("f")), Some(resource("g")));
    place.history.close();
    let connection = rusqlite::Connection::open(&database).unwrap();
    let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0)).unwrap();
    assert_eq!(version, 5);
}

/// A history without values is readable as it is and records values from then on; old encrypted entries stay
/// readable.
#[test]
fn a_history_of_before_values_goes_on() {
    let older = "DROP INDEX by_edited; ALTER TABLE entry DROP COLUMN edited; \
        ALTER TABLE entry DROP COLUMN fields; PRAGMA user_version=3";
    let mut place = Stage::made_by_another(older);
    let reader = Reader::open(&place.state()).expect("read as it is").expect("kept");
    let entries = reader.entries(None, 9).expect("readable");
    assert!(entries.into_iter().all(|one| one.entry().is_some_and(|one| one.values.is_empty())));
    drop(reader);
    place.open_again();
    let keeper = place.history.keeper("pkg[a]", "load").expect("kept");
    assert!(keeper.keep_values(vec![("version", None)]) > 0);
    assert_eq!(place.reader().last_change("pkg[a]").expect("kept").values.len(), 1);
    place.undo("f", None).expect("undone");
    assert_eq!(std::fs::read(place.path("f")).unwrap(), b"one");
}

/// B-18, B-26: entries that move to a new name are encrypted again. Unreadable entries move unchanged, and no undo
/// overwrites anything with them.
#[test]
fn unreadable_entries_move_unchanged() {
    let mut place = Stage::new(Limits::default());
    for content in ["one", "two", "three"] {
        place.apply("f", &[("content", content)]);
    }
    place.history.close();
    let database = place.state().join("history/history.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute("UPDATE entry SET mode = 511 WHERE number = 2", ()).unwrap();
    connection.close().unwrap();
    place.open_again();
    let (old, new) = (Arc::from(resource("f")), Arc::from(resource("g")));
    place.history.rename(Names { renamed: vec![(old, new)], aliases: Vec::new() });
    place.history.close();
    let entries = place.reader().entries(Some(&resource("g")), 9).unwrap();
    let readable: Vec<bool> = entries.into_iter().map(|one| one.entry().is_some()).collect();
    assert_eq!(readable, [true, false, true]);
    let what = Undo { resource: resource("g"), to: Some(1), partial: false };
    let refused = place.undo_what(&what).expect_err("refused");
    assert!(refused.contains("change 2 cannot be read"), "{refused}");
    let what = Undo { to: Some(3), ..what };
    place.undo_what(&what).expect("undone");
    assert_eq!(std::fs::read(place.path("f")).unwrap(), b"two");
}
