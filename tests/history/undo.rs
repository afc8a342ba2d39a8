//! Interrupted undos: the next undo completes them and does not revert a half-done one.

use crate::*;
use std::thread::sleep;

const FILES: usize = 200;

fn names(place: &Stage) -> Vec<PathBuf> {
    (0..FILES).map(|number| place.path(&format!("d/{number:03}"))).collect()
}

/// Creates an environment with a directory of files that a file has replaced.
fn replaced() -> Stage {
    let place = Stage::new(Limits::default());
    std::fs::create_dir(place.path("d")).expect("made");
    for path in names(&place) {
        std::fs::write(&path, path.as_os_str().as_encoded_bytes()).expect("written");
    }
    assert!(is_changed(&place.apply("d", &[("content", "now"), ("force", "true")])));
    place
}

fn number_of_files(place: &Stage) -> usize {
    names(place).iter().filter(|path| path.exists()).count()
}

/// Cancels an undo after some of the files are restored, and ends its process.
fn cut_off(place: &mut Stage) {
    let what = Undo { resource: resource("d"), to: None, partial: false };
    let cancel = CancellationToken::new();
    let refused = std::thread::scope(|scope| {
        let undone = scope.spawn(|| {
            undo(
                key(),
                &place.host,
                &place.history,
                (&what, cancel.clone()),
                &KindSet::of_this_build(),
            )
            .map_err(|it| it.failure)
        });
        while number_of_files(place) < 5 && !undone.is_finished() {
            sleep(Duration::from_millis(1));
        }
        cancel.cancel();
        undone.join().expect("sound").expect_err("it is cut off").what
    });
    assert!(refused.contains("\nthe next undo without --to continues with this one"), "{refused}");
    let there = number_of_files(place);
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

/// F-1: after an interrupted undo, the next plain undo completes it, and the one after that reverts all of it.
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

/// An undo by number does exactly that, also after an interrupted undo.
#[test]
fn a_number_says_what_is_undone() {
    let mut place = replaced();
    cut_off(&mut place);
    let half = place.entries("d").into_iter().find(|entry| entry.cause == "undo").unwrap().number;
    place.undo("d", Some(half)).expect("the half is undone");
    assert_eq!(std::fs::read(place.path("d")).unwrap(), b"now");
    assert!(!place.reader().was_cut_off(&resource("d")));
}

/// After a later change of another sort, the next undo reverts that change.
#[test]
fn a_later_change_is_what_is_undone() {
    let mut place = replaced();
    cut_off(&mut place);
    let before = number_of_files(&place);
    assert!(is_changed(&place.apply("d", &[("content", "now"), ("force", "true")])));
    assert!(!place.reader().was_cut_off(&resource("d")));
    place.undo("d", None).expect("undone");
    assert_eq!(number_of_files(&place), before, "as it was before the last change");
}

/// B18: `sensitive: false` stores the content of a file whose mode denies access to others.
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

/// An undo of a closed file with `sensitive: false` is recorded like every change, and so is the repair after it.
#[test]
fn a_declared_word_holds_through_an_undo() {
    let place = Stage::new(Limits::default());
    let given = [("content", "declared"), ("mode", "0640"), ("sensitive", "false")];
    assert!(is_changed(&place.apply("f", &given)));
    for edit in ["by hand", "precious", "again"] {
        std::fs::write(place.path("f"), edit).unwrap();
        assert!(is_changed(&place.apply("f", &given)));
        assert!(place.undo("f", None).is_ok(), "{edit}");
        assert_eq!(std::fs::read_to_string(place.path("f")).unwrap(), edit);
    }
}

/// A file that cannot be restored is named, and the rest of the tree is restored. Needs root.
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
    // The files belong to another user, since root's private files in a foreign directory stay closed.
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

/// A5: an undo puts nothing into a directory that another user has put in the place of a private one.
#[test]
fn a_content_of_a_private_directory_returns_to_no_open_one() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    const ALICE: u32 = 65534;
    const BOB: u32 = 5;
    let place = Stage::new(Limits::default());
    let make = |path: &Path, uid: u32, mode: u32| {
        std::fs::create_dir(path).expect("made");
        chown(path, Some(uid), Some(uid)).expect("given");
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("changed");
    };
    std::fs::set_permissions(place.folder.path(), Permissions::from_mode(0o755)).unwrap();
    let private = place.path("share/private");
    make(&place.path("share"), ALICE, 0o755);
    make(&private, BOB, 0o700);
    std::fs::write(private.join("f"), "private").expect("written");
    std::fs::set_permissions(private.join("f"), Permissions::from_mode(0o644)).unwrap();
    // A daemon that did not make the directory needs the consent of the graph.
    let given = [("content", "now"), ("force", "true")];
    assert!(is_changed(&place.apply("share/private/f", &given)));
    std::fs::rename(&private, place.path("share/aside")).expect("moved");
    make(&private, ALICE, 0o755);
    let refused = place.undo("share/private/f", None).expect_err("it is another directory");
    assert!(refused.contains("closed it to others"), "{refused}");
    assert!(!private.join("f").exists());
    std::fs::remove_dir(&private).expect("removed");
    std::fs::rename(place.path("share/aside"), &private).expect("moved back");
    place.undo("share/private/f", None).expect("undone");
    assert_eq!(std::fs::read_to_string(private.join("f")).expect("there"), "private");
}

