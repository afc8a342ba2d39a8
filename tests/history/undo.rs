//! An undo that is cut off half way: the next one completes it, and does not undo the half of it.

use crate::*;
use std::thread::sleep;

const FILES: usize = 200;

fn names(place: &Stage) -> Vec<PathBuf> {
    (0..FILES).map(|number| place.path(&format!("d/{number:03}"))).collect()
}

/// A directory of files that was replaced by a file.
fn replaced() -> Stage {
    let place = Stage::new(Limits::default());
    std::fs::create_dir(place.path("d")).expect("made");
    for path in names(&place) {
        std::fs::write(&path, path.as_os_str().as_encoded_bytes()).expect("written");
    }
    assert!(is_changed(&place.apply("d", &[("content", "now"), ("force", "true")])));
    place
}

fn how_many(place: &Stage) -> usize {
    names(place).iter().filter(|path| path.exists()).count()
}

/// Cancels an undo as soon as some of the files are there again, and ends the process that did it.
fn cut_off(place: &mut Stage) {
    let what = Undo { resource: resource("d"), to: None, partial: false };
    let cancel = CancellationToken::new();
    let refused = std::thread::scope(|scope| {
        let undone = scope.spawn(|| {
            undo(key(), &place.host, &place.history, (&what, cancel.clone()))
                .map_err(|it| it.trouble)
        });
        while how_many(place) < 5 && !undone.is_finished() {
            sleep(Duration::from_millis(1));
        }
        cancel.cancel();
        undone.join().expect("sound").expect_err("it is cut off").what
    });
    assert!(refused.contains("\nthe next undo without --to continues with this one"), "{refused}");
    let there = how_many(place);
    assert!((5..FILES).contains(&there), "{there} files");
    place.history.close();
    place.open_again();
    assert!(place.reader().was_cut_off(&resource("d")));
}

fn is_whole(place: &Stage) -> bool {
    names(place).iter().all(|path| {
        std::fs::read(path).is_ok_and(|bytes| bytes == path.as_os_str().as_encoded_bytes())
    })
}

/// F-1: a plain undo after it does the same once more, to its end; the one after that undoes all of it.
#[test]
fn an_undo_that_was_cut_off_is_completed_by_the_next() {
    let mut place = replaced();
    cut_off(&mut place);
    let says = place.undo("d", None).expect("completed");
    assert!(says.iter().any(|line| line.contains("completing an interrupted undo")), "{says:?}");
    assert!(is_whole(&place));
    assert!(!place.reader().was_cut_off(&resource("d")));
    place.undo("d", None).expect("undone");
    assert_eq!(std::fs::read(place.path("d")).unwrap(), b"now", "both halves");
    place.undo("d", None).expect("undone");
    assert!(is_whole(&place));
}

/// What was asked for by number is done as it was asked, also after one that was cut off.
#[test]
fn a_number_says_what_is_undone() {
    let mut place = replaced();
    cut_off(&mut place);
    let half = place.entries("d").into_iter().find(|entry| entry.cause == "undo").unwrap().number;
    place.undo("d", Some(half)).expect("the half is undone");
    assert_eq!(std::fs::read(place.path("d")).unwrap(), b"now");
    assert!(!place.reader().was_cut_off(&resource("d")));
}

/// What was changed since by anything else is what the next undo is about.
#[test]
fn a_later_change_is_what_is_undone() {
    let mut place = replaced();
    cut_off(&mut place);
    let before = how_many(&place);
    assert!(is_changed(&place.apply("d", &[("content", "now"), ("force", "true")])));
    assert!(!place.reader().was_cut_off(&resource("d")));
    place.undo("d", None).expect("undone");
    assert_eq!(how_many(&place), before, "as it was before the last change");
}

/// B18: `sensitive: false` keeps the content of a file whose mode denies others.
#[test]
fn a_declared_word_wins_over_a_mode() {
    let place = Stage::new(Limits::default());
    for (name, sensitive, is_kept) in [("open", "false", true), ("closed", "true", false)] {
        let given = [("content", "declared"), ("mode", "0750"), ("sensitive", sensitive)];
        assert!(is_changed(&place.apply(name, &given)));
        std::fs::write(place.path(name), "by hand").unwrap();
        assert!(is_changed(&place.apply(name, &given)));
        let undone = place.undo(name, None);
        assert_eq!(undone.is_ok(), is_kept, "{name}: {undone:?}");
        let why = "the content was not recorded: sensitive, or not readable by others";
        assert!(is_kept || undone.is_err_and(|words| words.contains(why)));
        let expected = if is_kept { "by hand" } else { "declared" };
        assert_eq!(std::fs::read_to_string(place.path(name)).unwrap(), expected);
    }
}

/// A file that cannot be put back is named, and the rest of a tree is put back all the same. Runs as root.
#[test]
fn one_file_that_cannot_be_put_back_does_not_keep_the_rest() {
    let mut place = Stage::new(Limits::default());
    std::fs::create_dir(place.path("d")).expect("made");
    let names = ["a", "b", "c", "e"].map(|name| place.path(&format!("d/{name}")));
    for path in &names {
        std::fs::write(path, "x").expect("written");
        std::fs::set_permissions(path, Permissions::from_mode(0o644)).expect("set");
    }
    assert!(is_changed(&place.apply("d/", &[("mode", "go="), ("recurse", "true")])));
    let nobody = Some(65534);
    std::os::unix::fs::chown(place.path("d"), nobody, nobody).expect("given away");
    for linked in ["b", "c"] {
        let path = place.path(&format!("d/{linked}"));
        std::fs::hard_link(path, place.path(linked)).expect("linked");
    }
    // A private file of root's in a directory of others stays closed: these are that user's.
    for path in &names {
        std::os::unix::fs::chown(path, nobody, nobody).expect("given away");
    }
    let refused = place.undo("d/", None).expect_err("two files have two names");
    let lines: Vec<&str> = refused.lines().collect();
    assert!(
        lines[0].contains("the file has 2 hard links") && lines[0].contains("d/b"),
        "{refused}"
    );
    assert!(lines[1].starts_with("not restored: ") && lines[1].contains("d/c"), "{refused}");
    let modes = names.each_ref().map(|path| path.metadata().expect("there").mode() & 0o7777);
    assert_eq!(modes, [0o644, 0o600, 0o600, 0o644], "{refused}");
    place.open_again();
}
