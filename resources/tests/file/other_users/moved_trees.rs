//! Trees with directories that a user made, or moved to a managed name. The tests run as root.

use crate::other_users::strangers::{self, STRANGER, can_read};
use crate::other_users::takeover::slash;
use crate::support::*;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::path::Path;
use steadfast_resources::host::files::RestoredDirectories;
use steadfast_resources::{Host, Outcome, PriorEntry, PriorShape, PriorState};
use tokio_util::sync::CancellationToken;

/// Another untrusted user, games.
pub(crate) const OTHER: u32 = 5;

pub(crate) fn make_directory(path: &Path, (uid, mode): (u32, u32)) {
    fs::create_dir(path).unwrap();
    chown(path, Some(uid), Some(uid)).unwrap();
    chmod(path, mode);
}

/// The source closes a directory; a user has a directory of that name at the destination.
#[test]
fn a_closed_directory_of_a_source_is_closed_to_the_user_who_has_one_there() {
    demand_root();
    for closed in [0o700, 0o750] {
        let (host, dir) = (Host::default(), scratch());
        let (source, home) = (dir.path().join("source"), dir.path().join("home"));
        fs::create_dir_all(source.join("keys/deep")).unwrap();
        for name in ["keys/k", "keys/deep/k"] {
            fs::write(source.join(name), "secret").unwrap();
        }
        chmod(source.join("keys"), closed);
        strangers::make_directory(&home, 0o755);
        strangers::make_directory(&home.join("keys"), 0o777);
        strangers::make_directory(&home.join("keys/deep"), 0o755);
        let path = source.display().to_string();
        let given = [("source", path.as_str()), ("recurse", "true")];
        made(&host, &file(slash(&home), &given));
        for name in ["keys", "keys/deep"] {
            assert_eq!((mode(home.join(name)), owner(home.join(name))), (closed, (0, 0)), "{name}");
        }
        for name in ["keys/k", "keys/deep/k"] {
            assert!(home.join(name).exists() && !can_read(&home.join(name)), "{name}");
        }
        // Root's own wide directory, which the user renamed.
        fs::remove_dir_all(home.join("keys")).unwrap();
        fs::create_dir(home.join("keys")).unwrap();
        made(&host, &file(slash(&home), &given));
        assert_eq!(mode(home.join("keys")), closed);
        // The owner who is declared reads the copy.
        let theirs = dir.path().join("theirs");
        strangers::make_directory(&theirs, 0o755);
        strangers::make_directory(&theirs.join("keys"), 0o755);
        let given = [&given[..], &[("owner", "nobody"), ("force", "true")]].concat();
        made(&host, &file(slash(&theirs), &given));
        assert_eq!((mode(theirs.join("keys")), owner(theirs.join("keys")).0), (0o755, STRANGER));
    }
}

/// Objects below a rejected directory are left alone.
#[test]
fn nothing_below_a_refused_directory_is_changed() {
    demand_root();
    for (uid, given) in [
        (STRANGER, vec![("owner", "games")]),
        (STRANGER, vec![("mode", "u=rwX,go=rX")]),
        (0, vec![("owner", "games"), ("group", "games")]),
    ] {
        let (host, dir) = (Host::default(), scratch());
        let home = dir.path().join("home");
        make_directory(&home, (OTHER, 0o755));
        let moved = home.join("moved");
        make_directory(&moved, (uid, 0o700));
        make_directory(&moved.join("deep"), (uid, 0o700));
        for name in ["moved/public", "moved/private", "moved/deep/public"] {
            fs::write(home.join(name), "x").unwrap();
            chown(home.join(name), Some(uid), Some(uid)).unwrap();
            chmod(home.join(name), if name.ends_with("private") { 0o600 } else { 0o640 });
        }
        chmod(moved.join("public"), 0o644);
        let all = ["moved", "moved/deep", "moved/public", "moved/private", "moved/deep/public"];
        let portrait = || all.map(|name| (mode(home.join(name)), owner(home.join(name))));
        let before = portrait();
        let tree = [&given[..], &[("recurse", "true")]].concat();
        let outcome = hold(&host, &file(slash(&home), &tree));
        assert!(matches!(outcome, Outcome::Failed { .. }), "{given:?}: {outcome:?}");
        assert_eq!(portrait(), before, "{given:?}");
    }
}

