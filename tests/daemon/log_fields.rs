//! Log lines of a run have its resource, its number and its cause.

use crate::host::Host;
use serde_json::Value;
use std::process::Stdio;

const GRAPH: &str = "
graph: logged
resources:
  test:
  - {name: breaks, panic: true}
";

/// Returns the log lines of a daemon on the graph that is asked to run it again.
fn lines(form: &str) -> Vec<String> {
    let host = Host::with(GRAPH);
    let log = std::fs::File::create(host.path("log")).expect("a log");
    let mut command = host.command(&["run", "--log", form]);
    let mut child = command.stdout(Stdio::null()).stderr(log).spawn().expect("started");
    let panics = || host.lines("log").iter().filter(|line| line.contains("panicked at")).count();
    host.wait_until("it has panicked", || panics() == 1 && host.exists("state/control.socket"));
    let ask = |words: &[&str]| {
        let mut command = host.bare(words);
        command.arg("--state-dir").arg(host.path("state"));
        host.finish(command).exits(0);
    };
    host.wait_until("it is told", || host.read("log").contains("failed"));
    ask(&["retry", "test[breaks]"]);
    host.wait_until("it has panicked again", || panics() == 2);
    ask(&["stop"]);
    child.wait().expect("a child of ours");
    host.lines("log").into_iter().filter(|line| line.contains("panicked at")).collect()
}

#[test]
fn json_carries_resource_run_and_cause() {
    let spans: Vec<Value> = lines("json")
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["span"].clone())
        .collect();
    let [first, second] = spans.as_slice() else { panic!("two: {spans:?}") };
    for (span, cause) in [(first, "load"), (second, "operator")] {
        assert_eq!((&span["resource"], &span["cause"]), (&"test[breaks]".into(), &cause.into()));
    }
    assert!(second["run"].as_u64() > first["run"].as_u64(), "{spans:?}");
}

/// A line of the log has the data that `events --json` has.
#[test]
fn json_carries_the_data_of_the_event() {
    let host = Host::with("graph: g\nresources:\n  file: [{name: a, path: $DIR/a, content: x}]\n");
    let log = Logged::run(&host);
    host.wait_until("it is told", || !log.lines("changed").is_empty());
    let line = log.lines("changed").remove(0);
    let mut command = host.bare(&["events", "--json", "--state-dir"]);
    command.arg(host.path("state"));
    let recorded = host.finish(command);
    let events = recorded.exits(0).stdout.lines().map(serde_json::from_str::<Value>);
    let event = events.flatten().find(|event| event["event"] == "changed").expect("recorded");
    assert_eq!(line["data"], event["data"]);
    assert!(line["data"]["class"].is_string() && line["timestamp"].is_string(), "{line}");
    assert_eq!((&line["level"], &line["resource"]), (&"INFO".into(), &"file[a]".into()));
}

#[test]
fn so_does_the_log_for_people() {
    let lines = lines("human");
    assert!(
        lines[0].contains("run{resource=\"test[breaks]\" run=1 cause=\"load\"}: "),
        "{lines:?}"
    );
    assert!(lines[1].contains("cause=\"operator\"}"), "{lines:?}");
}

/// A daemon whose whole log goes to a file.
struct Logged<'a>(&'a Host, std::process::Child);

impl<'a> Logged<'a> {
    fn run(host: &'a Host) -> Self {
        let log = std::fs::File::create(host.path("log")).expect("a log");
        let mut command = host.command(&["run", "--log", "json"]);
        Self(host, command.stdout(Stdio::null()).stderr(log).spawn().expect("started"))
    }

    /// Returns all lines with this event so far.
    fn lines(&self, event: &str) -> Vec<Value> {
        let lines = self.0.lines("log");
        let values = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        values.filter(|line| line["event"] == event).collect()
    }
}

impl Drop for Logged<'_> {
    fn drop(&mut self) {
        self.1.kill().expect("killed");
        self.1.wait().expect("a child of ours");
    }
}

