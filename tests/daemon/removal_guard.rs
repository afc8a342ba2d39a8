//! Undeclared objects that are still declared under another path: through a link or a mount.

use crate::host::Host;
use crate::removal::{DELETE, graph};

/// B-16: objects are compared by identity and not by path: through a link to their directory or further up, for the
/// content of a directory, and for objects inside a removed directory.
#[test]
fn objects_claimed_under_another_path_stay() {
    let file = |name: &str, path: &str, rest: &str| {
        format!("  - {{name: {name}, path: {path}, {rest}}}\n")
    };
    let force = "force: true, meta: {on_remove: delete}";
    let content = format!("content: \"x\\n\", {DELETE}");
    let files = |each: &[String]| graph(&format!("  file:\n{}", each.concat()));
    let host = Host::with(&files(&[
        file("same", "$DIR/var/run/x", &content),
        file("deep", "$DIR/var/run/d/x", &content),
        file("held", "$DIR/var/run/tree/x", &content),
        file("full", "$DIR/var/run/full/", force),
        file("own", "$DIR/var/run/own", &content),
        file("missing", "$DIR/var/run/none/", DELETE),
    ]));
    host.make_directory("run").make_directory("run/d").make_directory("run/tree");
    host.make_directory("var");
    std::os::unix::fs::symlink("../run", host.path("var/run")).expect("a link");
    host.apply().exits(0);
    std::fs::remove_dir(host.path("run/none")).expect("removed");
    host.write("run/full/x", "x\n");
    host.make_directory("from").write("from/x", "x\n");
    host.graph(&files(&[
        file("a", "$DIR/run/x", "content: \"x\\n\""),
        file("b", "$DIR/run/d/x", "content: \"x\\n\""),
        file("c", "$DIR/run/tree/", "source: $DIR/from/, recurse: true"),
        file("d", "$DIR/run/full/x", "content: \"x\\n\""),
        file("e", "$DIR/own", "content: \"x\\n\""),
    ]));
    let planned = host.plan();
    planned.prints("- file[own]");
    for spared in ["same", "deep", "held"] {
        planned.prints_nothing_of(&format!("- file[{spared}]"));
    }
    let applied = host.apply();
    applied
        .exits(1)
        .prints("undeclared file[same]: undeclared; file[a] now manages the same object as $DIR/run/x")
        .prints("undeclared file[deep]: undeclared; file[b] now manages the same object as $DIR/run/d/x")
        .prints("undeclared file[held]: undeclared; file[c] now manages the object as a part of $DIR/run/tree")
        .prints("not removed: file[d] lies in the directory")
        .prints("changed file[own]")
        .prints("undeclared file[missing]: was already absent");
    for stays in ["run/x", "run/d/x", "run/tree/x", "run/full/x", "own"] {
        assert!(host.exists(stays), "{stays}");
    }
    assert!(!host.exists("run/own"));
    host.graph(&files(&[file("a", "$DIR/run/x", "content: \"x\\n\"")]));
    host.apply().exits(0).prints("changed file[full]");
    assert!(host.exists("run/x") && !host.exists("run/full") && host.exists("run/tree/x"));
}

/// B-16: a file in a directory that is mounted twice is not removed while its other path is declared. Needs root.
#[test]
fn objects_claimed_through_a_mount_stay() {
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    assert!(crate::host::is_root(), "this test must run as root");
    let one = |name: &str, path: &str, rest: &str| {
        graph(&format!("  file: [{{name: {name}, path: {path}, {rest}}}]\n"))
    };
    let host = Host::with(&one("old", "$DIR/there/d/x", &format!("content: x, {DELETE}")));
    host.make_directory("here").make_directory("here/d").make_directory("there");
    let none: Option<&str> = None;
    mount(Some(&host.path("here")), &host.path("there"), none, MsFlags::MS_BIND, none)
        .expect("mounted");
    host.apply().exits(0);
    host.graph(&one("new", "$DIR/here/d/x", "content: x"));
    host.apply().exits(0).prints("file[new] now manages the same object as $DIR/here/d/x");
    let stays = host.exists("here/d/x");
    umount2(&host.path("there"), MntFlags::MNT_DETACH).expect("unmounted");
    assert!(stays);
}

