//! The daemon under stress: a stop during a restart, a pause over restarts, excessive requests, no free descriptors.

use crate::daemon::Daemon;
use crate::hangs::Stopped;
use crate::host::{Host, LIMIT, ends, is_root};
use crate::workers::{fault, runs_again};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;

const GRAPH: &str = r#"
graph: endured
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

fn held(flags: &[&str]) -> (Host, Daemon) {
    let host = Host::with(GRAPH);
    let daemon = host.run(flags);
    daemon.wait_for("converged");
    (host, daemon)
}

/// P-1, F-12: a stop ends in time while a driver starts and waits for an unresponsive store; nothing more is run.
/// Root only (ptrace).
#[test]
fn a_stop_while_the_driver_is_being_started_ends() {
    assert!(is_root(), "this test must run as root");
    let (host, mut daemon) = held(&[]);
    let stopped = Stopped::thread(&daemon, "journal");
    fault(&host, "driver", "panic");
    host.wait_until("another one waits", || {
        host.ask_daemon(&["status"])
            .stderr
            .contains("the driver is starting; try again in a moment")
    });
    host.ask_daemon(&["stop"]).exits(0);
    host.ask_daemon(&["stop", "--now"]);
    assert!(
        daemon.wait_for("stop_timeout").message.ends_with("were abandoned: store"),
        "it is named"
    );
    drop(stopped);
    daemon.ends_after_panics(LIMIT);
}

/// Returns the remaining seconds of the general pause and of a resource's pause.
fn pauses(host: &Host) -> (u64, u64) {
    let status = host.ask_daemon(&["status", "--json"]).stdout;
    let status: Value = serde_json::from_str(&status).unwrap_or_default();
    let left = |value: &Value| value["ends_in"].as_u64().unwrap_or_default();
    (left(&status["pause"]), left(&status["paused"][0]["pause"]))
}

