//! Objects that root took over from an untrusted user, in runs after the takeover: links are not followed, programs do
//! not run, and the user's group has no rights. The tests run as root.

use crate::other_users::strangers::{self, STRANGER};
use crate::other_users::takeover::{shared, slash};
use crate::support::*;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;
use steadfast_resources::host::files::RestoredDirectories;
use steadfast_resources::host::input_trust::Reader;
use steadfast_resources::{
    CheckRequest, CheckResult, Host, Outcome, PriorEntry, PriorShape, PriorState,
};
use tokio_util::sync::CancellationToken;

fn link_of_stranger(target: &Path, link: &Path) {
    symlink(target, link).unwrap();
    std::os::unix::fs::lchown(link, Some(STRANGER), Some(STRANGER)).unwrap();
}

/// A recursive change of owner makes the links of a user root's: they lead to where the user wanted.
#[test]
fn links_of_a_tree_are_not_followed_after_its_takeover() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let (private, tree) = (dir.path().join("private"), dir.path().join("tree"));
    fs::create_dir(&private).unwrap();
    chmod(&private, 0o700);
    fs::write(private.join("secret"), "only root reads this").unwrap();
    strangers::make_directory(&tree, 0o755);
    link_of_stranger(&private, &tree.join("link"));
    for owner in ["root", "daemon"] {
        made(&Host::default(), &file(slash(&tree), &[("owner", owner), ("recurse", "true")]));
        let into = tree.join("link/new");
        let given = [("content", "x"), ("owner", owner)];
        let said = refused(&Host::default(), &file(&into, &given));
        assert!(said.contains("older than the present rights"), "{owner}: {said}");
        let said =
            refused(&Host::default(), &file(tree.join("link/secret"), &[("state", "absent")]));
        assert!(said.contains("older than the present rights"), "{owner}: {said}");
        for from in [tree.join("link/secret").display().to_string(), slash(&tree.join("link"))] {
            let mut given = vec![("source", from.as_str()), ("owner", "nobody")];
            let mut name = dir.path().join("copy").display().to_string();
            if from.ends_with('/') {
                given.push(("recurse", "true"));
                name.push('/');
            }
            let said = format!("{:?}", hold(&Host::default(), &file(name, &given)));
            assert!(said.contains("older than"), "{owner}, {from}: {said}");
        }
        let doubt = Reader::here().untrusted_on_the_way(&tree.join("link/secret"));
        assert!(doubt.is_some(), "{owner}");
    }
    assert_eq!(names(&private), ["secret"]);
    // Root makes the link again: nobody else has chosen its target.
    made(&Host::default(), &file(slash(&tree), &[("owner", "root")]));
    fs::remove_file(tree.join("link")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    symlink(&private, tree.join("link")).unwrap();
    made(&Host::default(), &file(tree.join("link/new"), &[("content", "x")]));
    assert!(private.join("new").exists());
}

/// A member of the group could rename root's link while the directory was open to the group.
#[test]
fn links_of_a_directory_are_not_followed_after_it_was_closed() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let (private, open) = (dir.path().join("private"), dir.path().join("open"));
    for directory in [&private, &open] {
        fs::create_dir(directory).unwrap();
    }
    symlink(&private, open.join("renamed")).unwrap();
    chown(&open, None, Some(STRANGER)).unwrap();
    chmod(&open, 0o775);
    made(&Host::default(), &file(slash(&open), &[("mode", "0755")]));
    let said = refused(&Host::default(), &file(open.join("renamed/new"), &[("content", "x")]));
    assert!(said.contains("older than the present rights"), "{said}");
    assert!(names(&private).is_empty());
}