const MOVED: &str = "others can have moved it there";

/// A directory that holds something is neither given away nor opened for writing where others can have moved it.
#[test]
fn a_moved_directory_is_not_given_away() {
    demand_root();
    for uid in [STRANGER, 0] {
        let (host, dir) = (Host::default(), scratch());
        let project = dir.path().join("project");
        make_directory(&project, (OTHER, 0o775));
        let path = project.join("managed");
        let empty = project.join("empty");
        make_directory(&empty, (uid, 0o755));
        made(&host, &file(slash(&empty), &[("mode", "0775")]));
        make_directory(&path, (uid, 0o755));
        fs::write(path.join("k"), "x").unwrap();
        chmod(path.join("k"), 0o644);
        for given in [
            vec![("owner", "games")],
            vec![("mode", "02775"), ("group", "games")],
            vec![("mode", "0777")],
            vec![("owner", "games"), ("recurse", "true")],
            vec![("owner", "games"), ("state", "undefined")],
        ] {
            let words = refused(&host, &file(slash(&path), &given));
            assert!(words.contains(MOVED), "{given:?}: {words}");
        }
        assert_eq!((mode(&path), owner(&path)), (0o755, (uid, uid)));
        let permit = permit(&CancellationToken::new());
        let former = PriorState::Thing(PriorEntry {
            shape: PriorShape::Directory,
            mode: 0o755,
            uid: OTHER,
            gid: OTHER,
            extended: Vec::new(),
            enclosure: None,
        });
        let fault = host
            .files()
            .restore(&permit, (&path, &former), &mut RestoredDirectories::default())
            .unwrap_err();
        assert!(format!("{fault:?}").contains(MOVED), "{fault:?}");
        // A tree above it.
        let tree = [("owner", "games"), ("recurse", "true")];
        let words = failed(&host, &file(slash(&project), &tree));
        assert!(words.contains(MOVED) && owner(path.join("k")).0 != OTHER, "{words}");
        // Rights that nobody gains, and `force`.
        made(&host, &file(slash(&path), &[("mode", "0755"), ("group", "games")]));
        made(&host, &file(slash(&path), &[("owner", "games"), ("force", "true")]));
    }
}

/// A later run of another process finishes a handover of which only the change of owner was done.
#[test]
fn a_handover_that_was_cut_off_is_finished() {
    demand_root();
    let dir = scratch();
    let home = dir.path().join("home");
    make_directory(&home, (STRANGER, 0o755));
    let path = home.join("own");
    make_directory(&path, (STRANGER, 0o755));
    fs::write(path.join("k"), "x").unwrap();
    let given = file(slash(&path), &[("owner", "games"), ("group", "games"), ("mode", "0775")]);
    made(&Host::default(), &given);
    chmod(&path, 0o755);
    made(&Host::default(), &given);
    // A tree whose top directory alone was given away.
    let top = dir.path().join("top");
    fs::create_dir_all(top.join("deep/er")).unwrap();
    fs::write(top.join("deep/er/k"), "x").unwrap();
    made(&Host::default(), &file(slash(&top), &[("owner", "games")]));
    made(&Host::default(), &file(slash(&top), &[("owner", "games"), ("recurse", "true")]));
    assert_eq!(owner(top.join("deep/er")).0, OTHER);
    // The user gives another directory that name.
    make_directory(&home.join("data"), (0, 0o755));
    fs::write(home.join("data/k"), "x").unwrap();
    fs::rename(&path, home.join("aside")).unwrap();
    fs::rename(home.join("data"), &path).unwrap();
    assert!(refused(&Host::default(), &given).contains(MOVED));
}

