//! Commands about unknown targets: none of the last events, unknown resources, missing states, and another daemon's
//! socket.

use crate::host::Host;
use crate::output::Output;

const GRAPH: &str = "graph: known
resources:
  file:
  - {name: left, path: $DIR/left, content: \"declared\\n\"}
  - {name: same, path: $DIR/same, content: \"same\\n\"}
";

/// Creates a host with a replaced file and an unchanged one.
fn made() -> Host {
    let host = Host::with(GRAPH);
    host.write("left", "mine\n").write("same", "same\n").chmod("same", 0o644);
    host.apply().exits(0);
    host
}

fn is_silent(output: &Output) {
    output.exits(0);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""), "{output}");
}

/// A limit of zero (`events -n 0`, `history --most 0`) prints nothing, with and without a daemon.
#[test]
fn none_of_the_last_are_none() {
    let host = made();
    let ask = || {
        is_silent(&host.ask_daemon(&["events", "-n", "0"]));
        is_silent(&host.ask_daemon(&["events", "-n", "0", "--json"]));
        is_silent(&host.ask_daemon(&["events", "file[left]", "-n", "0"]));
        is_silent(&host.ask_daemon(&["history", "--limit", "0"]));
        assert_eq!(host.ask_daemon(&["events", "-n", "1"]).exits(0).stdout.lines().count(), 1);
    };
    ask();
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    ask();
}

/// An unknown resource is reported on stderr as a failure; a known one without records is not.
#[test]
fn a_resource_that_nobody_knows_is_said_to_be_none() {
    let host = made();
    let ask = || {
        for command in ["events", "history"] {
            for name in ["nonsense", "file[lefd]"] {
                for json in [&[][..], &["--json"]] {
                    let words: Vec<&str> = [command, name].iter().chain(json).copied().collect();
                    let asked = host.ask_daemon(&words);
                    asked.exits(1).says(&format!("no such resource: {name}"));
                    assert_eq!(asked.stdout, "", "{asked}");
                }
            }
            host.ask_daemon(&[command, "file[lefd]"]).says("did you mean file[left]?");
            host.ask_daemon(&[command, "file[left]"]).exits(0).prints("file[left]");
        }
        let nothing = "no changes are recorded";
        host.ask_daemon(&["history", "file[same]"]).exits(0).prints(nothing);
        let nothing = "no recorded event matches";
        host.ask_daemon(&["events", "file[same]"]).exits(0).says(nothing);
        let later = ["events", "file[left]", "--since", "999999"];
        host.ask_daemon(&later).exits(0).says(nothing);
    };
    ask();
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    ask();
}

/// An undo of a resource that the last graph no longer declares does not claim that `apply` of that graph reverts it,
/// nor that no graph declares it: a resource declared absent has the same records.
#[test]
fn an_undo_of_what_has_left_its_graph_is_not_put_back() {
    let back = "`steadfast apply` of the same graph reverses the undo";
    let host = made();
    let declared = host.ask_daemon(&["undo", "file[left]"]);
    declared.exits(0).prints(back).prints("is paused for");
    host.apply().exits(0);
    assert_eq!(host.read("left"), "declared\n", "and so it does");
    let host = made();
    let (kept, _) = GRAPH.split_once("  - {name: left").expect("it has that");
    host.graph(&format!("{kept}  - {{name: same, path: $DIR/same, content: \"same\\n\"}}\n"));
    host.apply().exits(0);
    let left = host.ask_daemon(&["undo", "file[left]"]);
    left.exits(0)
        .prints("$DIR/left: content")
        .prints("a graph that declares it would reverse the undo");
    left.prints_nothing_of(back).prints_nothing_of(
        "no known graph declares the resource; a graph that does would reverse the undo",
    );
    host.apply().exits(0);
    assert_eq!(host.read("left"), "mine\n", "nobody puts it back");
    host.graph(GRAPH).apply().exits(0);
    assert_eq!(host.read("left"), "declared\n", "but a graph that has it");
}

/// A second daemon is rejected with that message alone, as commands never reached it.
#[test]
fn a_second_daemon_says_its_refusal_alone() {
    let host = made();
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for form in ["human", "json"] {
        let second = host.ask(&["run", "--log", form]);
        second.exits(75).says("another steadfast is running on $DIR/state");
        let lines: Vec<&str> = second.stderr.lines().collect();
        assert_eq!((lines.len(), second.stdout.as_str()), (2, ""), "{second}");
        assert!(lines[0].starts_with("error: ") && lines[1].starts_with("hint: "), "{second}");
    }
}

/// A daemon whose socket belongs to another daemon says that commands cannot reach it.
#[test]
fn a_daemon_whose_socket_is_anothers_says_so() {
    let host = made();
    let first = host.run(&[]);
    first.wait_for("converged");
    let mut command = host.bare(&["run", "--log", "json", "--state-dir", "$DIR/other"]);
    command.arg("--socket").arg(host.path("state/control.socket")).arg(host.path("graph.yaml"));
    let second = crate::daemon::Daemon::start(command, &host.path(""));
    let warned = second.wait_for("control");
    assert!(warned.message.contains("commands cannot reach this daemon"), "{warned:?}");
}

/// A missing state is not shown as an empty one.
#[test]
fn a_state_that_is_not_there_is_not_shown_as_empty() {
    let host = Host::with(GRAPH);
    for words in [&["state", "show"][..], &["state", "show", "--json"], &["state", "verify"]] {
        let shown = host.ask_daemon(words);
        shown.exits(64).says("no state in $DIR/state");
        assert_eq!(shown.stdout, "", "{shown}");
    }
    assert!(!host.exists("state"), "and none is made");
}