/// E-15, F-19: a pause lasts as long as requested, even longer than the default, over a crash of the driver and `kill
/// -9`.
#[test]
fn a_pause_is_as_long_as_was_asked_for() {
    let (host, mut daemon) = held(&["--pause-limit", "60"]);
    host.ask_daemon(&["pause", "--for", "2h", "file[a]"]).exits(0);
    host.ask_daemon(&["pause", "--for", "1d"]).exits(0);
    daemon.wait_for("paused");
    fault(&host, "driver", "error");
    runs_again(&host, "driver", 2);
    let is_kept = |(all, one)| (86_000..=86_400).contains(&all) && (7000..=7200).contains(&one);
    host.wait_until("both are kept", || is_kept(pauses(&host)));
    daemon.kill();
    daemon = host.run(&["--pause-limit", "60"]);
    daemon.wait_for("paused");
    assert!(is_kept(pauses(&host)), "{:?}", pauses(&host));
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// `wait` also waits for a daemon that is not running yet and for one that recovers; without a timeout it reports a
/// missing daemon at once.
#[test]
fn wait_waits_for_a_starting_and_a_recovering_daemon() {
    let host = Host::with(GRAPH);
    host.ask_daemon(&["wait"]).exits(69).says("no daemon listens");
    host.ask_daemon(&["wait", "--timeout", "1"]).exits(69).says("no daemon listens");
    let mut command = host.bare(&["wait", "--timeout", "60"]);
    command.arg("--state-dir").arg(host.path("state"));
    let mut waits = command.spawn().expect("started");
    let mut daemon = host.run(&[]);
    assert_eq!(ends(&mut waits, LIMIT), 0);
    for starts in 2..5 {
        fault(&host, "driver", "error");
        host.ask_daemon(&["wait", "--timeout", "60"]).exits(0).prints("converged: endured");
        runs_again(&host, "driver", starts);
    }
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// Returns the first reply line to a request in the form that another program could send.
fn answer(host: &Host, ask: &Value) -> String {
    let socket = UnixStream::connect(host.path("state/control.socket")).expect("it listens");
    writeln!(&socket, "{}", json!({ "protocol": 1, "request": ask })).expect("sent");
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).expect("an answer");
    line
}

/// S-12: excessive durations are rejected, and the driver is unaffected.
#[test]
fn a_time_without_end_is_refused() {
    let (host, daemon) = held(&[]);
    for seconds in [0, 31_536_001, u64::MAX] {
        for ask in [
            json!({ "verb": "pause", "seconds": seconds, "reason": "r", "resources": [] }),
            json!({ "verb": "pause", "seconds": seconds, "reason": "r", "resources": ["file[a]"] }),
            json!({ "verb": "undo", "resource": "file[a]", "to": null, "seconds": seconds }),
        ] {
            let line = answer(&host, &ask);
            assert!(line.contains("refused") && line.contains("(a year)"), "{ask}: {line}");
        }
    }
    assert_eq!(daemon.count("paused"), 0);
    host.ask_daemon(&["status"]).exits(0).prints_nothing_of("driver");
    host.ask(&["run", "--pause-limit", "31536001"]).exits(64).says("31536000");
}

/// A client that leaves keeps its search: many such clients occupy one thread, and repairs go on.
#[test]
fn searches_of_clients_that_left_occupy_one_thread() {
    let name = |number| format!("  - {{name: {}-{number}}}", "a".repeat(150));
    let names = (0..3000).map(name).collect::<Vec<_>>().join("\n");
    let host = Host::with(&format!(
        "graph: many\nresources:\n  file: [{{name: a, path: $DIR/a, content: x}}]\n  noop:\n{names}\n"
    ));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let threads =
        || std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("it runs").count();
    let before = threads();
    let pattern = format!("noop[*{}z]", "a*".repeat(100));
    let ask = json!({ "verb": "select", "resources": vec![pattern; 50], "limit": 1 });
    for _ in 0..40 {
        let socket = UnixStream::connect(host.path("state/control.socket")).expect("it listens");
        writeln!(&socket, "{}", json!({ "protocol": 1, "request": ask })).expect("sent");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(threads() <= before + 4, "{before} threads before, {} now", threads());
    host.write("a", "broken");
    host.wait_until("it is put back", || host.read("a") == "x");
}

/// An endless command ends when its reader is gone.
#[test]
fn streaming_commands_end_with_their_reader() {
    let (host, mut daemon) = held(&[]);
    for words in [&["events", "-f"][..], &["status", "--watch"]] {
        let mut command = host.bare(words);
        command.arg("--state-dir").arg(host.path("state"));
        let mut follows = command.spawn().expect("started");
        let mut line = String::new();
        let mut reader = BufReader::new(follows.stdout.take().expect("piped"));
        reader.read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "{words:?} told something");
        drop(reader);
        host.write("a", "broken");
        host.wait_until("it is put back", || host.read("a") == "x");
        assert_eq!(ends(&mut follows, LIMIT), 0, "{words:?}");
    }
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// F-10: without a free descriptor no client is accepted, which is logged once; with free descriptors all are
/// accepted.
#[test]
fn no_room_for_callers_is_said_and_passes() {
    let (host, daemon) = held(&[]);
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).expect("small"));
    let maximum = getrlimit(Resource::Nofile).maximum;
    let may_open = |current| {
        prlimit(pid, Resource::Nofile, Rlimit { current, maximum }).expect("set");
    };
    may_open(Some(3));
    let socket = UnixStream::connect(host.path("state/control.socket")).expect("it listens");
    assert!(
        daemon
            .wait_for("accept_failed")
            .message
            .contains("no connections can be accepted at the socket; retrying"),
        "it is said"
    );
    may_open(Some(1024));
    host.ask_daemon(&["status"]).exits(0);
    assert_eq!(daemon.count("accept_failed"), 1);
    drop(socket);
}

/// `events` shows debug events on request.
#[test]
fn debug_events_have_the_details_of_a_fault() {
    let (host, daemon) = held(&[]);
    let follow = |words: &[&str]| {
        let mut command = host.bare(words);
        command.arg("--state-dir").arg(host.path("state"));
        command.spawn().expect("started")
    };
    let mut all = [follow(&["events", "-f", "--debug"]), follow(&["events", "-f"])];
    let readers = all.each_mut().map(|child| BufReader::new(child.stdout.take().expect("piped")));
    let [mut debug, mut usual] = readers;
    let is_told = |reader: &mut dyn BufRead, what: &str| {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "{what} is told before the end");
        line.contains(what)
    };
    // Both streams are open: their first events have arrived.
    for reader in [&mut debug as &mut dyn BufRead, &mut usual] {
        while !is_told(reader, "converged") {}
    }
    host.write("a", "broken");
    while !is_told(&mut debug, "started file[a]") {}
    let mut line = String::new();
    while !line.contains("changed file[a]") {
        line.clear();
        usual.read_line(&mut line).expect("a line");
        assert!(!line.contains("started file[a]"), "without being asked: {line}");
    }
    drop(daemon);
    for child in &mut all {
        assert!(child.wait().is_ok());
    }
}