#[test]
fn a_users_own_directory_and_one_of_this_program_stay_manageable() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    make_directory(&home, (STRANGER, 0o755));
    let path = home.join("own");
    for given in [
        vec![("owner", "nobody"), ("mode", "0775")],
        vec![("owner", "games")],
        vec![("mode", "02775"), ("group", "games")],
    ] {
        make_directory(&path, (STRANGER, 0o755));
        fs::write(path.join("k"), "x").unwrap();
        made(&host, &file(slash(&path), &given));
        fs::remove_dir_all(&path).unwrap();
    }
    made(&host, &file(slash(&path), &[]));
    fs::write(path.join("k"), "x").unwrap();
    made(&Host::default(), &file(slash(&path), &[("owner", "games")]));
    // A tree of root's that goes to a user or to a group, in one resource or in several.
    for given in [
        vec![("owner", "games")],
        vec![("mode", "u=rwX,g=rwX,o=rX"), ("group", "games")],
        vec![("owner", "games"), ("group", "games"), ("mode", "g+rwX")],
    ] {
        for recurse in ["true", "false"] {
            let top = dir.path().join("top");
            fs::create_dir_all(top.join("deep/er")).unwrap();
            fs::write(top.join("deep/er/k"), "x").unwrap();
            let given = [&given[..], &[("recurse", recurse)]].concat();
            made(&host, &file(slash(&top), &given));
            if recurse == "false" {
                made(&host, &file(slash(&top.join("deep")), &given));
                made(&host, &file(slash(&top.join("deep/er")), &given));
            }
            fs::remove_dir_all(&top).unwrap();
        }
    }
    // A tree of a user, with private directories and files, that goes to another user.
    let top = home.join("tree");
    make_directory(&top, (STRANGER, 0o755));
    for name in ["open", "closed", "closed/deep", "closed/deep/er"] {
        make_directory(&top.join(name), (STRANGER, if name == "open" { 0o755 } else { 0o700 }));
        let file = top.join(name).join("private");
        fs::write(&file, "x").unwrap();
        chown(&file, Some(STRANGER), Some(STRANGER)).unwrap();
        chmod(&file, 0o600);
    }
    made(&host, &file(slash(&top), &[("owner", "games"), ("recurse", "true")]));
    assert_eq!(owner(top.join("closed/deep/er/private")).0, OTHER);
    // A project in which users make directories.
    let project = dir.path().join("project");
    make_directory(&project, (0, 0o755));
    chown(&project, None, Some(60)).unwrap();
    chmod(&project, 0o2775);
    make_directory(&project.join("sub"), (OTHER, 0o755));
    make_directory(&project.join("sub/deep"), (OTHER, 0o755));
    fs::write(project.join("sub/deep/k"), "x").unwrap();
    let given = [("mode", "u=rwX,g=rwX,o=rX"), ("group", "games"), ("recurse", "true")];
    made(&Host::default(), &file(slash(&project), &given));
    assert_eq!(mode(project.join("sub/deep")), 0o775);
}

#[test]
fn a_moved_socket_is_not_opened_for_writing() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    for (uid, above, given) in [
        (STRANGER, 0o755, vec![("mode", "0666")]),
        (STRANGER, 0o1777, vec![("mode", "0666")]),
        (STRANGER, 0o755, vec![("owner", "games")]),
        (0, 0o755, vec![("group", "games"), ("mode", "0775")]),
    ] {
        let home = dir.path().join("home");
        make_directory(&home, (OTHER, above));
        let path = home.join("socket");
        let bound = UnixListener::bind(&path).unwrap();
        chown(&path, Some(uid), Some(uid)).unwrap();
        chmod(&path, 0o755);
        let given = [&given[..], &[("state", "undefined")]].concat();
        let words = refused(&host, &file(&path, &given));
        assert!(words.contains(MOVED), "{given:?}: {words}");
        drop(bound);
        fs::remove_dir_all(&home).unwrap();
    }
}

#[test]
fn a_moved_file_of_roots_is_not_given_away_as_it_is() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    make_directory(&home, (OTHER, 0o755));
    let path = home.join("managed");
    fs::write(&path, "x").unwrap();
    chmod(&path, 0o644);
    let given = [("owner", "games"), ("state", "undefined")];
    assert!(refused(&host, &file(&path, &given)).contains(MOVED));
    assert_eq!(owner(&path).0, 0);
    let own = dir.path().join("own");
    fs::write(&own, "x").unwrap();
    made(&host, &file(&own, &given));
}