/// The content was recorded after the file had lost its set-id bits: anybody can have written it in between.
#[test]
fn set_id_bits_do_not_come_back_with_a_content_of_later() {
    let place = Stage::new(Limits::default());
    let path = place.path("f");
    assert!(is_changed(&place.apply("f", &[("content", "program"), ("mode", "04755")])));
    assert!(is_changed(&place.apply("f", &[("mode", "0775")])));
    let number = place.entries("f").last().expect("an entry").number;
    std::fs::write(&path, "theirs").expect("written");
    assert!(is_changed(&place.apply("f", &[("content", "now"), ("mode", "0755")])));
    let done = place.undo("f", Some(number)).expect("undone").join("\n");
    assert!(done.contains("the set-id bits of") && done.contains("left unchanged"), "{done}");
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "theirs");
    assert_eq!(path.metadata().expect("there").mode() & 0o7777, 0o755);
    // A content that was recorded with the bits brings them back, in a new inode.
    assert!(is_changed(&place.apply("f", &[("content", "program"), ("mode", "04755")])));
    assert!(is_changed(&place.apply("f", &[("content", "now"), ("mode", "0755")])));
    place.undo("f", None).expect("undone");
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "program");
    assert_eq!(path.metadata().expect("there").mode() & 0o7777, 0o4755);
}

/// The content of a changed mode is not recorded: the rest of the undo is done, and the next undo does not repeat it.
#[test]
fn an_undo_without_a_content_restores_all_but_the_set_id_bits() {
    assert!(rustix::process::geteuid().is_root(), "this test must run as root");
    let place = Stage::new(Limits::default());
    let path = place.path("f");
    assert!(is_changed(&place.apply("f", &[("content", "program"), ("mode", "04755")])));
    assert!(is_changed(&place.apply("f", &[("mode", "0700")])));
    let refused = place.undo("f", None).expect_err("the bits stay away");
    assert!(refused.contains("set-id bits") && refused.contains("already restored"), "{refused}");
    assert!(!refused.contains("continues with this one"), "{refused}");
    assert_eq!(path.metadata().expect("there").mode() & 0o7777, 0o755, "{refused}");
}

/// An edit with a secret is a resource of its own: an undo of owner and mode would open the file.
#[test]
fn an_undo_of_a_mode_does_not_open_a_secret_of_later() {
    let place = Stage::new(Limits::default());
    let path = place.path("f");
    std::fs::write(&path, "key=none\n").expect("written");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .expect("opened");
    assert!(is_changed(&place.apply("f", &[("mode", "0600")])));
    let edit = |text| {
        let given = [("line", text), ("match", "^key="), ("sensitive", "true")];
        place.apply_as(("line", path.to_str().expect("text")), "line[key]", &given)
    };
    assert!(is_changed(&edit("key=hunter2")));
    let refused = place.undo("f", None).expect_err("the secret stays closed");
    assert!(refused.contains("line[key] has changed a secret content since"), "{refused}");
    assert_eq!(path.metadata().expect("there").mode() & 0o7777, 0o600);
    // Another undo of a mode goes on: no secret was written after it.
    assert!(is_changed(&place.apply("f", &[("mode", "0640")])));
    place.undo("f", None).expect("undone");
    assert_eq!(path.metadata().expect("there").mode() & 0o7777, 0o600);
}

/// A secret below a directory is closed by the directory: an undo of its mode would open the way to it.
#[test]
fn an_undo_of_a_directory_does_not_open_secrets_below() {
    let place = Stage::new(Limits::default());
    let path = place.path("d");
    std::fs::create_dir(&path).expect("made");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("opened");
    let name = format!("{}/", path.display());
    let close = |mode| place.apply_as(("file", &name), "file[d]", &[("mode", mode)]);
    assert!(is_changed(&close("0700")));
    let given = [("content", "hunter2"), ("sensitive", "true"), ("mode", "0644")];
    assert!(is_changed(&place.apply("d/key", &given)));
    let what = Undo { resource: "file[d]".to_owned(), to: None, partial: false };
    let refused = place.undo_what(&what).expect_err("the secret stays closed");
    assert!(refused.contains("has written a secret below since"), "{refused}");
    assert_eq!(path.metadata().expect("there").mode() & 0o7777, 0o700);
}
