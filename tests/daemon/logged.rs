//! Lines that are logged from within a run say of which resource, which run it is, and why it was started.

use crate::host::Host;
use serde_json::Value;
use std::process::Stdio;

const GRAPH: &str = "
graph: logged
resources:
  test:
  - {name: breaks, panic: true}
";

/// The lines of a daemon on that graph, which is asked to run it once more.
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

#[test]
fn so_does_the_log_for_people() {
    let lines = lines("human");
    assert!(
        lines[0].contains("run{resource=\"test[breaks]\" run=1 cause=\"load\"}: "),
        "{lines:?}"
    );
    assert!(lines[1].contains("cause=\"operator\"}"), "{lines:?}");
}

/// What a run has changed is logged with its number and why it was started.
#[test]
fn a_change_says_which_run_it_was_and_why() {
    let host = Host::with("graph: g\nresources: {file: [{name: f, path: $DIR/f, content: x}]}\n");
    let log = std::fs::File::create(host.path("log")).expect("a log");
    let mut command = host.command(&["run", "--log", "json"]);
    let mut child = command.stdout(Stdio::null()).stderr(log).spawn().expect("started");
    let changes = || -> Vec<Value> {
        let lines = host.lines("log");
        let values = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        values.filter(|line| line["event"] == "changed").collect()
    };
    host.wait_until("it is made", || changes().len() == 1);
    host.remove("f");
    host.wait_until("it is made again", || changes().len() == 2);
    let changes = changes();
    for (change, causes) in changes.iter().zip([["load"; 2], ["event", "look"]]) {
        assert_eq!(change["resource"], "file[f]");
        // Where it may be the echo of the run before, it is looked at first.
        assert!(causes.iter().any(|cause| change["cause"] == *cause), "{change}");
    }
    assert!(changes[1]["run"].as_u64() > changes[0]["run"].as_u64(), "{changes:?}");
    child.kill().expect("killed");
    child.wait().expect("a child of ours");
}
