//! Values of resources without a path: recorded before a change, reported after it, and restored by their kind or
//! rejected.

use super::*;
use steadfast_resources::{After, FieldValues, FormerValue, PriorStateRecorder};

fn version(of: Option<&str>) -> FieldValues {
    vec![("version", of.map(ToOwned::to_owned)), ("hold", Some("not held".to_owned()))]
}

fn keeper(place: &Stage, name: &str) -> Arc<dyn PriorStateRecorder> {
    place.history.keeper(name, "load").expect("kept")
}

fn all(place: &Stage, name: &str) -> Vec<Entry> {
    let all = place.reader().entries(Some(name), 9).expect("readable");
    all.into_iter().map(|one| one.entry().expect("readable")).collect()
}

fn told(entry: &Entry) -> Vec<(String, Option<String>, After)> {
    let one =
        |value: &FormerValue| (value.field.clone(), value.before.clone(), value.after.clone());
    entry.values.iter().map(one).collect()
}

/// The prior values are durable before a change and visible after an interruption; the new values follow. A change
/// without a difference records nothing.
#[test]
fn values_are_kept_before_a_change_and_told_after_it() {
    let mut place = Stage::new(Limits::default());
    let (one, two, same) =
        (keeper(&place, "pkg[a]"), keeper(&place, "pkg[b]"), keeper(&place, "pkg[c]"));
    let (came, went) = (one.keep_values(version(None)), two.keep_values(version(Some("1"))));
    let stays = same.keep_values(version(Some("1")));
    assert!(came > 0 && went > came && stays > went);
    // Another process reads the entry without any flush.
    let reader = Reader::open(&place.state()).expect("readable").expect("kept");
    let entry = reader.last_change("pkg[a]").expect("durable");
    let is = |field: &str, before: Option<&str>, after: After| {
        (field.to_owned(), before.map(ToOwned::to_owned), after)
    };
    let hold = is("hold", Some("not held"), After::Unknown);
    assert_eq!(told(&entry), [is("version", None, After::Unknown), hold]);
    assert!(entry.path.as_os_str().is_empty() && entry.former == PriorState::Nothing);
    one.settle_values(came, version(Some("1.1")));
    same.settle_values(stays, version(Some("1")));
    place.history.flush();
    place.open_again();
    let (came, went) = (all(&place, "pkg[a]"), all(&place, "pkg[b]"));
    let after = After::Value("1.1".to_owned());
    assert_eq!(told(&came[0])[0], is("version", None, after));
    assert!(came[0].values[0].is_moved() && !came[0].values[1].is_moved());
    assert_eq!(told(&went[0])[0], is("version", Some("1"), After::Unknown));
    assert!(all(&place, "pkg[c]").is_empty());
}

/// Values move to a new name with their resource, obey the size limits, and are damaged like other entries.
#[test]
fn values_are_entries_like_others() {
    let mut place = Stage::new(Limits { total: 1 << 20, ..Limits::default() });
    for number in 0..5000 {
        let keeper = keeper(&place, "pkg[loud]");
        let kept = keeper.keep_values(version(Some(&format!("{number}"))));
        keeper.settle_values(kept, version(Some(&format!("{}", number + 1))));
        if number == 0 {
            let quiet = keeper_of_quiet(&place);
            assert!(quiet > 0);
        }
    }
    assert_eq!(all(&place, "pkg[quiet]").len(), 1);
    let sum: rusqlite::Result<u64> = {
        place.history.close();
        let database = place.state().join("history/history.db");
        let connection = rusqlite::Connection::open(database).expect("a database");
        connection.query_row("SELECT sum(weight) FROM entry", (), |row| row.get(0))
    };
    assert!(sum.expect("a sum") <= 1 << 20);
    place.open_again();
    let (old, new) = (Arc::from("pkg[quiet]"), Arc::from("pkg[renamed]"));
    place.history.rename(Names { renamed: vec![(old, new)], aliases: Vec::new() });
    place.history.close();
    assert_eq!(told(&all(&place, "pkg[renamed]")[0])[0].1.as_deref(), Some("7"));
    let database = place.state().join("history/history.db");
    let connection = rusqlite::Connection::open(database).expect("a database");
    let sql = "UPDATE entry SET fields = x'00' WHERE resource = 'pkg[renamed]'";
    connection.execute(sql, ()).expect("done");
    drop(connection);
    place.open_again();
    assert!(place.reader().last_change("pkg[renamed]").is_err(), "it is not what was written");
}

fn keeper_of_quiet(place: &Stage) -> u64 {
    keeper(place, "pkg[quiet]").keep_values(version(Some("7")))
}

/// An undo that no kind can do is rejected before anything is recorded, with the manual remedy.
#[test]
fn an_undo_of_values_that_no_kind_gives_back_is_refused() {
    let place = Stage::new(Limits::default());
    let cases = [
        ("pkg[half]", vec![("version", Some("1 (half-installed)".to_owned()))], "not whole"),
        ("virt[h]", vec![("name", Some("a".to_owned()))], "cannot be restored"),
    ];
    for (name, before, why) in cases {
        let keeper = keeper(&place, name);
        let number = keeper.keep_values(before);
        keeper.settle_values(number, vec![("version", Some("2".to_owned())), ("name", None)]);
        let what = Undo { resource: name.to_owned(), to: None, partial: false };
        let refused = undo(
            key(),
            &place.host,
            &place.history,
            (&what, CancellationToken::new()),
            &KindSet::of_this_build(),
        );
        let failure = refused.expect_err("refused").failure;
        assert!(failure.what.contains(why) && failure.hint.is_some(), "{failure}");
        assert!(!place.reader().was_cut_off(name));
        assert_eq!(all(&place, name).len(), 1);
    }
}

/// A history that cannot be written stops no package change: the values are reported elsewhere too.
#[test]
fn a_history_that_cannot_be_written_holds_no_values_up() {
    let place = Stage::new(Limits::default());
    std::fs::write(place.state().join("history"), "in the way").expect("written");
    let keeper = keeper(&place, "pkg[a]");
    assert_eq!(keeper.keep_values(version(Some("1"))), 0);
    keeper.settle_values(0, version(Some("2")));
}
