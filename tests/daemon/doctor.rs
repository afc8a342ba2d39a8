//! `steadfast doctor`: correct findings, and no changes.

use crate::host::{Host, is_root};
use crate::output::Output;
use serde_json::Value;
use std::os::unix::net::UnixListener;

const GRAPH: &str = "graph: well\nresources:\n  noop:\n  - {name: a}\n";

fn doctor(host: &Host, words: &[&str]) -> Output {
    let mut command = host.bare(&["doctor", "--json"]);
    command.arg("--state-dir").arg(host.path("state"));
    command.args(words.iter().map(|word| host.full(word)));
    host.finish(command)
}

/// Returns the grade and the text of one finding.
#[track_caller]
fn found(output: &Output, area: &str, name: &str) -> (String, String) {
    let all = output.json();
    let is_it = |one: &&Value| one["area"] == area && one["name"] == name;
    let findings = all["findings"].as_array().cloned().unwrap_or_default();
    for advice in findings.iter().filter_map(|one| one["advice"].as_str()) {
        assert!(advice.contains('`'), "each advice has a command to copy: {advice}");
    }
    let one = findings.iter().find(is_it).unwrap_or_else(|| panic!("no {area}: {name}\n{output}"));
    assert_eq!(one["advice"].is_null(), one["grade"] == "ok", "advice where it is needed: {one}");
    let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
    (text("grade"), text("found"))
}

/// Waits until the daemon listens on its socket.
fn wait_for_socket(host: &Host) {
    host.wait_until("the daemon listens", || host.exists("state/control.socket"));
}

/// Each grade has its exit code; without a daemon the doctor says so and creates nothing.
#[test]
fn without_a_daemon_it_looks_all_the_same() {
    let host = Host::with(GRAPH);
    let output = doctor(&host, &["$DIR/graph.yaml"]);
    output.exits(2);
    assert_eq!(output.json()["verdict"], "warning");
    assert_eq!(found(&output, "daemon", "daemon").0, "warning");
    assert_eq!(found(&output, "permissions", "state directory").0, "ok");
    assert_eq!(found(&output, "permissions", "graph").0, "ok");
    for (area, name) in [
        ("limits", "inotify watches"),
        ("limits", "inotify instances"),
        ("limits", "inotify queue"),
        ("limits", "open files"),
        ("limits", "threads"),
        ("file systems", "kind"),
        ("file systems", "space"),
        ("file systems", "sync"),
        ("packages", "lock"),
    ] {
        let (grade, says) = found(&output, area, name);
        assert!(["ok", "warning"].contains(&grade.as_str()) && !says.is_empty(), "{output}");
    }
    assert!(!host.exists("state"), "it has made the state directory");
    let mut command = host.bare(&["doctor"]);
    command.arg("--state-dir").arg(host.path("state"));
    host.finish(command).exits(2).prints("daemon\n  warning  daemon: no daemon listens at");
}

