//! The history of commands with their output, the declaration and the last output in `show`, and the plan of an undo.

use crate::host::Host;
use serde_json::Value;

const GRAPH: &str = r#"
graph: past
resources:
  file:
  - {name: motd, path: $DIR/motd, content: "declared\n", mode: 0644}
  exec:
  - {name: loud, shell: /bin/sh, cmd: "echo out; echo err >&2"}
"#;

fn entries(host: &Host, words: &[&str]) -> Vec<Value> {
    let words: Vec<&str> = ["history", "--json"].iter().chain(words).copied().collect();
    let listed = host.ask_daemon(&words);
    listed.exits(0);
    listed.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A run of a command is in the history with its exit code and its output; no undo is offered for it.
#[test]
fn commands_are_recorded_with_their_output() {
    let host = Host::with(GRAPH);
    host.apply();
    host.ask_daemon(&["history", "exec[loud]"])
        .exits(0)
        .prints("exec[loud]  ran: exit 0  load")
        .prints_in_order(&["stdout: out", "stderr: err"]);
    let listed = entries(&host, &["loud"]);
    assert_eq!((&listed[0]["cause"], &listed[0]["class"]), (&"load".into(), &"intentional".into()));
    host.ask_daemon(&["undo", "exec[loud]"]).exits(1).says("the run of a command cannot be undone");
}

/// Two lines of one file are written in one step: the first has the entry of the file, and the second names it.
#[test]
fn parts_of_one_file_are_in_the_history_of_each_resource() {
    let host = Host::with(
        r"
graph: past
resources:
  line:
  - {name: first, path: $DIR/f, line: one, create: true}
  - {name: second, path: $DIR/f, line: two, create: true}
",
    );
    host.apply();
    assert_eq!(host.read("f"), "one\ntwo\n");
    host.ask_daemon(&["history", "line[first]"]).exits(0).prints("/f (did not exist)");
    host.ask_daemon(&["history", "line[second]"]).exits(0).prints("/f, in one step with ");
    host.ask_daemon(&["undo", "line[second]"])
        .exits(1)
        .says("the change has its entry under another resource");
    host.ask_daemon(&["undo", "line[first]"]).exits(0);
    assert!(!host.path("f").exists());
}

/// The cause of a repair has a class; `-n`, `--since` and `--relative` shape the list.
#[test]
fn the_list_is_limited_by_number_and_time() {
    let host = Host::with(GRAPH);
    host.write("motd", "mine\n");
    let daemon = host.run(&[]);
    daemon.wait_for_of("changed", "file[motd]");
    host.write("motd", "edited\n");
    host.wait_until("it is repaired", || entries(&host, &["file[motd]"]).len() == 2);
    let listed = entries(&host, &["file[motd]"]);
    assert_eq!(listed[1]["class"], "corrective", "{listed:?}");
    assert_eq!(entries(&host, &["file[motd]", "-n", "1"]).len(), 1);
    assert_eq!(entries(&host, &["file[motd]", "--since", "1h"]).len(), 2);
    let second = listed[1]["number"].to_string();
    assert_eq!(entries(&host, &["file[motd]", "--since", &second]).len(), 1);
    host.ask_daemon(&["history", "motd", "--relative"]).exits(0).prints(" s ago  file[motd]");
    host.ask_daemon(&["history", "motd"]).exits(0).prints(", corrective");
}

/// `show` has the declaration with its place and without content, and the last output of a command.
#[test]
fn show_has_the_declaration_and_the_last_output() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for_of("changed", "exec[loud]");
    host.ask_daemon(&["show", "motd"]).exits(0).prints_in_order(&[
        "declared at: $DIR/graph.yaml:5",
        "{name: motd, path: $DIR/motd, content: (not shown)",
    ]);
    host.wait_until("the run is recorded", || !entries(&host, &["exec[loud]"]).is_empty());
    host.ask_daemon(&["show", "loud"]).exits(0).prints_in_order(&[
        "last run: exit 0 (",
        "stdout: out",
        "stderr: err",
    ]);
}

/// `undo --plan` shows the state that would be restored, and restores nothing.
#[test]
fn the_plan_of_an_undo_changes_nothing() {
    let host = Host::with(GRAPH);
    host.write("motd", "mine\n").chmod("motd", 0o604);
    host.apply();
    host.ask_daemon(&["undo", "motd", "--plan"]).exits(0).prints_in_order(&[
        "undo of file[motd]: 1 object to restore",
        "~ $DIR/motd: a file of 5 bytes, 0604",
        "the state is that before change ",
        "dependents are not notified",
    ]);
    assert_eq!(host.read("motd"), "declared\n");
    host.ask_daemon(&["undo", "none", "--plan"]).exits(64).says("no recorded changes of none");
}