/// A purge below a directory that others can have moved keeps private objects of users.
#[test]
fn a_purge_of_a_moved_directory_keeps_what_is_private() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    make_directory(&home, (OTHER, 0o755));
    let path = home.join("managed");
    make_directory(&path, (STRANGER, 0o755));
    strangers::write(&path.join("private"), "x", 0o600);
    strangers::write(&path.join("public"), "x", 0o644);
    make_directory(&path.join("folder"), (STRANGER, 0o700));
    strangers::write(&path.join("folder/k"), "x", 0o644);
    fs::write(path.join("roots"), "x").unwrap();
    chmod(path.join("roots"), 0o600);
    let given = [("purge", "true"), ("recurse", "true")];
    let words = failed(&host, &file(slash(&path), &given));
    assert_eq!(words.matches("it is private").count(), 2, "{words}");
    assert_eq!(names(&path), ["folder", "private"]);
    assert!(path.join("folder/k").exists());
    made(&host, &file(slash(&path), &[&given[..], &[("force", "true")]].concat()));
    assert!(names(&path).is_empty());
    // The user who owns the directory is the only one who can have moved it.
    let own = dir.path().join("own");
    make_directory(&own, (STRANGER, 0o755));
    strangers::write(&own.join("private"), "x", 0o600);
    made(&host, &file(slash(&own), &given));
}

/// A user moves a directory that holds private objects of another user into a tree that is removed.
#[test]
fn a_removal_of_a_tree_keeps_what_is_private() {
    demand_root();
    for (top_owner, inner, private_owner, is_kept) in [
        (OTHER, (OTHER, 0o1777), STRANGER, true),
        (OTHER, (OTHER, 0o777), STRANGER, true),
        (OTHER, (0, 0o1777), STRANGER, true),
        (OTHER, (STRANGER, 0o755), STRANGER, true),
        (OTHER, (OTHER, 0o755), OTHER, false),
        (0, (0, 0o1777), STRANGER, false),
    ] {
        let (host, dir) = (Host::default(), scratch());
        let top = dir.path().join("top");
        make_directory(&top, (top_owner, 0o755));
        make_directory(&top.join("pub"), inner);
        make_directory(&top.join("pub/private"), (private_owner, 0o700));
        fs::write(top.join("pub/private/f"), "x").unwrap();
        fs::write(top.join("own"), "x").unwrap();
        let absent = file(slash(&top), &[("state", "absent"), ("force", "true")]);
        if is_kept {
            let said = failed(&host, &absent);
            assert!(said.contains("other users can have moved it there"), "{said}");
        } else {
            made(&host, &absent);
        }
        assert_eq!(top.join("pub/private/f").exists(), is_kept, "{top_owner} {inner:?}");
    }
}

/// An access list is no way to open a private object that a user moved to a managed name.
#[test]
fn an_access_list_opens_no_moved_object() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    make_directory(&home, (OTHER, 0o755));
    for uid in [0, STRANGER] {
        let name = home.join(format!("f{uid}"));
        fs::write(&name, "secret").unwrap();
        chown(&name, Some(uid), Some(uid)).unwrap();
        chmod(&name, 0o600);
        let directory = home.join(format!("d{uid}"));
        make_directory(&directory, (uid, 0o700));
        fs::write(directory.join("f"), "secret").unwrap();
        for acl in ["user:games:r--", "group:games:r-x", "default:user:games:r-x"] {
            if !acl.starts_with("default") {
                refused(&host, &file(&name, &[("acl", acl)]));
            }
            refused(&host, &file(slash(&directory), &[("acl", acl)]));
        }
        assert_eq!((mode(&name), mode(&directory)), (0o600, 0o700));
        // The user's own file, and one of the graph, get the list.
        let own = home.join("own");
        fs::write(&own, "x").unwrap();
        chown(&own, Some(OTHER), Some(OTHER)).unwrap();
        chmod(&own, 0o600);
        made(&host, &file(&own, &[("acl", "user:nobody:r--")]));
        fs::remove_file(&own).unwrap();
    }
    made(
        &host,
        &file(
            dir.path().join("root"),
            &[("content", "x"), ("mode", "0600"), ("acl", "user:games:r--")],
        ),
    );
}

