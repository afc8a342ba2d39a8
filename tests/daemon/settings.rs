//! The settings file `/etc/steadfast/steadfast.yaml`, which applies where the command line is silent.

use crate::client_commands::status;
use crate::daemon::Daemon;
use crate::host::{Host, is_root};
use nix::sys::signal::Signal;

const GRAPH: &str = r#"
graph: by-settings
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

/// A daemon runs from its settings alone; the command line wins.
#[test]
fn settings_take_the_place_of_flags() {
    let host = Host::with(GRAPH);
    host.write("steadfast.yaml", "graph: graph.yaml\nstate_dir: state\nlog: json\nwatch: true\n");
    let config = ["--config", "$DIR/steadfast.yaml"];
    let command = host.bare(&[&["run"][..], &config].concat());
    let mut daemon = Daemon::start(command, &host.path(""));
    daemon.wait_for("converged");
    assert_eq!(host.read("a"), "x");
    assert!(host.exists("state/state.db"));
    // The daemon watches its graph.
    host.graph(&GRAPH.replace('x', "y"));
    daemon.wait_for("converged");
    assert_eq!(host.read("a"), "y");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);

    host.finish(host.bare(&[&["check"][..], &config].concat())).exits(0).prints("by-settings");
    let plan = host.finish(host.bare(&[&["plan"][..], &config].concat()));
    plan.exits(0);
    host.write("a", "broken");
    host.write("steadfast.yaml", "graph: graph.yaml\nstate_dir: state\ndefaults: {noop: true}\n");
    host.finish(host.bare(&[&["apply"][..], &config].concat()));
    assert_eq!(host.read("a"), "broken", "held by the defaults");
    let apply = [&["apply"][..], &config, &["$DIR/other.yaml"]].concat();
    host.write("other.yaml", host.full(&GRAPH.replace("a, path: $DIR/a", "b, path: $DIR/b")));
    host.finish(host.bare(&apply)).exits(0);
    assert!(!host.exists("b"), "named on the command line, with the defaults of the settings");
}

/// Wrong settings are rejected before the start, with their place.
#[test]
fn wrong_settings_start_nothing() {
    let host = Host::with(GRAPH);
    host.write("steadfast.yaml", "graph: graph.yaml\nsweeep: 3\n");
    let run = host.bare(&["run", "--config", "$DIR/steadfast.yaml"]);
    host.finish(run).exits(65).says("$DIR/steadfast.yaml:2:1").says("did you mean `sweep`?");
    assert!(!host.exists("a"));
    let run = host.bare(&["run", "--config", "$DIR/none.yaml"]);
    host.finish(run).exits(65).says("no such file or directory");
}

const BASE: &str = "graph: graph.yaml\nstate_dir: state\nlog: json\n";

/// Starts a daemon from its settings alone.
fn run(host: &Host) -> Daemon {
    Daemon::start(host.bare(&["run", "--config", "$DIR/steadfast.yaml"]), &host.path(""))
}

/// B3, J-40: a reload applies what a running daemon can change, recorders too, and names what needs a restart.
#[test]
fn a_reload_applies_changed_settings() {
    let host = Host::with(GRAPH);
    host.write("steadfast.yaml", BASE);
    let daemon = run(&host);
    daemon.wait_for("converged");
    host.ask_daemon(&["reload"]).exits(0).prints_nothing_of("settings applied");

    let more = "sweep: 7\nhistory: {max_total: 5MiB}\nrecorders: [{file: {path: events.jsonl}}]\nsocket: other.socket\n";
    host.write("steadfast.yaml", format!("{BASE}{more}"));
    host.ask_daemon(&["reload"])
        .exits(0)
        .prints("settings applied: sweep, history, recorders\n")
        .prints("settings that need a restart of steadfast: socket\n");
    daemon.wait_for("settings");
    host.ask_daemon(&["status"]).prints("daemon: settings: changed settings that need a restart");
    host.write("a", "edited");
    host.wait_until("the recorder gets the repair", || {
        host.read("events.jsonl").contains("\"changed\"")
    });

    // The recorder is removed, the graph replaced, and `noop` set.
    host.write("other.yaml", host.full(&GRAPH.replace("by-settings", "other")));
    let base = BASE.replace("graph.yaml", "other.yaml");
    host.write("steadfast.yaml", format!("{base}defaults: {{noop: true}}\n"));
    host.ask_daemon(&["reload"])
        .exits(0)
        .prints("loaded: graph other")
        .prints("settings applied: graph, defaults, sweep, history, recorders\n");
    host.ask_daemon(&["workers"]).exits(0).prints_nothing_of("recorder:");
    host.ask_daemon(&["status"]).prints_nothing_of("daemon:");
    host.write("a", "edited");
    daemon.wait_for_of("held", "file[a]");
    assert_eq!(host.read("a"), "edited", "noop by the new defaults");
}

