//! Files below directories that a user moved to a managed name. The tests run as root.

use crate::other_users::moved_trees::{OTHER, make_directory};
use crate::other_users::strangers::STRANGER;
use crate::other_users::takeover::slash;
use crate::support::*;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use steadfast_resources::{Host, Outcome};

/// Makes a directory of root that a group can write.
fn share(above: &Path) -> PathBuf {
    let shared = above.join("shared");
    make_directory(&shared, (0, 0o755));
    chown(&shared, Some(0), Some(OTHER)).unwrap();
    chmod(&shared, 0o2775);
    shared
}

/// Makes a source tree with one file.
fn tree(above: &Path) -> PathBuf {
    let source = above.join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("f"), "new").unwrap();
    source
}

/// A user renames a closed directory of another user to the parent of managed files.
#[test]
fn no_file_is_changed_below_a_moved_directory() {
    demand_root();
    // The directory of another user, and shared ones of a group.
    let places = [(OTHER, 0o755), (0, 0o2775), (STRANGER, 0o2775)];
    for (place, owner) in places.into_iter().flat_map(|place| [(place, 0), (place, STRANGER)]) {
        let (host, dir) = (Host::default(), scratch());
        let home = dir.path().join("home");
        make_directory(&home, place);
        chown(&home, None, Some(OTHER)).unwrap();
        chmod(&home, place.1);
        let moved = home.join("moved");
        make_directory(&moved, (owner, 0o700));
        let there = moved.join("f");
        fs::write(&there, "precious").unwrap();
        chown(&there, Some(owner), Some(owner)).unwrap();
        chmod(&there, 0o600);
        for (path, fields) in [
            (&there, &[("content", "x")][..]),
            (&there, &[("state", "exists"), ("mode", "0604")]),
            (&there, &[("state", "exists"), ("owner", "games")]),
            (&there, &[("acl", "user:games:r--")]),
            (&there, &[("state", "absent")]),
            (&there, &[("state", "absent"), ("force", "true")]),
            (&moved.join("new"), &[("content", "x")]),
            (&moved.join("link"), &[("symlink", "/tmp")]),
        ] {
            let said = failed(&host, &file(path, fields));
            assert!(
                said.contains("can have moved it there"),
                "{place:?} {owner} {fields:?} {said}"
            );
        }
        let line = [("path", there.to_str().unwrap()), ("line", "x")];
        let said = failed(&host, &build("line", "one", &line).unwrap());
        assert!(said.contains("can have moved it there"), "{said}");
        assert_eq!(fs::read_to_string(&there).unwrap(), "precious");
        assert_eq!((mode(&there), fs::read_dir(&moved).unwrap().count()), (0o600, 1));
        // Nothing differs, so nothing is refused.
        let same = hold(&host, &file(&there, &[("content", "precious")]));
        assert!(matches!(same, Outcome::Unchanged), "{same:?}");
        made(&host, &file(&there, &[("content", "x"), ("force", "true")]));
    }
}

/// Sets an access list.
fn set_list(path: &Path, entry: &str) {
    let status = std::process::Command::new("setfacl").args(["-m", entry]).arg(path).status();
    assert!(status.unwrap().success(), "setfacl -m {entry}");
}

/// The members of the group may enter the moved directory. An access list lets another user move it, or keeps a member
/// out.
#[test]
fn a_directory_with_an_access_list_is_not_open_to_its_group() {
    demand_root();
    for (on_above, mode, on_inner) in
        [(Some("u:games:rwx"), 0o2770, None), (None, 0o2755, Some("u:games:---"))]
    {
        let (host, dir) = (Host::default(), scratch());
        let shared = share(dir.path());
        let team = shared.join("team");
        make_directory(&team, (STRANGER, 0o755));
        chown(&team, Some(STRANGER), Some(OTHER)).unwrap();
        chmod(&team, mode);
        made(&host, &file(team.join("f"), &[("content", "x")]));
        if let Some(entry) = on_above {
            set_list(&shared, entry);
        }
        if let Some(entry) = on_inner {
            set_list(&team, entry);
        }
        let said = failed(&host, &file(team.join("f"), &[("content", "y")]));
        assert!(said.contains("can have moved it there"), "{said}");
    }
}

