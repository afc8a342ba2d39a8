//! F-19: each worker of the daemon fails and recovers; the others are unaffected, and nothing is lost.

use crate::host::{Host, LIMIT};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const GRAPH: &str = r#"
graph: workers
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

/// The workers that can fail; `control` is last, since it carries the requests.
const WORKERS: [&str; 9] =
    ["signals", "events", "lease", "store", "driver", "graph", "watchdog", "world", "control"];

/// Injects a fault into a worker of a daemon built for tests. The reply may be missing.
pub(crate) fn fault(host: &Host, worker: &str, how: &str) {
    let socket = host.path("state").join("control.socket");
    let mut socket = UnixStream::connect(socket).expect("it listens");
    let ask = serde_json::json!({ "verb": "fault", "worker": worker, "how": how });
    let order = serde_json::json!({ "protocol": 1, "request": ask });
    writeln!(socket, "{order}").expect("sent");
    let mut answer = String::new();
    BufReader::new(socket).read_line(&mut answer).expect("an answer, or the end");
    assert!(
        answer.is_empty() || !["refused", "unavailable"].iter().any(|no| answer.contains(no)),
        "{answer}"
    );
}

fn report(host: &Host) -> Value {
    serde_json::from_str(&host.ask_daemon(&["workers", "--json"]).stdout).unwrap_or_default()
}

pub(crate) fn runs_again(host: &Host, worker: &str, starts: u64) {
    host.wait_until(&format!("{worker} runs for the {starts}. time"), || {
        let worker = &report(host)["workers"][worker];
        worker["state"] == "running" && worker["starts"].as_u64() >= Some(starts)
    });
}

fn repairs(host: &Host) {
    host.write("a", "broken");
    host.wait_until("it is put back", || host.read("a") == "x");
}

/// Returns the number of starts of each worker.
pub(crate) fn starts(host: &Host) -> BTreeMap<String, u64> {
    let report = report(host);
    let workers = report["workers"].as_object().into_iter().flatten();
    workers.map(|(name, one)| (name.clone(), one["starts"].as_u64().unwrap_or_default())).collect()
}

/// Returns the workers that require this worker and restart with it.
fn needs(worker: &str) -> &'static [&'static str] {
    if worker == "store" { &["driver"] } else { &[] }
}

/// Injects a fault into each worker in turn and asserts that exactly it and its dependents restart.
fn each_heals(how: &str) {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("all run", || {
        let starts = starts(&host);
        WORKERS.iter().all(|worker| starts.get(*worker) == Some(&1))
    });
    let mut expected = starts(&host);
    for worker in WORKERS {
        fault(&host, worker, how);
        for broken in std::iter::once(&worker).chain(needs(worker)) {
            let count = expected.get_mut(*broken).expect("a worker");
            *count += 1;
            runs_again(&host, broken, *count);
        }
        repairs(&host);
        assert_eq!(starts(&host), expected, "a fault in {worker}: {how}");
    }
    daemon.skip_to_now();
    daemon.signal(Signal::SIGUSR1).wait_for("paused");
    daemon.signal(Signal::SIGUSR2).wait_for("resumed");
    daemon.signal(Signal::SIGHUP).wait_for("loaded");
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    host.ask_daemon(&["events"]).exits(0).prints("loaded");
    assert_eq!(starts(&host), expected, "nobody was started anew later");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.ends_after_panics(LIMIT), 0);
}

/// F-19, A-19: after a panic in each worker exactly it is restarted, the host stays converged, and signals and
/// commands work.
#[test]
fn each_worker_heals_of_a_panic() {
    each_heals("panic");
}

/// F-19, A-19: after an error in each worker exactly it is restarted, the host stays converged, and signals and
/// commands work.
#[test]
fn each_worker_heals_of_an_error() {
    each_heals("error");
}

/// F-19, E-6, E-9: the driver fails while a command runs. The command does not run twice at once, and its owed
/// refresh is delivered.
#[test]
fn a_driver_that_breaks_loses_no_refresh_and_runs_nothing_twice_at_once() {
    let host = Host::with(
        r#"
graph: owed
resources:
  file:
  - {name: a, path: $DIR/a, content: "1", notify: "exec[b]"}
  exec:
  - name: b
    cmd: echo begins >> $DIR/log; while [ ! -e $DIR/go ]; do sleep 0.05; done; echo ends >> $DIR/log
    shell: /bin/sh
    on_interrupt: rerun
"#,
    );
    let mut daemon = host.run(&[]);
    host.wait_until("it runs", || host.exists("log"));
    fault(&host, "driver", "panic");
    host.wait_for_lines("log", 2);
    assert_eq!(host.lines("log"), ["begins", "begins"], "the first was cut off, not left beside");
    // A shell that starts its `sleep` is two processes for a moment.
    host.wait_until("it runs once", || {
        host.processes().iter().filter(|(_, line)| line.contains("begins")).count() == 1
    });
    host.write("go", "");
    daemon.wait_for("converged");
    assert_eq!(host.lines("log"), ["begins", "begins", "ends"]);
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends_after_panics(LIMIT), 0);
}

/// A-43, P-1: hung workers do not prevent the daemon's end; a hung driver is named.
#[test]
fn hung_workers_are_left_behind() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    for worker in ["events", "graph", "watchdog", "store"] {
        fault(&host, worker, "hang");
    }
    fault(&host, "driver", "hang");
    host.ask_daemon(&["status"]).exits(1).says("the driver is busy and did not respond");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);
    daemon.wait_for("stop_timeout");
}

/// F-12, P-1: a hung driver is named; a second stop request does not wait for its ten seconds.
#[test]
fn a_driver_that_hangs_is_named_and_a_second_stop_is_at_once() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    fault(&host, "driver", "hang");
    host.ask_daemon(&["stop"]).exits(0);
    host.ask_daemon(&["stop", "--now"]).exits(0);
    assert_eq!(daemon.ends_within(Duration::from_secs(8)), 0);
    let line = daemon.wait_for("stop_timeout");
    assert!(line.message.contains("the driver hangs"), "{line:?}");
}