/// B3: settings rejected at a reload change nothing: their place is reported, and the earlier settings and graph go
/// on.
#[test]
fn a_reload_rejects_wrong_settings() {
    let host = Host::with(GRAPH);
    host.write("steadfast.yaml", BASE);
    let daemon = run(&host);
    daemon.wait_for("converged");
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    host.write("steadfast.yaml", format!("{BASE}wacth: true\n"));
    host.graph(&GRAPH.replace("\"x\"", "\"y\""));
    host.ask_daemon(&["reload"]).exits(65).says("$DIR/steadfast.yaml:4:1").says("`watch`");
    daemon.signal(Signal::SIGHUP).wait_for("rejected");
    let shown = host.ask_daemon(&["status"]);
    shown.exits(65).prints("$DIR/steadfast.yaml:4:1");
    host.ask_daemon(&["wait"]).exits(65).says("steadfast.yaml:4:1");
    host.write("a", "edited");
    host.wait_until("it is put back", || host.read("a") == "x");
    // Settings with an unreadable graph are rejected too.
    let broken = BASE.replace("graph.yaml", "nosuch.yaml");
    host.write("steadfast.yaml", format!("{broken}sweep: 7\n"));
    host.ask_daemon(&["reload"]).exits(65).says("nosuch.yaml");
    assert_eq!(daemon.count("settings"), 0);
    host.write("steadfast.yaml", format!("{BASE}sweep: 7\n"));
    host.ask_daemon(&["reload"]).exits(0).prints("settings applied: sweep\n");
    host.wait_until("the new graph is applied", || host.read("a") == "y");
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    host.ask_daemon(&["status"]).exits(0);
}

/// B3: a start with rejected settings runs with the last-good ones and says so; so does a start with a missing graph
/// file.
#[test]
fn a_start_with_wrong_settings_runs_with_the_last_good_ones() {
    let host = Host::with(GRAPH);
    host.write("steadfast.yaml", format!("{BASE}sweep: 7\n"));
    let mut daemon = run(&host);
    daemon.wait_for("converged");
    host.wait_until("both are stored", || {
        host.exists("state/settings.json") && host.exists("state/graph.json")
    });
    assert_eq!(host.mode("state/settings.json"), 0o600);
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);

    for wrong in ["wacth: true\n", "sweep: [\n"] {
        host.write("steadfast.yaml", format!("{BASE}{wrong}"));
        host.write("a", "edited");
        let mut daemon = run(&host);
        let line = daemon.wait_for("last_good_settings");
        assert!(line.message.contains("running with the settings of 20"), "{line:?}");
        assert!(line.message.contains("steadfast.yaml:4:"), "{line:?}");
        daemon.wait_for("converged");
        assert_eq!(host.read("a"), "x");
        host.ask_daemon(&["status"])
            .exits(65)
            .prints("running with the settings of 20")
            .prints("$DIR/steadfast.yaml:4:");
        host.ask_daemon(&["wait"]).exits(65);
        host.ask_daemon(&["reload"]).exits(65).says("$DIR/steadfast.yaml:4:");
        host.write("steadfast.yaml", format!("{BASE}sweep: 7\n"));
        host.ask_daemon(&["reload"]).exits(0);
        host.ask_daemon(&["status"]).exits(0).prints_nothing_of("running with");
        daemon.signal(Signal::SIGTERM);
        assert_eq!(daemon.ends(), 0);
    }

    host.write("steadfast.yaml", BASE.replace("graph.yaml", "nosuch.d"));
    host.write("a", "edited");
    let daemon = run(&host);
    let line = daemon.wait_for("last_good_graph_used");
    assert!(line.message.contains("nosuch.d"), "{line:?}");
    daemon.wait_for("converged");
    assert_eq!(host.read("a"), "x");
    host.ask_daemon(&["status"]).exits(65).prints("nosuch.d");
    drop(daemon);
    // `--no-kept-graph` excludes the last-good settings too.
    host.write("steadfast.yaml", format!("{BASE}wacth: true\n"));
    let run = ["run", "--no-last-good-graph", "--config", "$DIR/steadfast.yaml"];
    host.finish(host.bare(&run)).exits(65).says("wacth");
}