/// A user renames an open directory of another user, whose private files are not the ones that the graph means.
#[test]
fn a_private_file_below_a_moved_open_directory_is_kept() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let shared = share(dir.path());
    let moved = shared.join("moved");
    make_directory(&moved, (STRANGER, 0o755));
    let private = moved.join("f");
    fs::write(&private, "precious").unwrap();
    chown(&private, Some(STRANGER), Some(STRANGER)).unwrap();
    chmod(&private, 0o600);
    for fields in [&[("content", "x")][..], &[("state", "absent")]] {
        let said = failed(&host, &file(&private, fields));
        assert!(said.contains("can have moved the directory above it"), "{said}");
    }
    let line = [("path", private.to_str().unwrap()), ("line", "x")];
    let said = failed(&host, &build("line", "one", &line).unwrap());
    assert!(said.contains("can have moved the directory above it"), "{said}");
    assert_eq!(fs::read_to_string(&private).unwrap(), "precious");
    made(&host, &file(&private, &[("content", "x"), ("owner", "65534")]));
    made(&host, &file(&private, &[("state", "absent"), ("force", "true")]));
    // An open file of that user is no secret.
    fs::write(&private, "open").unwrap();
    chown(&private, Some(STRANGER), Some(STRANGER)).unwrap();
    made(&host, &file(&private, &[("state", "absent")]));
}

/// A tree is copied neither into a closed directory that a user moved to its name, nor over private files in an open
/// one.
#[test]
fn a_copy_keeps_the_files_of_a_moved_directory() {
    demand_root();
    for (owner, mode) in [(STRANGER, 0o700), (0, 0o700), (STRANGER, 0o755)] {
        let (host, dir) = (Host::default(), scratch());
        let shared = share(dir.path());
        let source = tree(dir.path());
        let moved = shared.join("moved");
        make_directory(&moved, (owner, mode));
        let private = moved.join("f");
        fs::write(&private, "precious").unwrap();
        chown(&private, Some(owner), Some(owner)).unwrap();
        chmod(&private, 0o600);
        let source = slash(&source);
        let copy = |more: &[(&str, &str)]| {
            let given = [&[("source", source.as_str()), ("recurse", "true")][..], more].concat();
            file(slash(&moved), &given)
        };
        for more in [&[][..], &[("owner", "root")], &[("owner", "root"), ("group", "games")]] {
            let said = failed(&host, &copy(more));
            assert!(said.contains("can have moved"), "{owner} {mode:o} {more:?}: {said}");
            assert_eq!(fs::read_to_string(&private).unwrap(), "precious");
        }
        made(&host, &copy(&[("force", "true")]));
        assert_eq!(fs::read_to_string(&private).unwrap(), "new");
    }
    // A directory that this program made is filled and repaired.
    let (host, dir) = (Host::default(), scratch());
    let shared = share(dir.path());
    let source = tree(dir.path());
    let source = slash(&source);
    let given = [("source", source.as_str()), ("recurse", "true"), ("mode", "0700")];
    let target = file(slash(&shared.join("made")), &given);
    made(&host, &target);
    fs::write(shared.join("made/f"), "drift").unwrap();
    made(&host, &target);
}

/// A directory that this program made is recognised, and a directory of the owner of the upper one is not in doubt.
#[test]
fn files_below_directories_of_the_graph_are_changed() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    make_directory(&home, (OTHER, 0o755));
    made(&host, &file(slash(&home.join("made")), &[("mode", "0700")]));
    made(&host, &file(home.join("made/f"), &[("content", "x")]));
    make_directory(&home.join("own"), (OTHER, 0o700));
    made(&host, &file(home.join("own/f"), &[("content", "x"), ("owner", "games")]));
    made(&host, &file(home.join("own/f"), &[("state", "absent")]));
}
