//! State commands without a daemon: recorded as a daemon records them; a rejected undo leaves nothing behind.

use crate::host::Host;
use crate::output::Output;
use serde_json::Value;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

const GRAPH: &str = r#"
graph: alone
resources:
  file:
  - {name: made, path: $DIR/made, content: "made\n", meta: {on_remove: delete}}
  exec: [{name: once, shell: /bin/sh, cmd: "true"}]
"#;

/// Returns the events from a number on: event, resource and text.
fn events(host: &Host, since: usize) -> Vec<Value> {
    let told = host.ask_daemon(&["events", "--json", "--debug", "--since", &since.to_string()]);
    let lines = told.exits(0).stdout.lines();
    lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The commands in order, each with its event and its resource.
const COMMANDS: [(&[&str], &str, &str); 7] = [
    (&["protect", "file[made]"], "protected", "file[made]"),
    (&["unprotect", "file[made]"], "unprotected", "file[made]"),
    (&["retry", "--persist", "exec[once]"], "retried", "exec[once]"),
    (&["undo", "file[made]"], "undone", "file[made]"),
    (&["forget", "file[made]"], "forgotten", "file[made]"),
    (&["state", "import", "$DIR/kept.json"], "imported", ""),
    (&["state", "repair"], "repaired", ""),
];

fn break_it(host: &Host) {
    rusqlite::Connection::open(host.path("state/state.db"))
        .and_then(|database| database.execute_batch("UPDATE whole SET sum = sum + 1"))
        .expect("damaged");
}

fn before() -> Host {
    let host = Host::with(GRAPH);
    host.write("made", "mine\n").apply().exits(0);
    host.ask_daemon(&["state", "export", "$DIR/kept.json"]).exits(0);
    host
}

/// C-11: without a daemon each command is recorded between a start and an end of its own; rejected commands and those
/// without effect are not.
#[test]
fn c11_commands_without_a_daemon_are_recorded() {
    let host = before();
    let mut known = events(&host, 1).len();
    for (words, event, resource) in COMMANDS {
        if words == ["state", "repair"] {
            break_it(&host);
        }
        host.ask_daemon(words).exits(0);
        let told = events(&host, known + 1);
        let what: Vec<&str> = told.iter().filter_map(|one| one["event"].as_str()).collect();
        assert_eq!((what.first(), what.last()), (Some(&"run_start"), Some(&"run_end")), "{told:?}");
        let deeds: Vec<&Value> = told.iter().filter(|one| one["event"] == event).collect();
        assert_eq!(deeds.len(), 1, "{words:?}: {told:?}");
        assert_eq!(deeds[0]["resource"].as_str().unwrap_or_default(), resource, "{told:?}");
        assert!(deeds[0]["message"].as_str().is_some_and(|says| !says.is_empty()), "{told:?}");
        known += told.len();
        let last = told.last().expect("some");
        assert_eq!(last["number"], known, "without a hole");
        assert_eq!(last["data"]["result"], "stopped");
    }
    for (words, code) in [
        (&["unprotect", "file[made]"][..], 0),
        (&["undo", "file[none]"], 1),
        (&["forget", "file[none]"], 64),
        (&["state", "repair"], 0),
    ] {
        host.ask_daemon(words).exits(code);
    }
    assert_eq!(events(&host, 1).len(), known, "has never been applied");
}

/// C-11: with a daemon the commands are events of its session.
#[test]
fn c11_commands_beside_a_daemon_are_recorded() {
    let host = before();
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for (words, event, resource) in COMMANDS {
        if words[0] == "state" && words[1] == "import" {
            host.ask_daemon(&["pause"]).exits(0);
            daemon.wait_for("paused");
        }
        if words == ["state", "repair"] {
            // The state is sound, so the repair does nothing.
            continue;
        }
        host.wait_until("it is done", || host.ask_daemon(words).code == 0);
        host.wait_until("it is recorded", || {
            let told = events(&host, 1);
            told.iter().any(|one| {
                one["event"] == event && one["resource"].as_str().unwrap_or_default() == resource
            })
        });
    }
}

/// C-11: a command at a running daemon is recorded also if the client leaves before the reply.
#[test]
fn c11_a_command_is_recorded_even_if_its_client_leaves() {
    let host = before();
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let path = host.path("state/control.socket");
    host.wait_until("it listens", || path.exists());
    // One after the other: simultaneous requests have no order.
    for (order, event) in [
        ("protect", "protected"),
        ("unprotect", "unprotected"),
        ("retry", "retried"),
        ("forget", "forgotten"),
    ] {
        let (verb, persist) = if order == "retry" { ("retry", true) } else { (order, false) };
        let mut ask = serde_json::json!({"verb": verb, "resources": ["file[made]"]});
        if persist {
            ask["persist"] = true.into();
        }
        let mut socket = UnixStream::connect(&path).expect("it listens");
        let line = serde_json::json!({"protocol": 1, "request": ask});
        writeln!(socket, "{line}").expect("written");
        drop(socket);
        let is_it = |one: &Value| one["event"] == event && one["resource"] == "file[made]";
        host.wait_until(event, || events(&host, 1).iter().any(is_it));
        daemon.wait_for_of(event, "file[made]");
    }
}

/// C-11: a stop of the daemon interrupts an undo after its present step; the restored files are reported.
#[test]
fn c11_an_undo_that_the_end_cuts_off_is_told() {
    const MANY: usize = 3000;
    let host = Host::with(
        "graph: past\nresources:\n  file: [{name: t, path: $DIR/t/, source: from/, recurse: true, purge: true}]\n",
    );
    host.make_directory("from").make_directory("t");
    for number in 0..MANY {
        host.write(&format!("t/{number}"), "x");
    }
    host.apply().exits(0);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    let mut undo = host.bare(&["undo", "file[t]", "--state-dir", "$DIR/state"]);
    let mut undo = undo.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let back = || std::fs::read_dir(host.path("t")).expect("listed").count();
    host.wait_until("some are back", || back() > 10);
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);
    undo.wait().expect("it ends");
    let back = back();
    let told = events(&host, 1);
    let says = told.iter().find(|one| one["event"] == "undone").expect("it is told");
    let says = says["message"].as_str().unwrap_or_default();
    // On a fast machine the undo may have finished.
    assert_eq!(says.contains("not restored"), back < MANY, "{back}: {says}");
}

