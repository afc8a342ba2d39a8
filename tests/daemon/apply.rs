//! `apply`: its changes and their order, its output, and its exit codes.

use crate::host::Host;
use std::os::unix::fs::MetadataExt as _;

const FILES: &str = r#"
graph: files
resources:
  file:
  - {name: deep, path: $DIR/a/b/c/deep, content: "deep\n", mode: 0640, after: "file[c]"}
  - {name: link, path: $DIR/link, symlink: a/b/c/deep, after: "file[deep]"}
  - {name: c, path: $DIR/a/b/c/, after: "file[b]"}
  - {name: b, path: $DIR/a/b/, mode: 0750, after: "file[a]"}
  - {name: gone, path: $DIR/gone, state: absent}
edges:
- {name: e, from: {kind: file, name: a}, to: {kind: file, name: b}}
"#;

fn files() -> String {
    FILES.replace("  - {name: gone,", "  - {name: a, path: $DIR/a/}\n  - {name: gone,")
}

/// The graph is written from the bottom up, so that only the edges give the right order.
#[test]
fn a_graph_of_files_from_nothing_is_made_right_and_in_order() {
    let host = Host::with(&files());
    host.write("gone", "x").apply().exits(0).ends_with_line("done: files: 6 resources, 6 changed");
    assert_eq!(host.read("a/b/c/deep"), "deep\n");
    assert_eq!(host.read("link"), "deep\n");
    let modes = ["a", "a/b", "a/b/c", "a/b/c/deep"].map(|name| host.mode(name));
    assert_eq!(modes, [0o755, 0o750, 0o755, 0o640]);
    assert!(!host.exists("gone"));
}

#[test]
fn changes_are_printed_in_graph_order() {
    let host = Host::with(&files());
    host.apply().exits(0).prints_in_order(&[
        "changed file[a]: created",
        "changed file[b]: created",
        "changed file[c]: created",
        "changed file[deep]: created",
        "changed file[link]",
        "done: files: 6 resources, 5 changed",
    ]);
}

/// F-17: the second apply changes nothing and says so.
#[test]
fn the_second_apply_changes_nothing() {
    let host = Host::with(&files());
    host.apply().exits(0);
    let before = host.metadata("a/b/c/deep");
    host.ask(&["apply", "--detailed-exitcode"])
        .exits(0)
        .ends_with_line("done: files: 6 resources, 0 changed");
    let after = host.metadata("a/b/c/deep");
    assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
}

#[test]
fn detailed_exit_codes_tell_of_changes() {
    let host = Host::with(&files());
    host.ask(&["plan", "--detailed-exitcode"]).exits(2);
    host.ask(&["apply", "--detailed-exitcode"]).exits(2);
    host.ask(&["plan", "--detailed-exitcode"]).exits(0);
    host.write("a/b/c/deep", "else");
    host.plan().exits(0);
    host.ask(&["plan", "--detailed-exitcode"]).exits(2);
    host.apply().exits(0);
}

#[test]
fn apply_answers_in_json() {
    let host = Host::with(&files());
    let answer = host.ask(&["apply", "--json"]);
    let json = answer.exits(0).json();
    assert_eq!((&json["verdict"], &json["changed"]), (&"done".into(), &5.into()), "{answer}");
    let states = json["resources"].as_array().expect("a list");
    assert!(states.iter().all(|r| r["state"] == "converged"), "{answer}");
    assert_eq!(states.len(), 6);
}

#[test]
fn noop_changes_nothing_and_says_what_would_be() {
    let host = Host::with(&files());
    host.write("gone", "x");
    host.ask(&["apply", "--noop"]).exits(0).prints("held file[a]: would change");
    assert!(host.exists("gone") && !host.exists("a"));
    host.ask(&["apply", "--noop", "--detailed-exitcode"]).exits(2);
    host.ask(&["apply", "--dry-run"]).exits(0);
    assert!(host.exists("gone") && !host.exists("a"));
}

#[test]
fn only_and_skip_choose() {
    let host = Host::with(&files());
    host.write("gone", "x");
    host.ask(&["apply", "--skip", "file[gone]", "--only", "file[a],file[gone]"]).exits(0);
    assert!(host.exists("a") && host.exists("gone") && !host.exists("a/b"));
    host.ask(&["apply", "--only=file[gone]"]).exits(0).prints("changed file[gone]");
    assert!(!host.exists("gone") && !host.exists("a/b"));
    host.ask(&["apply", "--only=file[nowhere]"]).exits(65).says("nowhere");
    host.ask(&["apply", "--skip=file"])
        .exits(65)
        .says("--only and --skip together select no resource");
    assert!(!host.exists("a/b"));
}

/// Two resources change one object: the difference found by the last check is reported.
#[test]
fn a_difference_after_apply_is_reported() {
    let host = Host::with(
        r#"
graph: contention
resources:
  file: [{name: f, path: $DIR/f, content: "a\n"}]
  exec: [{name: e, shell: /bin/sh, cmd: "echo b > $DIR/f", after: "file[f]"}]
"#,
    );
    host.apply()
        .exits(1)
        .prints("changed_after_apply file[f]: differs again after the apply: content")
        .ends_with_line("failed:");
}

#[test]
fn a_graph_comes_from_standard_input_too() {
    let host = Host::with("graph: unused\n");
    host.write("text", host.full("graph: read\nresources: {file: [{name: $DIR/f}]}\n"));
    let mut command = host.bare(&["apply", "--state-dir", "$DIR/state", "-"]);
    command.stdin(std::fs::File::open(host.path("text")).expect("there"));
    host.finish(command).exits(0).ends_with_line("done: read: 1 resource, 1 changed");
    assert!(host.exists("f"));
}

/// R-13: apply ends when all is done, and its exit code tells the result.
#[test]
fn a_folder_is_one_graph() {
    let host = Host::with("graph: unused\n");
    host.make_directory("folder");
    host.write("folder/1.yaml", host.full("graph: two\nresources: {file: [{name: $DIR/1}]}\n"));
    host.write(
        "folder/2.yaml",
        host.full("resources: {file: [{name: $DIR/2, after: \"file[$DIR/1]\"}]}\n"),
    );
    let command = host.bare(&["apply", "--state-dir", "$DIR/state", "$DIR/folder"]);
    host.finish(command).exits(0).ends_with_line("done: two: 2 resources, 2 changed");
    assert!(host.exists("1") && host.exists("2"));
}