/// The group of the former owner goes with the takeover: a later mode would give it rights.
#[test]
fn the_group_of_a_stranger_goes_with_the_owner() {
    let (_host, (dir, shared)) = (Host::default(), shared());
    for place in [dir.path(), &shared] {
        for owner in ["root", "daemon"] {
            let (path, tree) = (place.join("f"), place.join("d"));
            strangers::write(&path, "x", 0o644);
            strangers::make_directory(&tree, 0o755);
            strangers::write(&tree.join("below"), "x", 0o644);
            made(&Host::default(), &file(&path, &[("owner", owner)]));
            made(&Host::default(), &file(slash(&tree), &[("owner", owner), ("recurse", "true")]));
            made(&Host::default(), &file(&path, &[("owner", owner), ("mode", "0640")]));
            let closed = [("owner", owner), ("mode", "u=rwX,g=rX,o="), ("recurse", "true")];
            made(&Host::default(), &file(slash(&tree), &closed));
            for object in [&path, &tree, &tree.join("below")] {
                assert!(!strangers::can_read(object), "{owner}: {}", object.display());
            }
            fs::remove_file(&path).unwrap();
            fs::remove_dir_all(&tree).unwrap();
        }
    }
    // A content is written into a new file, which has no mark of the former one.
    let path = dir.path().join("written");
    strangers::write(&path, "x", 0o644);
    made(&Host::default(), &file(&path, &[("owner", "root"), ("content", "y")]));
    made(&Host::default(), &file(&path, &[("owner", "root"), ("content", "z"), ("mode", "0640")]));
    assert!(!strangers::can_read(&path));
    // A declared group stays.
    strangers::write(&path, "x", 0o644);
    made(&Host::default(), &file(&path, &[("owner", "root"), ("group", "nogroup")]));
    assert_eq!(owner(&path), (0, STRANGER));
}

/// The former owner may have a program open for writing, and has then chosen what root runs.
#[test]
fn a_program_that_others_may_have_open_is_not_trusted() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let tree = dir.path().join("tree");
    strangers::make_directory(&tree, 0o755);
    let program = tree.join("check");
    strangers::write(&program, "#!/bin/sh\nexit 0\n", 0o755);
    made(&Host::default(), &file(slash(&tree), &[("owner", "root"), ("recurse", "true")]));
    let validate = format!("{}\n%s", program.display());
    let path = dir.path().join("validated");
    let said = failed(&Host::default(), &file(&path, &[("content", "x"), ("validate", &validate)]));
    assert!(said.contains("may have it open"), "{said}");
    assert!(!path.exists());
    // A copy is root's own.
    let copied = Command::new("sh")
        .args(["-c", "cp \"$1\" \"$1.new\" && mv \"$1.new\" \"$1\"", "sh"])
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    made(&Host::default(), &file(&path, &[("content", "x"), ("validate", &validate)]));
}

/// The user can still rename a directory that root took over and closed; under its own name it is known again.
#[test]
fn files_are_made_in_a_closed_directory_that_root_took_over() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let home = dir.path().join("home");
    strangers::make_directory(&home, 0o755);
    for (name, is_empty) in [("empty", true), ("full", false)] {
        let tree = home.join(name);
        strangers::make_directory(&tree, 0o755);
        if !is_empty {
            strangers::write(&tree.join("old"), "x", 0o600);
        }
        for run in 0..3 {
            let closed = file(slash(&tree), &[("owner", "root"), ("mode", "0750")]);
            let done = hold(&Host::default(), &closed);
            assert!(matches!(done, Outcome::Changed(_) | Outcome::Unchanged), "{run}: {done:?}");
            made(&Host::default(), &file(tree.join("new"), &[("content", &run.to_string())]));
        }
        // Another closed directory under this name is not known.
        let (away, other) = (home.join("away"), dir.path().join("other"));
        fs::rename(&tree, &away).unwrap();
        fs::create_dir(&other).unwrap();
        chmod(&other, 0o700);
        fs::rename(&other, &tree).unwrap();
        let said = refused(&Host::default(), &file(tree.join("new"), &[("content", "x")]));
        assert!(said.contains("others, who can have moved it there"), "{said}");
        fs::remove_dir_all(&away).unwrap();
    }
}

/// Swap space holds the memory of all processes: the former owner of the file may have it open.
#[test]
fn a_file_that_others_may_have_open_is_no_swap_space() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let path = dir.path().join("swap");
    strangers::write(&path, "no swap space", 0o600);
    made(&Host::default(), &file(&path, &[("owner", "root"), ("mode", "0600")]));
    let swap = build("swap", path.to_str().unwrap(), &[]).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let host = Host::default();
    let found = format!("{:?}", runtime.block_on(swap.check(&host, CheckRequest::default())));
    assert!(found.starts_with("Unknown") && found.contains("may have it open"), "{found}");
}

