//! `steadfast events` for people: times, the states of a drift, sessions, and details.

use crate::daemon::Daemon;
use crate::host::Host;
use serde_json::Value;

const GRAPH: &str = r#"
graph: words
resources:
  file: [{name: a, path: $DIR/a, content: "x", mode: 0640}]
"#;

fn json(host: &Host, words: &[&str]) -> Vec<Value> {
    let output = host.ask_daemon(&[&["events", "--json", "--since", "1"], words].concat());
    let lines = output.exits(0).stdout.lines();
    lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Waits until a changed event is recorded, and stops the daemon.
fn drifted() -> Host {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.chmod("a", 0o600);
    host.wait_until("the repair is recorded", || {
        json(&host, &[]).iter().filter(|event| event["event"] == "changed").count() == 2
    });
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
    host
}

/// Each line has the local time, and a repair has the states before and after. `-n` counts the shown events; worker
/// events come with `--debug` only.
#[test]
fn lines_have_times_and_the_states_of_a_drift() {
    let host = drifted();
    let all = host.ask_daemon(&["events", "--since", "1"]);
    all.exits(0).prints("changed file[a]: mode: 0600 -> 0640 (").prints(", corrective)");
    all.prints_nothing_of("worker_started").prints_nothing_of("-0 s");
    for line in all.stdout.lines().filter(|line| !line.starts_with(' ')) {
        let time = line.get(..19).unwrap_or_default();
        let time: Result<jiff::civil::DateTime, _> = time.parse();
        assert!(time.is_ok() && line.get(19..21) == Some("  "), "expected a time: {line}");
    }
    let lines = |words: &[&str]| host.ask_daemon(words).exits(0).stdout.lines().count();
    assert_eq!(lines(&["events", "-n", "3"]), 3);
    host.ask_daemon(&["events", "--debug"]).exits(0).prints("worker_started: driver");
    let relative = host.ask_daemon(&["events", "--relative", "-n", "1"]);
    assert!(relative.exits(0).stdout.trim_start().starts_with('-'), "{relative}");
    host.ask_daemon(&["events", "-f", "--relative"]).exits(64);
}

/// A repair that fails, once with a retry and then for good, shows the states before and after that it was to change.
/// An intentional change that fails shows none: its old state is no drift.
#[test]
fn a_failed_repair_has_the_states_of_its_drift() {
    let host = Host::with(
        r#"
graph: words
resources:
  file:
  - name: a
    path: $DIR/a
    content: "x"
    mode: 0644
    validate: [sh, -c, "test ! -e $DIR/blocked", "%s"]
    meta: {retry: 1, delay: 10ms}
  - {name: new, path: $DIR/new, content: "x", validate: [sh, -c, "test -e $DIR/blocked", "%s"]}
"#,
    );
    let mut daemon = host.run(&[]);
    daemon.wait_for_of("failed", "file[new]");
    host.write("blocked", "");
    // A name that is replaced has all differences at once.
    host.write("edited", "edited");
    host.chmod("edited", 0o664);
    host.rename("edited", "a");
    daemon.wait_for_of("failed", "file[a]");
    let of = |name: &str, resource: &str| {
        let events = json(&host, &[resource]).into_iter();
        events.filter(|event| event["event"] == name).collect::<Vec<Value>>()
    };
    host.wait_until("the failure is recorded", || !of("failed", "file[a]").is_empty());
    let drift = "; drift: content: 6 bytes -> 1 bytes, mode: 0664 -> 0644";
    for name in ["retrying", "failed"] {
        let events = of(name, "file[a]");
        let [event] = &events[..] else { panic!("expected one event {name}, found {events:?}") };
        let change = &event["data"]["change"];
        assert_eq!(change["class"], "corrective", "{event}");
        let mode = serde_json::json!({"aspect": "mode", "from": "0664", "to": "0644"});
        assert!(change["differences"].as_array().is_some_and(|all| all.contains(&mode)), "{event}");
        assert!(event["message"].as_str().is_some_and(|text| text.ends_with(drift)), "{event}");
    }
    let [failed] = &of("failed", "file[new]")[..] else { panic!("expected one failure") };
    assert_eq!(failed["data"]["change"]["class"], "intentional", "{failed}");
    assert!(!failed["message"].to_string().contains("drift:"), "{failed}");
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// A followed event has its time too.
#[test]
fn a_followed_event_has_its_time() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    let mut command = host.bare(&["events", "-f"]);
    command.arg("--state-dir").arg(host.path("state"));
    let follower = std::thread::spawn({
        let child = command.spawn().expect("started");
        move || child.wait_with_output().expect("ended")
    });
    host.wait_until("the follower has connected", || {
        host.remove("a");
        host.wait_until("the repair", || host.exists("a"));
        json(&host, &[]).iter().filter(|event| event["event"] == "changed").count() > 3
    });
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
    let output = follower.join().expect("no panic");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("  changed file[a]: "), "{text}");
    assert!(!text.contains("-0 s") && text.starts_with("20"), "{text}");
}

/// The start and the end of a session name the command, the graph, the user and the result.
#[test]
fn a_session_names_command_graph_user_and_result() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    let events = json(&host, &[]);
    let (start, end) = (&events[0], events.last().expect("an end"));
    let session = &start["data"];
    assert_eq!((&start["event"], &session["command"]), (&"run_start".into(), &"apply".into()));
    assert!(
        session["graph"][0].as_str().is_some_and(|path| path.ends_with("graph.yaml")),
        "{start}"
    );
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(session["user"]["uid"], uid);
    assert_eq!((&end["event"], &end["data"]["result"]), (&"run_end".into(), &"succeeded".into()));
    assert_eq!((&end["data"]["session"], &end["data"]["run"]), (session, &start["number"]));
    let words = end["message"].as_str().expect("words");
    assert!(
        words.starts_with("apply of ") && words.contains(": succeeded: apply ended"),
        "{words}"
    );
}

/// C-18: a recorder with `debug: true` gets debug events, numbered without a gap; another recorder gets none.
#[test]
fn a_recorder_that_asks_gets_debug_events() {
    let host = Host::with(GRAPH);
    let settings = "graph: graph.yaml\nstate_dir: state\nlog: json\nrecorders:\n\
                    - file: {path: all.jsonl, debug: true}\n- file: {path: usual.jsonl}\n";
    host.write("steadfast.yaml", settings);
    let command = host.bare(&["run", "--config", "$DIR/steadfast.yaml"]);
    let mut daemon = Daemon::start(command, &host.path(""));
    daemon.wait_for("converged");
    host.wait_until("a repair", || {
        host.remove("a");
        host.wait_until("the repair", || host.exists("a"));
        json(&host, &["--debug"])
            .iter()
            .any(|event| event["event"] == "unchanged" || event["event"] == "started")
    });
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
    let levels = |name: &str| -> Vec<(u64, bool)> {
        let events = host.lines(name).into_iter();
        let events = events.map(|line| serde_json::from_str::<Value>(&line).expect("JSON"));
        let each =
            events.map(|one| (one["number"].as_u64().expect("a number"), one["level"] == "debug"));
        each.collect()
    };
    let (all, usual) = (levels("all.jsonl"), levels("usual.jsonl"));
    assert!(all.iter().any(|(_, is_debug)| *is_debug), "{all:?}");
    assert!(all.windows(2).all(|two| two[0].0 + 1 == two[1].0), "contiguous: {all:?}");
    assert!(!usual.is_empty() && usual.iter().all(|(_, is_debug)| !is_debug), "{usual:?}");
}