/// B-16, S-15: an undeclared directory is removed with its content, unless a part of it is declared through a mount
/// of that part, from which no path leads up to the directory. Needs root.
#[test]
fn a_part_declared_through_its_mount_stays() {
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    assert!(crate::host::is_root(), "this test must run as root");
    let graph = |files: &str| graph(&format!("  file:\n{files}"));
    let old = "  - {name: old, path: $DIR/a/, force: true, meta: {on_remove: delete}}\n";
    let whole = "  - {name: tree, path: $DIR/t/, source: $DIR/from/, recurse: true}\n";
    let deep = format!("  - {{name: deep, path: $DIR/m/q/x, content: x, {DELETE}}}\n");
    let host = Host::with(&graph(&format!("{old}{deep}")));
    host.make_directory("from").make_directory("from/p").make_directory("from/p/q");
    host.write("from/p/q/x", "x");
    host.make_directory("t").make_directory("t/p").make_directory("t/p/q").make_directory("m");
    let none: Option<&str> = None;
    let bind = |from: &str, to: &str| {
        mount(Some(&host.path(from)), &host.path(to), none, MsFlags::MS_BIND, none)
            .expect("mounted");
    };
    bind("t/p", "m");
    host.apply().exits(0);
    host.make_directory("a/b").make_directory("a/b/d").make_directory("c d");
    bind("a/b", "c d");
    host.graph(&graph(&format!("  - {{name: new, path: $DIR/c d/d/x, content: x}}\n{whole}")));
    let applied = host.apply();
    let stay = (host.exists("a/b/d/x"), host.exists("t/p/q/x"));
    for point in ["c d", "m"] {
        umount2(&host.path(point), MntFlags::MNT_DETACH).expect("unmounted");
    }
    applied.exits(1).prints("not removed: file[new] lies in the directory").prints(
        "undeclared file[deep]: undeclared; file[tree] now manages the object as a part of $DIR/t",
    );
    assert_eq!(stay, (true, true));
    // Without the mount the directory is removed.
    host.graph(&graph(whole));
    host.apply().exits(0).prints("changed file[old]");
    assert!(!host.exists("a"));
}

/// B-16: an undeclared file is not removed while it is declared under another name, on which it is mounted. Needs
/// root.
#[test]
fn a_file_declared_through_its_mount_stays() {
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    assert!(crate::host::is_root(), "this test must run as root");
    let one = |name: &str, path: &str, rest: &str| {
        graph(&format!("  file: [{{name: {name}, path: {path}, {rest}}}]\n"))
    };
    let host = Host::with(&one("old", "$DIR/a/f", &format!("content: x, {DELETE}")));
    host.make_directory("a").make_directory("b").write("b/g", "");
    host.apply().exits(0);
    let none: Option<&str> = None;
    mount(Some(&host.path("a/f")), &host.path("b/g"), none, MsFlags::MS_BIND, none)
        .expect("mounted");
    host.graph(&one("new", "$DIR/b/g", "content: x"));
    let applied = host.apply();
    let stays = host.exists("a/f");
    umount2(&host.path("b/g"), MntFlags::MNT_DETACH).expect("unmounted");
    applied.exits(0).prints("file[new] now manages the same object as $DIR/b/g");
    assert!(stays);
    host.write("b/g", "x").remove("a/f");
    host.graph(&one("old", "$DIR/a/f", &format!("content: x, {DELETE}"))).apply().exits(0);
    host.graph(&one("new", "$DIR/b/g", "content: x"));
    host.apply().exits(0);
    assert!(!host.exists("a/f") && host.exists("b/g"), "it is mounted no more, and goes");
}

/// Only a resource that creates the object keeps it: one that removes the object, or only sets its attributes, does
/// not (issue 14, point 6).
#[test]
fn a_claim_without_creation_does_not_keep_the_object() {
    for (claim, held) in [
        ("{name: new, path: $DIR/x, state: absent}", false),
        ("{name: new, path: $DIR/x, state: undefined, mode: 0600}", false),
        ("{name: new, path: $DIR/x, content: \"x\\n\"}", true),
    ] {
        let host = Host::with(&graph(&format!(
            "  file: [{{name: old, path: $DIR/x, content: \"x\\n\", {DELETE}}}]\n"
        )));
        host.apply().exits(0);
        host.graph(&graph(&format!("  file: [{claim}]\n")));
        host.apply().exits(0);
        assert_eq!(host.exists("x"), held, "{claim}");
    }
}
