//! Entries of the history: what a change records, and what a reader sees.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any sequence of changes, an undo to a number restores the state before that change, in any order of undos,
    /// also after a restart.
    #[test]
    fn every_state_can_be_gone_back_to(
        steps in prop::collection::vec(step(), 1..12),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 6),
    ) {
        let mut place = Stage::new(Limits::default());
        let path = place.path("f");
        let mut seen: BTreeMap<u64, Sight> = BTreeMap::new();
        let mut last = 0;
        let mut last_left_content = false;
        for step in steps {
            let before = sight(&path);
            let outcome = match &step {
                Step::Content(text, mode) => {
                    place.apply("f", &[("content", text), ("mode", mode), ("force", "true")])
                }
                Step::Mode(mode) if matches!(before, Sight::File(..)) => {
                    place.apply("f", &[("mode", mode)])
                }
                Step::Link(target) => place.apply("f", &[("symlink", target), ("force", "true")]),
                Step::Directory => place.apply("f/", &[("force", "true")]),
                Step::Absent => place.apply("f", &[("state", "absent"), ("force", "true")]),
                // A change that only sets a mode does not read the content.
                Step::Foreign(text) if matches!(before, Sight::File(..)) && !last_left_content => {
                    std::fs::write(&path, text).expect("written");
                    continue;
                }
                Step::Mode(_) | Step::Foreign(_) => continue,
            };
            prop_assert!(!matches!(outcome, Outcome::Failed { .. }), "{step:?}: {outcome:?}");
            if !is_changed(&outcome) {
                continue;
            }
            let name = if matches!(step, Step::Directory) { "f/" } else { "f" };
            // Both spellings of the path belong to one resource.
            let entries = place.entries(name);
            let new: Vec<&Entry> = entries.iter().filter(|entry| entry.number > last).collect();
            prop_assert_eq!(new.len(), 1, "one change of one path is one entry");
            if name == "f" {
                seen.insert(new[0].number, before);
                last_left_content = new[0].missing_content() == Some(NotRecorded::Same);
            } else {
                // The other resource's entries lead to no earlier state, so the record starts again.
                seen.clear();
                last_left_content = false;
            }
            last = new[0].number;
        }
        place.open_again();
        let numbers: Vec<u64> = seen.keys().copied().collect();
        for pick in picks.iter().filter(|_| !numbers.is_empty()) {
            let number = *pick.get(&numbers);
            let now = sight(&path);
            place.undo("f", Some(number)).expect("undone");
            prop_assert_eq!(&sight(&path), &seen[&number], "before number {}", number);
            if now != seen[&number] {
                // An undo can itself be undone.
                place.undo("f", None).expect("undone");
                prop_assert_eq!(&sight(&path), &now);
                place.undo("f", Some(number)).expect("undone");
            }
        }
    }
}

/// Entries beyond the age limit are deleted, by the test's clock.
#[test]
fn entries_beyond_the_age_limit_are_deleted() {
    let mut place = Stage::new(Limits::default());
    place.apply("f", &[("content", "one")]);
    place.apply("f", &[("content", "two")]);
    place.clock.fetch_add(80 * DAY, Ordering::SeqCst);
    place.apply("f", &[("content", "three")]);
    assert_eq!(place.entries("f").len(), 3);
    place.clock.fetch_add(11 * DAY, Ordering::SeqCst);
    place.open_again();
    place.history.drop_expired();
    place.history.flush();
    let left = place.entries("f");
    assert_eq!(left.len(), 1, "{left:?}");
    place.undo("f", Some(left[0].number)).expect("what is left can be put back");
    assert_eq!(std::fs::read(place.path("f")).unwrap(), b"two");
}

/// Returns text that hardly compresses.
pub(crate) fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + u8::try_from(state % 90).expect("small"))
    };
    (0..length).map(|_| letter()).collect()
}

