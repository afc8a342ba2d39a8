//! Trees and their sources in a whole graph: declared files stay, and drift on either side is repaired at once.

use crate::host::Host;

const PURGED: &str = r#"
graph: purged
resources:
  file:
  - {name: conf.d, path: $DIR/conf.d/, purge: true, recurse: true, excludes: [keep]}
  - {name: declared, path: $DIR/conf.d/declared, content: "x\n", after: "file[conf.d]"}
  - {name: sub, path: $DIR/conf.d/sub/, after: "file[conf.d]"}
  - {name: deep, path: $DIR/conf.d/a/b, state: undefined, mode: 0600}
"#;

fn planted(graph: &str) -> Host {
    let host = Host::with(graph);
    for name in ["conf.d", "conf.d/sub", "conf.d/a", "conf.d/keep", "conf.d/gone"] {
        host.make_directory(name);
    }
    let files = ["declared", "stray", "sub/theirs", "a/b", "a/stray", "keep/x", "gone/x"];
    for name in files {
        host.write(&format!("conf.d/{name}"), "x\n");
    }
    host
}

#[test]
fn files_declared_by_others_stay() {
    let host = planted(PURGED);
    let shown = host.plan();
    shown.exits(0).prints_in_order(&[
        "existing objects that would be removed:",
        "- file[conf.d]",
        "removed: a/stray",
        "removed: gone/x",
        "removed: gone",
        "removed: stray",
    ]);
    shown
        .prints_nothing_of("removed: declared")
        .prints_nothing_of("theirs")
        .prints_nothing_of("keep");
    host.apply().exits(0);
    for name in ["declared", "sub/theirs", "a/b", "keep/x"] {
        assert!(host.exists(&format!("conf.d/{name}")), "{name}");
    }
    for name in ["stray", "a/stray", "gone"] {
        assert!(!host.exists(&format!("conf.d/{name}")), "{name}");
    }
    host.apply().exits(0).prints("4 resources, 0 changed");
}

/// Files declared by a left-out part of the graph are not purged.
#[test]
fn files_of_left_out_resources_are_not_purged() {
    let host = planted(PURGED);
    host.ask(&["apply", "--only", "file[conf.d]"]).exits(0);
    for name in ["declared", "sub/theirs", "a/b"] {
        assert!(host.exists(&format!("conf.d/{name}")), "{name}");
    }
    assert!(!host.exists("conf.d/stray"));
}

/// The declared files of other resources are part of a tree's definition: a file that becomes undeclared is purged.
#[test]
fn undeclared_files_are_purged_after_a_reload() {
    let host = planted(PURGED);
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    assert!(host.exists("conf.d/declared"));
    let without: Vec<&str> = PURGED.lines().filter(|line| !line.contains("declared")).collect();
    host.graph(&without.join("\n"));
    daemon.signal(nix::sys::signal::Signal::SIGHUP);
    daemon.wait_for_of("changed", "file[conf.d]");
    host.wait_until("it is purged", || !host.exists("conf.d/declared"));
    daemon.wait_for("converged");
    assert!(host.exists("conf.d/a/b") && host.exists("conf.d/sub/theirs"));
}

const COPIED: &str = r"
graph: copied
resources:
  file:
  - {name: tree, path: $DIR/tree/, source: files/tree/, recurse: true, purge: true}
  - {name: one, path: $DIR/one, source: files/one}
  - {name: joined, path: $DIR/joined, fragments: [files/head, files/parts.d]}
";

/// F-7: drift in a target and a change in a source are both noticed by events, without a sweep.
#[test]
fn drift_on_either_side_is_repaired_at_once() {
    let host = Host::with(COPIED);
    for name in ["files", "files/tree", "files/tree/deep", "files/parts.d"] {
        host.make_directory(name);
    }
    for name in ["one", "head", "parts.d/10", "tree/a", "tree/deep/b"] {
        host.write(&format!("files/{name}"), "1\n");
    }
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    assert_eq!(host.read("joined"), "1\n1\n");
    let write = |name: &str, content: &str| {
        host.write(name, content);
    };
    let repaired = |resource: &str, breaks: &dyn Fn(), is_right: &dyn Fn() -> bool| {
        daemon.skip_to_now();
        breaks();
        daemon.wait_for_of("changed", resource);
        host.wait_until(resource, is_right);
        daemon.wait_for("converged");
    };
    repaired("file[one]", &|| write("files/one", "2\n"), &|| host.read("one") == "2\n");
    repaired("file[one]", &|| write("one", "3\n"), &|| host.read("one") == "2\n");
    repaired("file[joined]", &|| write("files/parts.d/05", "0\n"), &|| {
        host.read("joined") == "1\n0\n1\n"
    });
    repaired("file[tree]", &|| write("tree/deep/b", "x\n"), &|| host.read("tree/deep/b") == "1\n");
    repaired("file[tree]", &|| write("tree/deep/stray", "x\n"), &|| {
        !host.exists("tree/deep/stray")
    });
    let new = || {
        host.make_directory("files/tree/new").make_directory("files/tree/new/er");
        host.write("files/tree/new/er/c", "1\n");
    };
    repaired("file[tree]", &new, &|| host.read("tree/new/er/c") == "1\n");
    repaired("file[tree]", &|| write("tree/new/er/c", "x\n"), &|| {
        host.read("tree/new/er/c") == "1\n"
    });
    let gone = || std::fs::remove_dir_all(host.path("files/tree/new")).expect("removed");
    repaired("file[tree]", &gone, &|| !host.exists("tree/new"));
}

