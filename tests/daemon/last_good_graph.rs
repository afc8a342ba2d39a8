//! The last-good graph runs if the present one is rejected at a start.

use crate::host::{Host, LIMIT};
use crate::workers::{fault, runs_again};
use nix::sys::signal::Signal::{SIGHUP, SIGTERM};
use std::time::{Duration, Instant};

const GRAPH: &str = r#"
graph: good
resources:
  file:
  - {name: conf, path: $DIR/conf, content: "declared\n"}
  - {name: made, path: $DIR/made, meta: {on_remove: delete}}
  exec: [{name: once, shell: /bin/sh, cmd: "echo ran >> $DIR/ran"}]
"#;

const BROKEN: &str = "graph: good\nresources:\n  file:\n  - {name: conf, pth: $DIR/conf}\n";

/// After `kill -9`, a start with a broken file runs the last-good graph; the log and `status` give the reason with
/// its place. The next good graph replaces it and is stored. Repeated starts, as by systemd, behave the same.
#[test]
fn a_start_with_a_broken_graph_runs_the_one_before() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it is kept", || host.exists("state/graph.json"));
    assert_eq!(host.mode("state/graph.json") & 0o777, 0o600);
    host.ask_daemon(&["state", "show"]).exits(0).prints("generation 1: graph `good` (");
    host.graph(BROKEN);
    daemon.signal(SIGHUP).wait_for("rejected");
    daemon.kill();
    for broken in [Some(BROKEN), Some("\t"), None] {
        match broken {
            Some(text) => host.graph(text),
            None => host.remove("graph.yaml"),
        };
        host.write("conf", "mine\n");
        let daemon = host.run(&[]);
        let line = daemon.wait_for("last_good_graph_used");
        assert!(
            line.message.starts_with("running the last-good graph `good`, accepted at 20"),
            "{line:?}"
        );
        assert!(line.message.contains("graph.yaml"), "{line:?}");
        daemon.wait_for("converged");
        assert_eq!(host.read("conf"), "declared\n");
        assert!(host.exists("made"));
        let mut status = host.bare(&["status"]);
        status.arg("--state-dir").arg(host.path("state"));
        let status = host.finish(status);
        status.exits(65);
        let lines: Vec<&str> = status.stdout.lines().collect();
        assert!(lines[0].starts_with("good: converged"), "the verdict first: {status}");
        assert!(
            lines[1].starts_with("  running the last-good graph `good`, accepted at"),
            "{status}"
        );
        if broken == Some(BROKEN) {
            status.prints("graph.yaml:4:").prints("pth");
        }
        daemon.kill();
    }
    assert_eq!(host.lines("ran").len(), 1);
    let mut daemon = host.run(&[]);
    daemon.wait_for("last_good_graph_used");
    daemon.wait_for("converged");
    host.graph(&GRAPH.replace("graph: good", "graph: better"));
    daemon.signal(SIGHUP).wait_for("loaded");
    host.wait_until("it is kept", || host.read("state/graph.json").contains("graph: better"));
    host.ask_daemon(&["state", "show"]).exits(0).prints("generation 2: graph `better` (");
    let mut status = host.bare(&["status"]);
    status.arg("--state-dir").arg(host.path("state"));
    host.finish(status).exits(0).prints_nothing_of("running the last-good graph `");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
}

/// Without a stored graph, with `--no-kept-graph`, or with other file names, a broken graph ends the start.
#[test]
fn a_broken_graph_is_refused_where_none_is_kept() {
    let host = Host::with(BROKEN);
    host.ask(&["run"]).exits(65).says("pth");
    host.graph(GRAPH);
    let mut daemon = host.run(&["--no-last-good-graph"]);
    daemon.wait_for("converged");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    assert!(!host.exists("state/graph.json"));
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it is kept", || host.exists("state/graph.json"));
    let kept = host.metadata("state/graph.json").modified().expect("a time");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    host.graph(BROKEN);
    host.ask(&["run", "--no-last-good-graph"]).exits(65).says("pth");
    host.write("other.yaml", BROKEN);
    host.ask(&["run", "$DIR/other.yaml"]).exits(65).says("pth");
    host.ask(&["apply"]).exits(65).says("pth");
    host.graph(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let mut status = host.bare(&["wait", "--timeout", "60"]);
    status.arg("--state-dir").arg(host.path("state"));
    host.finish(status).exits(0);
    let now = host.metadata("state/graph.json").modified().expect("a time");
    assert_eq!(kept, now, "the same graph is not written again");
}

/// A driver that restarts after a panic runs the last accepted graph: later edits, valid or not, wait for a reload.
#[test]
fn a_driver_that_starts_anew_applies_no_edit() {
    for flag in [None, Some("--no-last-good-graph")] {
        let host = Host::with(GRAPH);
        let mut daemon = host.run(flag.as_slice());
        daemon.wait_for("converged");
        if flag.is_none() {
            host.wait_until("it is kept", || host.exists("state/graph.json"));
        }
        let edited = GRAPH.replace("declared", "edited");
        for (starts, text) in [(2, &*edited), (3, BROKEN), (4, &*edited)] {
            host.graph(text);
            daemon.skip_to_now();
            fault(&host, "driver", "panic");
            runs_again(&host, "driver", starts);
            daemon.wait_for("loaded");
            host.write("conf", "mine\n");
            host.wait_until("it is put back", || host.read("conf") == "declared\n");
        }
        assert_eq!(daemon.count("last_good_graph_used") + daemon.count("rejected"), 0);
        assert_eq!(host.lines("ran").len(), 1);
        daemon.signal(SIGHUP);
        host.wait_until("a reload takes it", || host.read("conf") == "edited\n");
        daemon.signal(SIGTERM);
        assert_eq!(daemon.ends_after_panics(LIMIT), 0);
    }
}

/// A read-only daemon, by option or because of a damaged state, stores no graph: the last-good one stays.
#[test]
fn a_read_only_daemon_stores_no_graph() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it is kept", || host.exists("state/graph.json"));
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    let kept = host.read("state/graph.json");
    host.graph(&GRAPH.replace("graph: good", "graph: looked_at"));
    for (flag, is_damaged) in [(Some("--noop"), false), (None, true)] {
        if is_damaged {
            host.write("state/state.db", "no database, but long enough to be read. ".repeat(100));
            daemon = host.run(&[]);
            daemon.wait_for("read_only");
        } else {
            daemon = host.run(flag.as_slice());
        }
        daemon.wait_for("loaded");
        let began = Instant::now();
        host.wait_until("it had the time", || began.elapsed() > Duration::from_secs(1));
        assert_eq!(host.read("state/graph.json"), kept, "{flag:?}");
        daemon.signal(SIGTERM);
        daemon.ends();
    }
}