/// A tree whose owner fills it again and again loses its own entries, also those of its last run, and those of no other
/// resource.
#[test]
fn a_purged_tree_displaces_no_other_resource() {
    let place = Stage::new(Limits { total: 1 << 20, ..Limits::default() });
    for seed in 0..4 {
        place.apply("other", &[("content", &noise(seed, 60_000))]);
    }
    let tree = place.path("tree");
    std::fs::create_dir(&tree).unwrap();
    let purge = [("purge", "true"), ("recurse", "true")];
    for number in 0..500 {
        std::fs::write(tree.join(format!("small{number}")), "").unwrap();
    }
    assert!(is_changed(&place.apply("tree/", &purge)));
    for round in 0..3 {
        for number in 0..8 {
            let content = noise(100 + 10 * round + number, 60_000);
            std::fs::write(tree.join(format!("large{number}")), content).unwrap();
        }
        assert!(is_changed(&place.apply("tree/", &purge)));
    }
    place.apply("other", &[("content", "last")]);
    assert_eq!(place.entries("other").len(), 5);
    let left = place.entries("tree/").len();
    assert!((1..24).contains(&left), "{left}");
    place.undo("other", None).expect("it is there");
}

/// Large trees of one user, each purged once, do not displace the only entry of another resource.
#[test]
fn large_trees_displace_no_last_entry_of_another_resource() {
    let place = Stage::new(Limits { total: 1 << 20, ..Limits::default() });
    place.apply("other", &[("content", "one")]);
    place.apply("other", &[("content", "two")]);
    let number = place.entries("other").last().expect("an entry").number;
    for tree in 0..3 {
        let name = format!("tree{tree}");
        let path = place.path(&name);
        std::fs::create_dir(&path).unwrap();
        for number in 0..7 {
            let content = noise(10 * tree + number, 60_000);
            std::fs::write(path.join(format!("large{number}")), content).unwrap();
        }
        let purge = [("purge", "true"), ("recurse", "true")];
        assert!(is_changed(&place.apply(&format!("{name}/"), &purge)));
    }
    assert!(place.entries("other").iter().any(|entry| entry.number == number));
    place.undo("other", None).expect("it is there");
    assert_eq!(std::fs::read(place.path("other")).unwrap(), b"one");
}