/// A change is logged with the number and the cause of its run.
#[test]
fn a_change_says_which_run_it_was_and_why() {
    let host = Host::with("graph: g\nresources: {file: [{name: f, path: $DIR/f, content: x}]}\n");
    let daemon = Logged::run(&host);
    host.wait_until("it is made", || daemon.lines("changed").len() == 1);
    host.remove("f");
    host.wait_until("it is made again", || daemon.lines("changed").len() == 2);
    let changes = daemon.lines("changed");
    for (change, causes) in changes.iter().zip([["load"; 2], ["event", "look"]]) {
        assert_eq!(change["resource"], "file[f]");
        // A possible echo of the previous run is checked first.
        assert!(causes.iter().any(|cause| change["cause"] == *cause), "{change}");
    }
    assert!(changes[1]["run"].as_u64() > changes[0]["run"].as_u64(), "{changes:?}");
}

/// Failures, retries and checks are logged with the number of their run; lines outside runs have none.
#[test]
fn drift_is_logged_with_its_run() {
    let host = Host::with(
        "graph: g\nresources:\n  test: [{name: t, fail: 9, meta: {retry: 1, delay: 50}}]\n  \
         file: [{name: f, path: $DIR/f, content: x, meta: {noop: true}}]\n",
    );
    let daemon = Logged::run(&host);
    host.wait_until("it has failed", || {
        !daemon.lines("failed").is_empty() && !daemon.lines("held").is_empty()
    });
    let [retrying, failed, held] =
        ["retrying", "failed", "held"].map(|event| daemon.lines(event).remove(0));
    for line in [&retrying, &held] {
        assert_eq!(line["cause"], "load", "{line}");
    }
    assert!(failed["run"].as_u64() > retrying["run"].as_u64(), "{failed}, {retrying}");
    assert!(failed["cause"].as_str().is_some_and(|cause| !cause.is_empty()), "{failed}");
    assert_eq!(daemon.lines("loaded")[0].get("run"), None);
}

/// B16: a request is logged as a command, without debug text; the event name does not follow several lines directly;
/// the journal's lines have no second time.
#[test]
fn the_log_for_people_has_no_debug_text_and_one_time() {
    let host = Host::with("graph: g\nresources: {file: [{name: f, path: $DIR/f, content: x}]}\n");
    host.apply().exits(0);
    for in_journal in [false, true] {
        let log = std::fs::File::create(host.path("log")).expect("a log");
        let found = rustix::fs::fstat(&log).expect("a file");
        let mut command = host.command(&["run"]);
        command.env_remove("JOURNAL_STREAM");
        if in_journal {
            command.env("JOURNAL_STREAM", format!("{}:{}", found.st_dev, found.st_ino));
        }
        let mut child = command.stdout(Stdio::null()).stderr(log).spawn().expect("started");
        host.wait_until("it holds", || host.read("log").contains("converged"));
        host.ask_daemon(&["reload"]).exits(0);
        host.graph("graph: g\nresources: {file: [{name: f, pth: $DIR/f}]}\n");
        host.ask_daemon(&["reload", "--allow-empty"]).exits(65);
        host.wait_until("it is kept", || host.exists("state/graph.json"));
        child.kill().expect("killed");
        child.wait().expect("a child of ours");
        let lines = host.lines("log");
        let asked: Vec<&String> = lines.iter().filter(|line| line.contains("received")).collect();
        assert_eq!(asked.len(), 2, "{lines:?}");
        assert!(asked[0].ends_with(" INFO command `reload` received uid=0"), "{asked:?}");
        assert!(asked[1].contains("command `reload --allow-empty` received"), "{asked:?}");
        assert_eq!(asked[0].trim_start().starts_with("INFO"), in_journal, "{asked:?}");
        let log = std::fs::File::create(host.path("log")).expect("a log");
        let command = &mut host.command(&["run"]);
        let mut child = command.stdout(Stdio::null()).stderr(log).spawn().expect("started");
        host.wait_until("it holds", || host.read("log").contains("converged"));
        child.kill().expect("killed");
        child.wait().expect("a child of ours");
        assert!(host.read("log").contains("running the last-good graph `g`, accepted at"));
        assert!(!host.read("log").contains("event="), "{}", host.read("log"));
        host.graph("graph: g\nresources: {file: [{name: f, path: $DIR/f, content: x}]}\n");
    }
}
