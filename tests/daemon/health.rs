//! The health of the daemon itself, in `status` beside the verdict on the resources, and during a stop.

use crate::daemon::Daemon;
use crate::host::Host;
use crate::receiver::{Answer, Receiver};
use crate::workers::{fault, runs_again};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::time::{Duration, Instant};

const GRAPH: &str = r#"
graph: health
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

fn json(host: &Host, command: &str) -> Value {
    serde_json::from_str(&host.ask_daemon(&[command, "--json"]).stdout).unwrap_or_default()
}

/// F-19: a worker that failed, once or repeatedly, is shown for an hour although it runs; verdict and exit code are
/// about the resources.
#[test]
fn a_worker_that_broke_is_told() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["status"]).exits(0).prints_nothing_of("daemon:");
    for starts in 2..=3 {
        fault(&host, "graph", "panic");
        runs_again(&host, "graph", starts);
    }
    fault(&host, "signals", "error");
    runs_again(&host, "signals", 2);
    host.ask_daemon(&["status"])
        .exits(0)
        .prints("health: converged")
        .prints(
            "daemon: graph: failed 2 times within an hour: the worker panicked: a fault was put into it",
        )
        .prints("daemon: signals: failed once, less than a minute ago: a fault was put into it");
    let status = json(&host, "status");
    let parts = status["daemon"].as_array().expect("a list");
    let parts: Vec<_> = parts.iter().map(|one| (&one["part"], &one["condition"])).collect();
    let unsteady = |part: &str| (Value::from(part), Value::from("unsteady"));
    let expected = ["graph", "signals"].map(unsteady);
    assert_eq!(parts, expected.iter().map(|(part, ill)| (part, ill)).collect::<Vec<_>>());
    assert_eq!(status["verdict"], "converged");
    host.ask_daemon(&["workers"]).prints("graph: running, 3 starts, failed 2 times within an hour");
    host.ask_daemon(&["stop"]).exits(0);
    daemon.ends_after_panics(crate::host::LIMIT);
}

/// A history that cannot be written is shown until it can be written again.
#[test]
fn a_history_that_cannot_be_written_is_told() {
    let host = Host::with(GRAPH);
    host.make_directory("state").chmod("state", 0o700).write("state/history", "in the way");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["status"]).exits(0).prints("daemon: history: cannot be written: cannot use");
    assert_eq!(json(&host, "status")["daemon"][0]["condition"], "write-failed");
    host.remove("state/history").remove("a");
    host.wait_until("it is put back", || host.read("a") == "x");
    host.wait_until("it is written again", || {
        !host.ask_daemon(&["status"]).stdout.contains("daemon: history")
    });
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// Starts a daemon with a recorder whose server does not answer.
fn stalled(host: &Host) -> Daemon {
    let receiver = Receiver::new(&[], Answer::Stall);
    let url = &receiver.url;
    let settings = format!(
        "graph: graph.yaml\nstate_dir: state\nlog: json\nrecorders:\n- webhook: {{url: \"{url}\", timeout: 1}}\n"
    );
    host.write("steadfast.yaml", host.full(&settings));
    let daemon =
        Daemon::start(host.bare(&["run", "--config", "$DIR/steadfast.yaml"]), &host.path(""));
    daemon.wait_for("converged");
    // The recorder has something to send now.
    host.wait_until("it is tried", || !receiver.came().is_empty());
    daemon
}

/// Returns the state of the worker whose name begins with this text.
fn state(report: &Value, name: &str) -> String {
    let mut workers = report["workers"].as_object().into_iter().flatten();
    let found = workers.find(|(worker, _)| worker.starts_with(name));
    found.map_or_else(String::new, |(_, worker)| {
        worker["state"].as_str().unwrap_or_default().to_owned()
    })
}

/// P-1, A-43: while a recorder flushes during a stop, the socket answers: the report and `status` name the recorder,
/// and the log names workers that were late.
#[test]
fn the_socket_outlives_who_flushes() {
    let host = Host::with(GRAPH);
    let mut daemon = stalled(&host);
    host.ask_daemon(&["stop"]).exits(0);
    let mut seen = Value::Null;
    host.wait_until("it flushes", || {
        seen = json(&host, "workers");
        state(&seen, "recorder:webhook") == "stopping"
    });
    let of = |name: &str| state(&seen, name);
    assert_eq!(
        [of("driver"), of("store"), of("graph"), of("control"), of("signals")],
        ["stopped", "stopped", "stopped", "running", "running"]
    );
    assert_eq!(seen["state"], "stopping");
    host.ask_daemon(&["status"])
        .exits(1)
        .says("the daemon is stopping: waiting for")
        .says("recorder:webhook");
    assert_eq!(daemon.ends(), 0);
    let log = daemon.log();
    let late = log.iter().find(|line| line.message.contains("unsent events remain"));
    assert!(late.is_some_and(|line| line.message.contains("webhook")), "{log:?}");
}

/// F-12, P-1: a second stop request does not wait for a recorder, and signals are handled all the time.
#[test]
fn a_second_request_waits_for_no_recorder() {
    let host = Host::with(GRAPH);
    let mut daemon = stalled(&host);
    daemon.signal(Signal::SIGTERM);
    host.wait_until("it flushes", || {
        state(&json(&host, "workers"), "recorder:webhook") == "stopping"
    });
    let began = Instant::now();
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}
