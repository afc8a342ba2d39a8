//! Aliases and the history: a renamed resource keeps its entries (B-18 in full).

use crate::host::Host;
use crate::output::Output;
use nix::sys::signal::Signal::SIGHUP;
use std::process::Command;

/// Returns a graph of one file with this name, path, content and further fields.
fn file(name: &str, path: &str, content: &str, more: &str) -> String {
    format!(
        "graph: names\nresources:\n  file: [{{name: {name}, path: $DIR/{path}, content: \"{content}\\n\"{more}}}]\n"
    )
}

/// Runs a command on the recorded history of this host.
fn past(host: &Host, words: &[&str]) -> Output {
    let mut command = host.bare(words);
    command.arg("--state-dir").arg(host.path("state"));
    host.finish(command)
}

/// Returns the number of changes recorded under this name.
fn kept(host: &Host, name: &str) -> usize {
    let listed = past(host, &["history", &format!("file[{name}]"), "--json"]);
    listed.stdout.lines().filter(|line| line.contains("\"number\"")).count()
}

fn copy(host: &Host, from: &str, to: &str) {
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(host.path(from)).arg(host.path(to));
    assert!(copy.status().expect("run").success());
}

/// Asserts that all commands show the old changes under the new name, and none under the old one.
fn is_followed(host: &Host) {
    assert_eq!((kept(host, "old"), kept(host, "new")), (0, 2));
    past(host, &["history"]).prints("file[new]");
    let at = past(host, &["show", "file[new]", "--at", "1"]);
    assert_eq!(at.stdout, "mine\n", "{at}");
    past(host, &["diff", "file[new]", "1"]).exits(0).prints_in_order(&["-mine", "+two"]);
    past(host, &["undo", "file[old]"])
        .exits(1)
        .says("no recorded changes of file[old]; renamed to file[new]");
    assert_eq!(host.read("f"), "two\n", "the new name's is not undone by the old one");
    past(host, &["undo", "file[new]"]).exits(0);
    assert_eq!(host.read("f"), "one\n");
    past(host, &["undo", "file[new]", "--to", "1"]).exits(0);
    assert_eq!(host.read("f"), "mine\n");
}

/// Creates a file that was changed twice under its old name.
fn changed_twice() -> Host {
    let host = Host::with(&file("old", "f", "one", ""));
    host.write("f", "mine\n").apply().exits(0);
    host.graph(&file("old", "f", "two", ""));
    host.apply().exits(0);
    host
}

const ALIAS: &str = ", aliases: [old]";

/// B-18: an apply that renames a resource moves its history.
#[test]
fn the_history_goes_with_a_rename_by_apply() {
    let host = changed_twice();
    host.graph(&file("new", "f", "two", ALIAS));
    host.apply().exits(0).prints("0 changed");
    is_followed(&host);
}

/// B-18: a daemon moves the history at its start and at a reload.
#[test]
fn the_history_goes_with_a_rename_beside_a_daemon() {
    let host = changed_twice();
    host.graph(&file("between", "f", "two", ALIAS));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it moves at a start", || kept(&host, "between") == 2);
    daemon.skip_to_now();
    host.graph(&file("new", "f", "two", ", aliases: [between, old]"));
    daemon.signal(SIGHUP).wait_for("loaded");
    daemon.wait_for("converged");
    host.wait_until("it moves at a reload", || kept(&host, "new") == 2);
    is_followed(&host);
}

/// F-1, B-18: state and history are two databases; if a crash loses the rename in one of them, the next start
/// completes the rename.
#[test]
fn a_rename_that_a_crash_cut_in_two_is_made_good() {
    for lost in ["history", "state.db"] {
        let host = changed_twice();
        copy(&host, "state", "before");
        host.graph(&file("new", "f", "two", ALIAS));
        host.apply().exits(0);
        let mut remove = Command::new("rm");
        remove.arg("-r").arg(host.path(&format!("state/{lost}")));
        assert!(remove.status().expect("run").success());
        copy(&host, &format!("before/{lost}"), &format!("state/{lost}"));
        host.apply().exits(0).prints("0 changed");
        is_followed(&host);
    }
}

/// B-18: the history of a new resource under the old name stays its own, although the alias is still declared.
#[test]
fn a_name_that_is_used_again_keeps_its_own_history() {
    let host = changed_twice();
    host.graph(&file("new", "f", "two", ALIAS));
    host.apply().exits(0);
    host.graph(&file("old", "other", "declared", ""));
    host.write("other", "theirs\n").apply().exits(0);
    assert_eq!((kept(&host, "old"), kept(&host, "new")), (1, 2));
    host.graph(&file("new", "f", "two", ""));
    host.apply().exits(0);
    host.ask_daemon(&["forget", "file[old]"]).exits(0);
    for _ in 0..2 {
        host.graph(&file("new", "f", "two", ALIAS));
        host.apply().exits(0);
    }
    assert_eq!((kept(&host, "old"), kept(&host, "new")), (1, 2));
    past(&host, &["undo", "file[new]"]).exits(0);
    assert_eq!((host.read("f"), host.read("other")), ("one\n".to_owned(), "declared\n".to_owned()));
}

/// B-18: a new name with a history of its own keeps both apart: no undo acts on the other path.
#[test]
fn two_pasts_are_not_made_one() {
    let host = changed_twice();
    host.graph(&file("new", "g", "other", "")).write("g", "before\n");
    host.apply().exits(0);
    host.graph(&file("old", "f", "two", ""));
    host.apply().exits(0);
    host.graph(&file("new", "f", "two", ALIAS));
    host.apply().exits(0);
    assert_eq!((kept(&host, "old"), kept(&host, "new")), (2, 1));
    past(&host, &["undo", "file[new]"]).exits(0);
    assert_eq!((host.read("f"), host.read("g")), ("two\n".to_owned(), "before\n".to_owned()));
}