/// B3: with `watch: true` a change of the settings file is noticed and applied.
#[test]
fn a_watched_settings_file_is_read_again() {
    let host = Host::with(GRAPH);
    let watched = format!("{BASE}watch: true\n");
    host.write("steadfast.yaml", &watched);
    let daemon = run(&host);
    daemon.wait_for("converged");
    host.write("steadfast.yaml", format!("{watched}sweep: 7\nlog_level: debug\n"));
    let line = daemon.wait_for("settings");
    assert_eq!(line.message, "settings applied: sweep, log_level");
    host.write("a", "edited");
    daemon.wait_for_of("started", "file[a]");
    host.write("steadfast.yaml", format!("{watched}wacth: true\n"));
    let line = daemon.wait_for("rejected");
    assert!(line.message.contains("steadfast.yaml:5:1"), "{line:?}");
    host.write("steadfast.yaml", &watched);
    host.wait_until("they are good again", || status(&host)["rejected"].is_null());
}

/// B2: a folder missing at the start is watched once it appears, and so is one on which something is mounted.
#[test]
fn a_folder_that_comes_back_is_watched_again() {
    let host = Host::with("graph: wt\n");
    let graph = |content: &str| {
        let text = format!(
            "graph: wt\nresources: {{file: [{{name: o, path: $DIR/out, content: {content}}}]}}\n"
        );
        host.write("d/g.yaml", host.full(&text));
    };
    let holds = |content: &str| {
        host.wait_until(content, || host.read("out") == content);
    };
    let start = || {
        let mut command = host.bare(&["run", "--watch", "--log", "json", "--state-dir"]);
        command.arg(host.path("state")).arg(host.path("d"));
        Daemon::start(command, &host.path(""))
    };
    host.make_directory("d");
    graph("five");
    let daemon = start();
    holds("five");
    host.wait_until("it is stored", || host.exists("state/graph.json"));
    daemon.kill();

    host.rename("d", "d.x");
    let daemon = start();
    daemon.wait_for("last_good_graph_used");
    daemon.wait_for("converged");
    host.rename("d.x", "d");
    host.wait_until("it is read", || status(&host)["fallback_reason"].is_null());
    for content in ["six", "seven"] {
        graph(content);
        holds(content);
    }
    // A file in place of the folder, and the folder again.
    host.rename("d", "d.x").write(
        "d",
        host.full("graph: wt\nresources: {file: [{name: o, path: $DIR/out, content: file}]}\n"),
    );
    holds("file");
    host.remove("d").rename("d.x", "d");
    holds("seven");
    graph("eight");
    holds("eight");
    if !is_root() {
        return;
    }
    // A mount causes no event in the folder below it.
    host.make_directory("late");
    host.write("late/g.yaml", host.read("d/g.yaml").replace("eight", "mounted"));
    let mounted = |words: &[&str]| {
        let mut command = std::process::Command::new(words[0]);
        command.args(&words[1..]).args((words.len() > 1).then(|| host.path("late")));
        command.arg(host.path("d")).status().is_ok_and(|status| status.success())
    };
    if mounted(&["mount", "--bind"]) {
        let unmount = Unmount(host.path("d"));
        holds("mounted");
        host.write("late/g.yaml", host.read("late/g.yaml").replace("mounted", "edited"));
        holds("edited");
        drop(unmount);
        holds("eight");
    }
}

/// A guard that unmounts at the end of a test.
struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let status = std::process::Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(status.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}