/// E-20: a change of the source is intentional at any time; a change of the copy is drift.
#[test]
fn another_source_is_nobodys_drift() {
    let host = Host::with(
        "graph: g\nresources:\n  file:\n  - {name: one, path: $DIR/one, source: from}\n  - {name: all, path: $DIR/all/, source: tree/, recurse: true}\n",
    );
    host.write("from", "1")
        .make_directory("tree")
        .make_directory("tree/in")
        .write("tree/in/x", "1");
    host.apply().exits(0).prints("changed file[one]").prints("changed file[all]");
    let is_copied = |text: &str| host.read("one") == text && host.read("all/in/x") == text;

    host.write("from", "2").write("tree/in/x", "2");
    let again = host.apply();
    again.exits(0).prints("changed file[one]").prints("changed file[all]");
    assert!(is_copied("2") && again.stdout.matches(", corrective)").count() == 0, "{again}");
    let kept = host.ask_daemon(&["state", "show", "file[one]"]);
    kept.exits(0).prints("has copied files").prints_nothing_of("has received values");

    // The source was replaced with equal content.
    host.write("new", "2").rename("new", "from").write("new", "2").rename("new", "tree/in/x");
    host.append("one", "drift").append("all/in/x", "drift");
    let again = host.apply();
    assert!(is_copied("2") && again.stdout.matches(", corrective)").count() == 2, "{again}");

    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for (number, text) in (1..).zip(["3", "4"]) {
        // A source that is written in place can be copied while it is empty, which is one more change.
        host.write("new", text).rename("new", "from").write("new", text).rename("new", "tree/in/x");
        host.wait_until("both are copied", || is_copied(text));
        host.wait_until("and told", || daemon.count("changed") >= 2 * number);
    }
    let corrective = || {
        let is_of = |line: &&crate::daemon::Line| line.message.contains(", corrective");
        daemon.log().iter().filter(is_of).count()
    };
    assert_eq!(corrective(), 0, "{:#?}", daemon.log());
    host.append("one", "drift").append("all/in/x", "drift");
    host.wait_until("that is", || corrective() == 2);
}

/// E-20: the first copied file and the last removed one are no drift; purged files are reported.
#[test]
fn a_source_that_was_empty_is_nobodys_drift() {
    let host = Host::with(
        "graph: g\nresources:\n  file:\n  - {name: joined, path: $DIR/joined, fragments: [parts/]}\n  - {name: all, path: $DIR/all/, source: tree/, recurse: true, purge: true}\n",
    );
    host.make_directory("parts").make_directory("tree").apply().exits(0);
    let changes = || {
        let apply = host.apply();
        apply.exits(0).prints("changed file[joined]").prints("changed file[all]");
        apply.stdout.matches(", corrective)").count()
    };
    host.write("parts/x", "x").write("tree/x", "x");
    assert_eq!(changes(), 0);
    host.remove("parts/x").remove("tree/x");
    assert_eq!(changes(), 0);
    host.append("joined", "drift").write("all/stray", "x").chmod("all/stray", 0o600);
    host.plan().exits(0).prints("removed: stray: sensitive: not recorded, cannot be restored");
    assert_eq!(changes(), 2);
    assert!(host.read("joined").is_empty() && !host.exists("all/stray"));
}

/// E-20: a copy whose source a later command changes is updated by the next apply, and the change is no drift.
#[test]
fn a_source_that_is_changed_behind_its_copy_is_nobodys_drift() {
    let host = Host::with(
        r#"
graph: g
resources:
  file:
  - {name: copy, path: $DIR/copy, source: from, meta: {autoedge: false}}
  exec:
  - {name: later, after: "file[copy]", shell: /bin/sh, cmd: "echo 2 > $DIR/from"}
"#,
    );
    host.write("from", "1\n");
    host.apply().prints("changed_after_apply file[copy]");
    let again = host.apply();
    again.exits(0).prints("changed file[copy]");
    assert!(!again.stdout.contains("corrective"), "{again}");
    assert_eq!(host.read("copy"), "2\n");
}