/// The size limit deletes entries of the resource with the most data, and of no other.
#[test]
fn the_size_limit_deletes_from_the_largest_resource() {
    let limits = Limits { total: 1 << 20, ..Limits::default() };
    let place = Stage::new(limits);
    place.apply("quiet", &[("content", "one")]);
    place.apply("quiet", &[("content", "two")]);
    for seed in 0..60 {
        place.apply("loud", &[("content", &noise(seed, 60_000))]);
    }
    assert_eq!(place.entries("quiet").len(), 2);
    let loud = place.entries("loud");
    assert!((5..25).contains(&loud.len()), "{} of 60 are left", loud.len());
    place.undo("loud", Some(loud[0].number)).expect("the oldest that is left");
    place.undo("quiet", None).expect("it is there");
    assert_eq!(std::fs::read(place.path("quiet")).unwrap(), b"one");
    let bytes: u64 = std::fs::read_dir(place.state().join("history"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes < 12 << 20, "{bytes} bytes on disk");
    // A content of a quarter of the limit or more is not stored, and the entry says so.
    place.apply("large", &[("content", &noise(99, 300_000))]);
    place.apply("large", &[("content", "small")]);
    let missing = place.entries("large").last().and_then(Entry::missing_content);
    assert_eq!(missing, Some(NotRecorded::Large));
    let refused = place.undo("large", None).expect_err("it was not kept");
    assert!(refused.contains("too large"), "{refused}");
    assert_eq!(std::fs::read(place.path("large")).unwrap(), b"small");
}

/// S-6, B-26: no entry contains sensitive content, not even under a later definition.
#[test]
fn no_secret_is_kept() {
    const CANARY: &str = "canary-77a1";
    let mut place = Stage::new(Limits::default());
    let one = format!("{CANARY} one");
    for (name, secrecy) in [("declared", ("sensitive", "true")), ("denied", ("mode", "0600"))] {
        place.apply(name, &[("content", &one), secrecy]);
        place.apply(name, &[("content", &format!("{CANARY} two")), secrecy]);
        // Another program has widened the mode, and the definition is no longer sensitive; a restart lies in between.
        std::fs::set_permissions(place.path(name), Permissions::from_mode(0o644)).unwrap();
        place.open_again();
        place.apply(name, &[("content", "harmless")]);
        place.apply(name, &[("content", "harmless too")]);
        let reader = place.reader();
        let entries = place.entries(name);
        assert_eq!(entries.len(), 4, "{entries:?}");
        for entry in &entries {
            let former = reader.former(entry).expect("readable");
            let PriorState::Thing(thing) = &former else { continue };
            let shape = format!("{:?}", thing.shape);
            let is_last = entry.number == entries[3].number;
            assert_eq!(shape.contains("Secret"), !is_last, "{shape}");
        }
        let refused = place.undo(name, Some(entries[1].number)).expect_err("not kept");
        assert!(refused.contains("sensitive"), "{refused}");
        place.undo(name, None).expect("what is harmless is kept");
        assert_eq!(std::fs::read(place.path(name)).unwrap(), b"harmless");
    }
}

/// A damaged history starts anew without effect on anything else, and nothing is restored from it.
#[test]
fn a_damaged_history_begins_anew() {
    let mut place = Stage::new(Limits::default());
    place.apply("f", &[("content", "one")]);
    place.apply("f", &[("content", "two")]);
    place.history.flush();
    place.open_again();
    let database = place.state().join("history/history.db");
    let intact = std::fs::read(&database).unwrap();
    // One flipped byte at many places of the database: rows, contents and indexes.
    let mut noticed = 0;
    for at in (100..intact.len()).step_by(397) {
        std::fs::write(&database, &intact).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&database).unwrap();
        file.write_all_at(&[intact[at] ^ 0x10], at as u64).unwrap();
        match place.undo("f", None) {
            Ok(_) => assert_eq!(std::fs::read(place.path("f")).unwrap(), b"one", "byte {at}"),
            Err(_) => noticed += 1,
        }
        place.open_again();
        std::fs::write(place.path("f"), "two").unwrap();
        for suffix in ["-wal", "-shm"] {
            drop(std::fs::remove_file(format!("{}{suffix}", database.display())));
        }
    }
    assert!(noticed > 0, "some damage must have been noticed");
    std::fs::write(&database, "no database at all, and that at length".repeat(40)).unwrap();
    assert!(is_changed(&place.apply("f", &[("content", "three")])));
    place.undo("f", None).expect("it goes on");
    assert_eq!(std::fs::read(place.path("f")).unwrap(), b"two");
    let aside = std::fs::read_dir(place.state().join("history")).unwrap();
    let aside =
        aside.filter(|one| one.as_ref().unwrap().file_name().to_string_lossy().contains(".bad-"));
    assert!(aside.count() > 0, "what was damaged is kept for who looks into it");
}

/// B-6: a change is not made without its stored prior state; changes that delete nothing go on; the history recovers.
#[test]
fn a_history_that_cannot_be_written_takes_nothing_away() {
    let place = Stage::new(Limits::default());
    std::fs::write(place.path("f"), "mine").unwrap();
    std::fs::write(place.path("g"), "mode").unwrap();
    std::fs::set_permissions(place.path("g"), Permissions::from_mode(0o666)).unwrap();
    let history = place.state().join("history");
    std::fs::write(&history, "in the way").unwrap();
    for given in [("content", "declared"), ("state", "absent")] {
        match place.apply("f", &[given]) {
            Outcome::Failed { failure, touched: false } => {
                assert!(failure.what.starts_with("no changes made: "), "{failure}");
                assert!(failure.hint.is_some());
            }
            other => panic!("expected a refusal, found {other:?}"),
        }
        assert_eq!(std::fs::read(place.path("f")).unwrap(), b"mine");
    }
    assert!(is_changed(&place.apply("new", &[("content", "new")])));
    assert!(is_changed(&place.apply("g", &[("mode", "0644")])));
    std::fs::remove_file(&history).unwrap();
    assert!(is_changed(&place.apply("f", &[("content", "declared")])));
    place.undo("f", None).expect("kept");
    assert_eq!(std::fs::read(place.path("f")).unwrap(), b"mine");
}

