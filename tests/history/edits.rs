//! Undo of edits of a part of a text file: only the part is restored.

use crate::*;

const OWN: &str = "line[own]";

fn add_line(place: &Stage, text: &str) -> Outcome {
    let path = place.path("f");
    let given = [("path", path.to_str().expect("text")), ("line", text), ("create", "true")];
    place.apply_as(("line", text), OWN, &given)
}

fn undo_edit(place: &Stage, to: Option<u64>) -> Result<Vec<String>, String> {
    place.undo_what(&Undo { resource: OWN.to_owned(), to, partial: false })
}

fn write(place: &Stage, text: &str) {
    std::fs::write(place.path("f"), text).expect("written");
}

fn read(place: &Stage) -> String {
    std::fs::read_to_string(place.path("f")).expect("readable")
}

/// E-20, decision 29: lines that others have written since the edit stay, and so does the mode that they have set.
#[test]
fn an_undo_of_an_edit_leaves_the_lines_of_others() {
    let place = Stage::new(Limits::default());
    write(&place, "first\n");
    assert!(is_changed(&add_line(&place, "own")));
    write(&place, "before\nfirst\nown\nafter\n");
    std::fs::set_permissions(place.path("f"), Permissions::from_mode(0o664)).expect("set");
    undo_edit(&place, None).expect("undone");
    assert_eq!(read(&place), "before\nfirst\nafter\n");
    assert_eq!(place.path("f").metadata().expect("there").mode() & 0o777, 0o664);
    // The undo of the undo brings back the part alone, too.
    write(&place, "before\nfirst\nafter\nlater\n");
    undo_edit(&place, None).expect("undone");
    assert_eq!(read(&place), "before\nfirst\nown\nafter\nlater\n");
}

/// All edits from a number on are reversed.
#[test]
fn several_edits_are_reversed_together() {
    let place = Stage::new(Limits::default());
    write(&place, "first\n");
    assert!(is_changed(&add_line(&place, "one")));
    let number = place.reader().last_change(OWN).expect("kept").number;
    write(&place, "first\none\nother\n");
    assert!(is_changed(&add_line(&place, "two")));
    write(&place, "first\none\nother\ntwo\nlast\n");
    undo_edit(&place, Some(number)).expect("undone");
    assert_eq!(read(&place), "first\nother\nlast\n");
}

/// A file that the edit has created is removed only if nothing else is in it.
#[test]
fn a_created_file_with_lines_of_others_stays() {
    for (present, left) in [("own\n", None), ("own\nother\n", Some("other\n"))] {
        let place = Stage::new(Limits::default());
        assert!(is_changed(&add_line(&place, "own")));
        write(&place, present);
        undo_edit(&place, None).expect("undone");
        let found = std::fs::read_to_string(place.path("f")).ok();
        assert_eq!(found.as_deref(), left);
    }
}

/// An undo never overwrites what others made of the edited lines.
#[test]
fn changed_lines_refuse_the_undo() {
    let place = Stage::new(Limits::default());
    write(&place, "first\n");
    let path = place.path("f");
    let given = [("path", path.to_str().expect("text")), ("line", "key = ours"), ("match", "^key")];
    write(&place, "key = old\n");
    assert!(is_changed(&place.apply_as(("line", "key"), OWN, &given)));
    write(&place, "key = theirs\n");
    let refused = undo_edit(&place, None).expect_err("refused");
    assert!(refused.contains("the edited lines were changed by others since"), "{refused}");
    assert_eq!(read(&place), "key = theirs\n");
    write(&place, "key = ours\nother\n");
    undo_edit(&place, None).expect("undone");
    assert_eq!(read(&place), "key = old\nother\n");
}

/// A removed file comes back as it was before the edit.
#[test]
fn a_missing_file_is_restored_as_a_whole() {
    let place = Stage::new(Limits::default());
    write(&place, "first\n");
    assert!(is_changed(&add_line(&place, "own")));
    std::fs::remove_file(place.path("f")).expect("removed");
    undo_edit(&place, None).expect("undone");
    assert_eq!(read(&place), "first\n");
}

/// A history of the schema before edits were recorded restores the whole file, and records edits from then on.
#[test]
fn an_edit_of_an_older_history_restores_the_whole_file() {
    let mut place = Stage::new(Limits::default());
    write(&place, "first\n");
    assert!(is_changed(&add_line(&place, "own")));
    place.history.close();
    let database = place.state().join("history/history.db");
    let connection = rusqlite::Connection::open(database).expect("a database");
    let older = "DROP INDEX by_edited; ALTER TABLE entry DROP COLUMN edited; PRAGMA user_version=4";
    connection.execute_batch(older).expect("done");
    connection.close().expect("closed");
    let reader = Reader::open(&place.state()).expect("read as it is").expect("kept");
    // The seal of the entry covers the edit that is lost here, so the entry counts as damaged.
    assert!(reader.last_change(OWN).is_err());
    drop(reader);
    place.open_again();
    assert!(is_changed(&add_line(&place, "two")));
    write(&place, "first\nown\ntwo\nother\n");
    undo_edit(&place, None).expect("undone");
    assert_eq!(read(&place), "first\nown\nother\n");
}

/// The contents of dropped entries leave the database, before and after the edit.
#[test]
fn the_contents_of_dropped_edits_are_removed() {
    let mut place = Stage::new(Limits { age: Duration::from_secs(10 * DAY), ..Limits::default() });
    write(&place, "first\n");
    assert!(is_changed(&add_line(&place, "own")));
    place.clock.fetch_add(20 * DAY, Ordering::SeqCst);
    place.history.close();
    place.open_again();
    place.apply("g", &[("content", "new")]);
    place.history.close();
    let database = place.state().join("history/history.db");
    let connection = rusqlite::Connection::open(database).expect("a database");
    let left: u64 = connection
        .query_row("SELECT count(*) FROM content", (), |row| row.get(0))
        .expect("counted");
    assert_eq!(left, 0);
}
