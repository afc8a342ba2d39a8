//! Recorders of a one-shot `apply`: they receive its events while it runs and have a deadline for the rest.

use crate::host::Host;
use crate::receiver::{Answer, Receiver};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const GRAPH: &str = r#"
graph: delivered
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

fn host_with_recorder(receiver: &Receiver) -> Host {
    let host = Host::with(GRAPH);
    let settings = "graph: graph.yaml\nstate_dir: state\nrecorders:\n- webhook: {url: \"$URL\"}\n";
    host.write("steadfast.yaml", host.full(settings).replace("$URL", &receiver.url));
    host
}

fn apply(host: &Host) -> crate::output::Output {
    host.finish(host.bare(&["apply", "--config", "$DIR/steadfast.yaml"]))
}

fn received(receiver: &Receiver) -> BTreeSet<u64> {
    receiver.came().into_iter().flat_map(|request| request.numbers).collect()
}

/// The first apply of a host delivers its own events, its start and its end included (audit H-19).
#[test]
fn an_apply_delivers_its_events() {
    let receiver = Receiver::new(&[], Answer::Taken);
    let host = host_with_recorder(&receiver);
    apply(&host).exits(0);
    let kinds: Vec<String> = receiver.came().into_iter().flat_map(|came| came.kinds).collect();
    for kind in ["run_start", "changed", "run_end"] {
        assert!(kinds.iter().any(|found| found == kind), "expected {kind} among {kinds:?}");
    }
    let events = host.ask_daemon(&["events", "--json", "--debug", "--since", "1"]);
    let events: Vec<serde_json::Value> =
        events.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let recorded: BTreeSet<u64> = events.iter().filter_map(|one| one["number"].as_u64()).collect();
    assert_eq!(received(&receiver), recorded);
    assert_eq!(events.first().expect("some")["data"]["command"], "apply");
    assert_eq!(events.last().expect("some")["data"]["result"], "succeeded");
}

/// A receiver that does not answer delays an apply up to the deadline only; the next apply sends the same events.
#[test]
fn an_apply_ends_beside_a_receiver_that_stalls() {
    let receiver = Receiver::new(&[], Answer::Stall);
    let host = host_with_recorder(&receiver);
    let began = Instant::now();
    apply(&host).exits(0).says("the next start or apply sends them");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    receiver.answers(Answer::Taken);
    host.write("a", "broken");
    apply(&host).exits(0);
    let all = received(&receiver);
    let last = *all.last().expect("some");
    assert_eq!(all, (1..=last).collect::<BTreeSet<u64>>(), "each event, from the first on");
}

/// A failed apply ends its record with the class `failed` (audit H-11).
#[test]
fn a_failed_apply_ends_with_the_class_failed() {
    let host = Host::with(GRAPH);
    host.make_directory("a");
    host.write("a/in-the-way", "x");
    host.apply().exits(1);
    let events = host.ask_daemon(&["events", "--json", "--debug", "--since", "1"]);
    let last = events.stdout.lines().last().expect("some").to_owned();
    let last: serde_json::Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!((&last["event"], &last["data"]["result"]), (&"run_end".into(), &"failed".into()));
}