/// An incompletely stored directory is restored only on explicit request.
#[test]
fn an_incomplete_directory_is_restored_on_request() {
    let place = Stage::new(Limits { file: 1000, ..Limits::default() });
    std::fs::create_dir(place.path("d")).unwrap();
    std::fs::write(place.path("d/small"), "small").unwrap();
    std::fs::write(place.path("d/large"), "large".repeat(1000)).unwrap();
    assert!(is_changed(&place.apply("d", &[("state", "absent"), ("force", "true")])));
    let refused = place.undo("d", None).expect_err("one is not kept");
    assert!(refused.contains("d/large: ") && refused.contains("--partial"), "{refused}");
    assert!(!place.path("d").exists());
    let what = Undo { resource: resource("d"), to: None, partial: true };
    let lines = place.undo_what(&what).expect("the others are").join("\n");
    assert!(lines.contains("left unchanged: ") && lines.contains("too large"), "{lines}");
    assert_eq!(std::fs::read(place.path("d/small")).unwrap(), b"small");
    assert!(!place.path("d/large").exists());
}

/// S-5: every interrupted run is known until it is handled, also after a reader has closed the history cleanly.
#[test]
fn interrupted_runs_are_known_until_handled() {
    let mut place = Stage::new(Limits::default());
    std::fs::create_dir(place.path("first")).unwrap();
    place.apply("first/f", &[("content", "one")]);
    std::fs::create_dir(place.path("d")).unwrap();
    for number in 0..300 {
        std::fs::write(place.path(&format!("d/{number}")), "x").unwrap();
    }
    place.apply("d", &[("state", "absent"), ("force", "true")]);
    place.history.flush();
    // A copy with the database's write-ahead log equals the files after a kill.
    let folder = place.state().join("history");
    let copy = place.path("copy");
    std::fs::create_dir(&copy).unwrap();
    for name in ["history.db", "history.db-wal"] {
        std::fs::copy(folder.join(name), copy.join(name)).unwrap();
    }
    place.history.close();
    place.open_again();
    assert!(!place.history.was_cut_off(), "it ended well");
    for name in ["history.db", "history.db-wal"] {
        std::fs::copy(copy.join(name), folder.join(name)).unwrap();
    }
    for _ in 0..2 {
        place.open_again();
        assert!(place.history.was_cut_off());
        place.history.drop_expired();
        place.history.close();
    }
    place.open_again();
    let places = place.history.where_cut_off();
    for name in ["first", "d"] {
        assert!(places.contains(&place.path(name)), "{name}: {places:?}");
    }
    place.history.is_seen_to();
    place.open_again();
    assert!(!place.history.was_cut_off() && place.history.where_cut_off().is_empty());
}

/// Extended attributes are restored, also for a file that was deleted.
#[test]
fn extended_attributes_come_back() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let place = Stage::new(Limits::default());
    let path = place.path("f");
    std::fs::write(&path, "mine").unwrap();
    setxattr(&path, "user.colour", b"blue", XattrFlags::empty()).expect("a file system with them");
    assert!(is_changed(&place.apply("f", &[("state", "absent"), ("force", "true")])));
    place.undo("f", None).expect("undone");
    let mut value = [0; 8];
    let length = getxattr(&path, "user.colour", &mut value).expect("there again");
    assert_eq!(&value[..length], b"blue");
}

/// S-7: only the owner can read the history.
#[test]
fn others_cannot_read_it() {
    let place = Stage::new(Limits::default());
    place.apply("f", &[("content", "one")]);
    place.apply("f", &[("content", "two")]);
    place.history.flush();
    let history = place.state().join("history");
    assert_eq!(std::fs::metadata(&history).unwrap().mode() & 0o7777, 0o700);
    for entry in std::fs::read_dir(&history).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
}