/// For a running daemon, the doctor reports whether it answers, its version, and its number of watches.
#[test]
fn a_daemon_is_found_and_compared() {
    let host =
        Host::with("graph: well\nresources:\n  file:\n  - {name: a, path: $DIR/a, content: x}\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    wait_for_socket(&host);
    let output = doctor(&host, &[]);
    let (grade, says) = found(&output, "daemon", "daemon");
    assert_eq!((grade.as_str(), says.contains("runs graph well")), ("ok", true), "{output}");
    assert_eq!(found(&output, "daemon", "version").0, "ok");
    let (_, says) = found(&output, "limits", "watches in use");
    assert!(!says.starts_with("0 of"), "{output}");
    assert!(found(&output, "limits", "open files").1.contains("the daemon"), "{output}");
    assert_eq!(found(&output, "permissions", "socket").0, "ok");
}

/// S-11: a graph that others can write, or whose folder they can write, is a problem; so is a state directory open to
/// others.
#[test]
fn files_writable_by_others_are_a_problem() {
    let host = Host::with(GRAPH);
    host.make_directory("open").write("open/graph.yaml", GRAPH).chmod("open", 0o777);
    let (grade, says) =
        found(doctor(&host, &["$DIR/open/graph.yaml"]).exits(1), "permissions", "graph");
    assert_eq!((grade.as_str(), says.contains("is writable by others (mode")), ("problem", true));
    // In a sticky folder only one's own entry is safe, as this one is.
    host.chmod("open", 0o1777);
    assert_eq!(found(&doctor(&host, &["$DIR/open/graph.yaml"]), "permissions", "graph").0, "ok");
    host.chmod("open/graph.yaml", 0o666);
    let output = doctor(&host, &["$DIR/open/graph.yaml"]);
    assert_eq!(found(output.exits(1), "permissions", "graph").0, "problem");
    // A folder is as safe as each graph inside, links of other users included.
    host.make_directory("links");
    std::os::unix::fs::symlink(host.path("graph.yaml"), host.path("links/graph.yaml"))
        .expect("linked");
    let graph = |name: &str| found(&doctor(&host, &[name]), "permissions", "graph");
    assert_eq!(graph("$DIR/links").0, "ok");
    std::os::unix::fs::lchown(host.path("links/graph.yaml"), Some(1234), None).expect("given away");
    for name in ["$DIR/links", "$DIR/links/graph.yaml"] {
        let (grade, says) = graph(name);
        assert_eq!((grade.as_str(), says.contains("belongs to uid 1234")), ("problem", true));
    }
    host.make_directory("state").chmod("state", 0o755);
    let output = doctor(&host, &[]);
    let (grade, says) = found(output.exits(1), "permissions", "state directory");
    assert_eq!((grade.as_str(), says.contains("mode 0755")), ("problem", true), "{output}");
    host.chmod("state", 0o700).write("state/control.socket", "not a socket");
    let output = doctor(&host, &[]);
    assert_eq!(found(output.exits(1), "permissions", "socket").0, "problem");
}

/// Guards that no event checks are named with the fields that correct it; watched or polled guards are not.
#[test]
fn guards_without_events_are_a_warning() {
    let graph = |more: &str| {
        format!(
            "graph: g\nresources:\n  exec:\n  - {{name: blind, cmd: /bin/true, ifcmd: /bin/true}}\n{more}"
        )
    };
    let seen = "  - {name: seen, cmd: /bin/true, ifcmd: /bin/true, watchfiles: [/etc/passwd]}\n\
                \x20 - {name: polled, cmd: /bin/true, ifcmd: /bin/true, meta: {poll: 30}}\n\
                \x20 - {name: once, cmd: /bin/true}\n";
    let host = Host::with(&graph(seen));
    let (grade, says) = found(&doctor(&host, &["$DIR/graph.yaml"]), "settings", "guards");
    assert_eq!(grade, "warning");
    assert!(says.contains("exec[blind]:") && !says.contains("more"), "{says}");
}

/// A daemon that never answers is a problem, reported within seconds.
#[test]
fn a_daemon_that_hangs_is_a_problem() {
    let host = Host::with(GRAPH);
    host.make_directory("state").chmod("state", 0o700);
    let _listener = UnixListener::bind(host.path("state/control.socket")).expect("bound");
    let output = doctor(&host, &[]);
    let (grade, says) = found(output.exits(1), "daemon", "daemon");
    assert_eq!((grade.as_str(), says.contains("did not respond")), ("problem", true), "{output}");
}

/// A state directory in memory is a warning, since it is lost at a reboot.
#[test]
fn state_in_memory_is_a_warning() {
    let host = Host::with(GRAPH);
    let output = host.finish(host.bare(&["doctor", "--json", "--state-dir", "/dev/shm/none/x"]));
    let (grade, says) = found(&output, "file systems", "kind");
    assert_eq!((grade.as_str(), says.contains("tmpfs")), ("warning", true), "{output}");
}

/// The doctor works without root.
#[test]
fn it_works_without_root() {
    assert!(is_root(), "this test must run as root");
    let host = Host::of_nobody(GRAPH);
    let output = doctor(&host, &["$DIR/graph.yaml"]);
    output.exits(2);
    assert_eq!(found(&output, "permissions", "user").0, "warning");
    assert_eq!(found(&output, "permissions", "state directory").0, "ok");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    wait_for_socket(&host);
    assert_eq!(found(&doctor(&host, &[]), "daemon", "version").0, "ok");
}

/// B3: the settings are parsed, and their graph is checked.
#[test]
fn settings_and_their_graph_are_checked() {
    let host = Host::with(GRAPH);
    host.write("steadfast.yaml", "graph: graph.yaml\n");
    let config = ["--config", "$DIR/steadfast.yaml"];
    let output = doctor(&host, &config);
    assert_eq!(found(&output, "settings", "settings").0, "ok");
    let (grade, says) = found(&output, "settings", "graph");
    assert_eq!((grade.as_str(), says.as_str()), ("ok", "graph well is valid: 1 resources"));
    host.graph(&GRAPH.replace("noop:", "nop:"));
    let (grade, says) = found(&doctor(&host, &config), "settings", "graph");
    assert!(grade == "problem" && says.contains("graph.yaml:3:"), "{says}");
    host.write("steadfast.yaml", "graph: graph.yaml\nwacth: true\n");
    let output = doctor(&host, &config);
    output.exits(1);
    let (grade, says) = found(&output, "settings", "settings");
    assert!(grade == "problem" && says.contains("steadfast.yaml:2:1"), "{says}");
}