/// Returns the shown state of one resource.
fn shown(host: &Host, resource: &str) -> Output {
    let shown = host.ask_daemon(&["state", "show", resource]);
    shown.exits(0);
    shown
}

/// B-6: a partly failed undo names the restored parts and leaves no pause; an earlier pause stays as it was.
#[test]
fn an_undo_that_fails_takes_its_pause_back() {
    let host = Host::with(
        "graph: past\nresources:\n  file: [{name: t, path: $DIR/t/, source: from/, recurse: true, purge: true}]\n",
    );
    for name in ["from", "t", "t/deep"] {
        host.make_directory(name);
    }
    host.write("from/new", "new\n").write("t/a", "a\n");
    host.apply().exits(0);
    assert!(!host.exists("t/a") && !host.exists("t/deep"));
    host.make_directory("t/a").write("t/a/in-the-way", "x");
    let undo = || {
        let refused = host.ask_daemon(&["undo", "file[t]"]);
        refused.exits(1).says("the directory is not empty").says("restored: $DIR/t/deep");
    };
    undo();
    let halves = |said: &Value| {
        let says = said["message"].as_str().unwrap_or_default();
        said["event"] == "undone" && says.contains("t/deep") && says.contains("not restored")
    };
    let told = || events(&host, 1).into_iter().filter(halves).count();
    assert_eq!(told(), 1, "what was put back is told");
    assert!(host.exists("t/deep"));
    shown(&host, "file[t]").prints_nothing_of("paused");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["pause", "file[t]", "--for", "9h", "--reason", "somebody looks"]).exits(0);
    daemon.wait_for_of("paused", "file[t]");
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);
    let before = shown(&host, "file[t]").prints("somebody looks").stdout.clone();
    host.ask_daemon(&["undo", "file[t]", "--to", "1"]);
    assert_eq!(shown(&host, "file[t]").stdout, before);
}