/// Set-id bits of a tree pass its group on to new objects; the programs in it get no rights.
#[test]
fn set_id_bits_of_a_tree_go_to_directories_only() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let source = dir.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("tool"), "#!/bin/sh\n").unwrap();
    chmod(source.join("tool"), 0o755);
    for text in ["u=rwX,g=rwXs,o=rX", "02775", "06775", "a=rX,u+ws,g+ws"] {
        let tree = dir.path().join("tree");
        let given = [
            ("owner", "daemon"),
            ("group", "shadow"),
            ("source", &slash(&source)),
            ("mode", text),
            ("recurse", "true"),
        ];
        made(&Host::default(), &file(slash(&tree), &given));
        assert_eq!(mode(tree.join("tool")) & 0o6000, 0, "{text}");
        assert_eq!(mode(&tree) & 0o2000, 0o2000, "{text}");
        fs::remove_dir_all(&tree).unwrap();
    }
}

/// A user who owns a program with the set-group-ID bit can write another program into it.
#[test]
fn a_group_program_belongs_to_root() {
    for (owner, text, is_good) in [
        ("root", "02755", true),
        ("0", "g+xs", true),
        ("daemon", "02644", true),
        ("daemon", "04755", true),
        ("daemon", "02755", false),
        ("daemon", "a=rx,g+s", false),
        ("1", "06755", false),
    ] {
        let given = [("content", "x"), ("owner", owner), ("group", "shadow"), ("mode", text)];
        let built = build("file", "/srv/tool", &given);
        assert_eq!(built.is_ok(), is_good, "{owner}, {text}");
        let field = built.err().and_then(|wrong| wrong.first().and_then(|wrong| wrong.field));
        assert_eq!(field, (!is_good).then_some("mode"), "{owner}, {text}");
    }
}

/// The set-group-ID bit of a directory chooses no group for a secret.
#[test]
fn a_new_secret_gets_no_group_of_its_directory() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let directory = dir.path().join("group");
    fs::create_dir(&directory).unwrap();
    chown(&directory, None, Some(STRANGER)).unwrap();
    chmod(&directory, 0o2755);
    let path = directory.join("f");
    let given = [("content", "x"), ("sensitive", "true"), ("mode", "0640")];
    made(&Host::default(), &file(&path, &given));
    assert_eq!((owner(&path), mode(&path)), ((0, 0), 0o640));
}

/// A user can rename a directory of root in a directory of the user's: the links inside get another name.
#[test]
fn links_in_a_moved_directory_are_not_followed() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let (private, tree) = (dir.path().join("private"), dir.path().join("tree"));
    fs::create_dir(&private).unwrap();
    strangers::make_directory(&tree, 0o755);
    fs::create_dir(tree.join("moved")).unwrap();
    symlink(&private, tree.join("moved/d")).unwrap();
    made(&Host::default(), &file(slash(&tree), &[("owner", "root")]));
    let said = refused(&Host::default(), &file(tree.join("moved/d/new"), &[("content", "x")]));
    assert!(said.contains("older than the present rights"), "{said}");
    assert!(names(&private).is_empty());
}

/// A tree is not copied with links that a user chose before root took it: the copies would be new links of root's.
#[test]
fn old_links_of_a_tree_are_not_copied() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let tree = dir.path().join("tree");
    strangers::make_directory(&tree, 0o755);
    link_of_stranger(Path::new("/etc"), &tree.join("conf"));
    made(&Host::default(), &file(slash(&tree), &[("owner", "root"), ("recurse", "true")]));
    let source = slash(&tree);
    let copy =
        file(slash(&dir.path().join("copy")), &[("source", source.as_str()), ("recurse", "true")]);
    let said = format!("{:?}", hold(&Host::default(), &copy));
    assert!(said.contains("older than the present rights"), "{said}");
    assert!(!dir.path().join("copy/conf").exists());
}

/// A declared link is made again if it is one that would not be followed, also with the same target.
#[test]
fn a_declared_link_is_made_again_after_a_takeover() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let tree = dir.path().join("tree");
    strangers::make_directory(&tree, 0o755);
    fs::create_dir(dir.path().join("release")).unwrap();
    let target = dir.path().join("release").display().to_string();
    link_of_stranger(Path::new(&target), &tree.join("current"));
    made(&Host::default(), &file(slash(&tree), &[("owner", "root"), ("recurse", "true")]));
    std::thread::sleep(std::time::Duration::from_millis(50));
    let link = file(tree.join("current"), &[("symlink", target.as_str()), ("owner", "root")]);
    made(&Host::default(), &link);
    made(&Host::default(), &file(tree.join("current/f"), &[("content", "x")]));
    // Somebody opens the directory for a moment; root makes the link again.
    chown(&tree, None, Some(STRANGER)).unwrap();
    chmod(&tree, 0o775);
    made(&Host::default(), &file(slash(&tree), &[("mode", "0755")]));
    std::thread::sleep(std::time::Duration::from_millis(50));
    made(&Host::default(), &link);
    made(&Host::default(), &file(tree.join("current/f"), &[("content", "y")]));
}