/// B-17: a graph that drops a protected resource during a restart of the driver is rejected by the new driver too,
/// and the last accepted graph goes on; the same holds at a start. The reason is shown until a graph is accepted.
#[test]
fn a_graph_that_a_new_driver_refuses_leaves_no_host_alone() {
    let protected = GRAPH.replace("on_remove: delete", "protect: true");
    let without =
        GRAPH.replace("  - {name: made, path: $DIR/made, meta: {on_remove: delete}}\n", "");
    let host = Host::with(&protected);
    let mut daemon = host.run(&[]);
    let holds = |daemon: &crate::daemon::Daemon| {
        let refused = daemon.wait_for("rejected");
        assert!(
            refused.message.contains("protected resources are missing from the new graph"),
            "{refused:?}"
        );
        daemon.wait_for("loaded");
        host.write("conf", "mine\n");
        host.wait_until("it is put back", || host.read("conf") == "declared\n");
        let status = host.ask_daemon(&["status"]);
        status.exits(65).prints("protected resources are missing from the new graph: file[made]");
        assert!(host.exists("made"));
    };
    daemon.wait_for("converged");
    host.wait_until("it is kept", || host.exists("state/graph.json"));
    daemon.skip_to_now();
    host.graph(&without);
    // The next driver starts a second after this.
    fault(&host, "driver", "panic");
    daemon.signal(SIGHUP);
    holds(&daemon);
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends_after_panics(LIMIT), 0);
    let mut daemon = host.run(&[]);
    holds(&daemon);
    host.graph(&protected.replace("graph: good", "graph: better"));
    daemon.signal(SIGHUP).wait_for("loaded");
    let is_over =
        || !host.ask_daemon(&["status"]).stdout.contains("running the last-good graph `good`");
    host.wait_until("the one before is no longer named", is_over);
    host.ask_daemon(&["status"]).exits(0).prints_nothing_of("protected");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    assert_eq!(host.lines("ran").len(), 1);
}

/// An accepted graph that could not be stored, as on a full disk, is stored as soon as that is possible: a start with a
/// broken graph file must not run an older graph.
#[test]
fn an_accepted_graph_is_stored_at_a_later_attempt() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("the graph is stored", || host.exists("state/graph.json"));
    // Nothing can be written at this name.
    host.make_directory("state/graph.json.new");
    host.graph(&GRAPH.replace("declared", "later"));
    daemon.signal(SIGHUP);
    let is_told = |line: &crate::daemon::Line| line.message.contains("graph could not be stored");
    assert!(daemon.line_or_end("the graph cannot be stored", is_told).is_some());
    assert!(!host.read("state/graph.json").contains("later"));
    std::fs::remove_dir(host.path("state/graph.json.new")).expect("removed");
    host.wait_until("the graph is stored", || host.read("state/graph.json").contains("later"));
    host.graph(BROKEN);
    daemon.kill();
    let daemon = host.run(&[]);
    daemon.wait_for("last_good_graph_used");
    daemon.wait_for("converged");
    assert_eq!(host.read("conf"), "later\n");
}

/// A restarted driver does not forget that the newest graph is rejected.
#[test]
fn a_restarted_driver_remembers_a_rejection() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.graph(BROKEN);
    daemon.signal(SIGHUP).wait_for("rejected");
    fault(&host, "driver", "panic");
    daemon.wait_for("rejected");
    host.wait_until("the status names the rejection", || host.ask_daemon(&["status"]).code == 65);
    host.graph(GRAPH);
    daemon.signal(SIGHUP).wait_for("loaded");
    host.wait_until("the rejection is over", || host.ask_daemon(&["status"]).code == 0);
}

/// A damaged last-good graph never reaches the host: its checksum does not match. `state verify` names it, and
/// `state repair` moves it aside.
#[test]
fn a_damaged_last_good_graph_is_not_run() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it is kept", || host.exists("state/graph.json"));
    daemon.kill();
    let stored = host.read("state/graph.json");
    assert!(stored.contains("declared"), "{stored}");
    host.write("state/graph.json", stored.replace("declared", "declarxd"));
    host.ask_daemon(&["state", "verify"])
        .exits(1)
        .prints("graph.json: its checksum does not match");
    host.graph(BROKEN);
    let mut daemon = host.run(&[]);
    assert_ne!(daemon.ends_within(Duration::from_secs(30)), 0);
    assert_eq!(host.read("conf"), "declared\n");
    host.ask_daemon(&["state", "repair"]).exits(0).prints("moved to");
    host.ask_daemon(&["state", "verify"]).exits(0).prints("intact");
    host.graph(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it is kept again", || host.exists("state/graph.json"));
}