/// A user renames a closed directory of another user to the parent of a managed name, in a directory of a group.
#[test]
fn nothing_is_destroyed_below_a_moved_directory() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let shared = dir.path().join("shared");
    make_directory(&shared, (0, 0o2775));
    chown(&shared, Some(0), Some(OTHER)).unwrap();
    let moved = shared.join("moved");
    make_directory(&moved, (STRANGER, 0o700));
    make_directory(&moved.join("data"), (STRANGER, 0o755));
    for name in ["data/deep", "private"] {
        fs::write(moved.join(name), "precious").unwrap();
        chown(moved.join(name), Some(STRANGER), Some(STRANGER)).unwrap();
    }
    let (private, data) = (moved.join("private"), moved.join("data"));
    for resource in [
        file(slash(&data), &[("state", "absent"), ("force", "true")]),
        file(slash(&data), &[("purge", "true"), ("recurse", "true")]),
        file(&data, &[("symlink", "/tmp"), ("force", "true")]),
        file(dir.path().join("link"), &[("hardlink", private.to_str().unwrap())]),
    ] {
        let said = failed(&host, &resource);
        assert!(said.contains("can have moved it there"), "{said}");
        assert_eq!(fs::read_to_string(data.join("deep")).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&private).unwrap(), "precious");
        assert!(!dir.path().join("link").exists());
    }
    // The group may enter a directory of its own.
    chown(&moved, Some(STRANGER), Some(OTHER)).unwrap();
    chmod(&moved, 0o2770);
    made(&host, &file(slash(&data), &[("state", "absent"), ("force", "true")]));
}

/// A closed file that a user moved to the target of a hard link gets no second name.
#[test]
fn a_moved_file_gets_no_second_name() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let home = dir.path().join("home");
    make_directory(&home, (OTHER, 0o755));
    for uid in [0, STRANGER] {
        let target = home.join("t");
        fs::write(&target, "secret").unwrap();
        chown(&target, Some(uid), Some(uid)).unwrap();
        chmod(&target, 0o600);
        let said =
            refused(&host, &file(dir.path().join("l"), &[("hardlink", target.to_str().unwrap())]));
        assert!(said.contains("others can have moved it there"), "{said}");
    }
}

/// A tree that is closed to others leaves no rights to the group of the stranger whose directory has its name.
#[test]
fn a_closed_tree_leaves_the_group_of_a_stranger() {
    demand_root();
    let (host, dir) = (Host::default(), scratch());
    let (source, tree) = (dir.path().join("source"), dir.path().join("tree"));
    fs::create_dir_all(source.join("s")).unwrap();
    for name in ["q", "s/g"] {
        fs::write(source.join(name), "private").unwrap();
        chmod(source.join(name), 0o600);
    }
    strangers::make_directory(&tree, 0o777);
    strangers::make_directory(&tree.join("s"), 0o777);
    for name in ["q", "s/g"] {
        strangers::write(&tree.join(name), "", 0o777);
    }
    let path = source.display().to_string();
    let given = [("source", path.as_str()), ("recurse", "true"), ("owner", "root")];
    let given = [&given[..], &[("mode", "u=rwX,g=rX,o=")]].concat();
    made(&host, &file(slash(&tree), &given));
    for name in ["", "q", "s", "s/g"] {
        let at = tree.join(name);
        assert_eq!((owner(&at), mode(&at) & 0o007), ((0, 0), 0), "{name}");
    }
    // A plain directory that is closed.
    let plain = dir.path().join("plain");
    strangers::make_directory(&plain, 0o777);
    made(&host, &file(slash(&plain), &[("owner", "root"), ("mode", "0750")]));
    assert_eq!(owner(&plain), (0, 0));
    // A later mode could give the group more than everybody else.
    let open = dir.path().join("open");
    strangers::make_directory(&open, 0o777);
    made(&host, &file(slash(&open), &[("owner", "root"), ("mode", "0755")]));
    assert_eq!(owner(&open), (0, 0));
}