/// The former owner fills the room for attributes, so that no mark finds a place.
#[test]
fn an_object_without_room_for_a_mark_is_not_taken_over() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let (path, tree) = (dir.path().join("f"), dir.path().join("d"));
    strangers::write(&path, "x", 0o755);
    strangers::make_directory(&tree, 0o755);
    for object in [&path, &tree] {
        let mut number = 0;
        for size in [1000, 100, 10, 0] {
            loop {
                number += 1;
                let name = format!("user.{number}");
                let value = vec![b'x'; size];
                let flags = rustix::fs::XattrFlags::empty();
                if rustix::fs::setxattr(object, name.as_str(), &value, flags).is_err() {
                    break;
                }
                assert!(number < 100_000, "this file system has no limit of attributes");
            }
        }
    }
    for name in [path.display().to_string(), slash(&tree)] {
        let said = refused(&Host::default(), &file(name, &[("owner", "root")]));
        assert!(said.contains("take all the room"), "{said}");
    }
    assert_eq!((owner(&path).0, owner(&tree).0), (STRANGER, STRANGER));
}

/// An edit keeps the rest of a content that another user may have chosen: the new file has the mark of the former one.
#[test]
fn an_edit_keeps_the_mark_of_an_open_file() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let path = dir.path().join("f");
    strangers::write(&path, "#!/bin/sh\n", 0o755);
    made(&Host::default(), &file(&path, &[("owner", "root")]));
    let line = build("line", path.to_str().unwrap(), &[("line", "exit 0")]).unwrap();
    made(&Host::default(), &line);
    let doubt = Reader::here().untrusted_on_the_way(&path);
    assert!(doubt.is_some_and(|doubt| doubt.contains("may have it open")));
    // A declared content has no mark.
    made(&Host::default(), &file(&path, &[("content", "exit 0\n")]));
    assert_eq!(Reader::here().untrusted_on_the_way(&path), None);
}

/// An undo of a link below a directory that was another user's would make a link that is followed.
#[test]
fn an_undo_makes_no_link_of_another_user() {
    let (host, (dir, _shared)) = (Host::default(), shared());
    let tree = dir.path().join("tree");
    strangers::make_directory(&tree, 0o755);
    made(&host, &file(slash(&tree), &[("owner", "root")]));
    let former = PriorState::Thing(PriorEntry {
        shape: PriorShape::Link(b"/etc".to_vec()),
        mode: 0o777,
        uid: 0,
        gid: 0,
        extended: Vec::new(),
        enclosure: None,
    });
    let cancel = CancellationToken::new();
    let mut restored = RestoredDirectories::default();
    for (path, is_restored) in [(tree.join("l"), false), (dir.path().join("l"), true)] {
        let done = host.files().restore(&permit(&cancel), (&path, &former), &mut restored);
        assert_eq!(done.is_ok(), is_restored, "{done:?}");
        assert_eq!(path.is_symlink(), is_restored);
    }
}

/// Root's commands do not start in a directory that another user has chosen by a link.
#[test]
fn a_command_does_not_start_behind_an_old_link() {
    let (_host, (dir, _shared)) = (Host::default(), shared());
    let tree = dir.path().join("tree");
    strangers::make_directory(&tree, 0o755);
    link_of_stranger(dir.path(), &tree.join("link"));
    made(&Host::default(), &file(slash(&tree), &[("owner", "root"), ("recurse", "true")]));
    let cwd = tree.join("link");
    let given = [("cmd", "touch made"), ("cwd", cwd.to_str().unwrap())];
    let exec = build("exec", "x", &given).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let host = Host::default();
    let done = runtime.block_on(async {
        let request = CheckRequest { run: true, ..CheckRequest::default() };
        let CheckResult::Differs(change) = exec.check(&host, request).await else {
            panic!("expected a run")
        };
        exec.apply(&host, &permit(&CancellationToken::new()), change).await
    });
    let said = format!("{done:?}");
    assert!(said.contains("leads through a link of somebody else"), "{said}");
    assert!(!dir.path().join("made").exists());
}
