//! The event log of the real program and its recorders: recorded events stay, and no recorder delays the daemon.

use crate::daemon::Daemon;
use crate::host::{Host, LIMIT};
use crate::receiver::{Answer, Receiver};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::net::UnixDatagram;

pub(crate) const GRAPH: &str = r#"
graph: recorded
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

/// Returns the recorded events, as `events` prints them.
pub(crate) fn events(host: &Host, words: &[&str]) -> Vec<Value> {
    let output = host.ask_daemon(&[&["events", "--json", "--debug"], words].concat());
    output.exits(0);
    let lines = output.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.collect()
}

pub(crate) fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|event| event["number"].as_u64()).collect()
}

pub(crate) fn contiguous(numbers: &[u64]) {
    let first = numbers.first().copied().unwrap_or(1);
    assert!(numbers.iter().copied().eq(first..first + numbers.len() as u64), "{numbers:?}");
}

/// Starts a daemon with these recorders.
fn run(host: &Host, recorders: &str) -> Daemon {
    let settings = format!("graph: graph.yaml\nstate_dir: state\nlog: json\n{recorders}");
    host.write("steadfast.yaml", host.full(&settings));
    Daemon::start(host.bare(&["run", "--config", "$DIR/steadfast.yaml"]), &host.path(""))
}

pub(crate) fn repairs(host: &Host) {
    host.write("a", "broken");
    host.wait_until("it is put back", || host.read("a") == "x");
}

pub(crate) fn stop(host: &Host, daemon: &mut Daemon) {
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// C-11: the changes of an `apply` are recorded between its start and its end. An apply without changes writes
/// nothing, and a daemon continues the numbers.
#[test]
fn c11_an_apply_is_recorded_where_it_does_something() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    let made = events(&host, &["--since", "1"]);
    let what: Vec<&str> = made.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!((what.first(), what.last()), (Some(&"run_start"), Some(&"run_end")), "{what:?}");
    assert!(what.contains(&"changed") && what.contains(&"loaded"), "{what:?}");
    assert!(made[0]["message"].as_str().is_some_and(|says| says.contains("apply")), "{made:?}");
    contiguous(&numbers(&made));
    for words in [&["apply"][..], &["apply", "--noop"]] {
        host.ask(words).exits(0);
        assert_eq!(events(&host, &["--since", "1"]), made, "{words:?} has nothing to do");
    }
    host.write("a", "broken");
    host.ask(&["apply", "--noop"]).exits(0);
    assert_eq!(events(&host, &["--since", "1"]), made, "it is only looked at");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    daemon.kill();
    let all = events(&host, &["--since", "1"]);
    contiguous(&numbers(&all));
    let starts = all.iter().filter(|event| event["event"] == "run_start").count();
    let cut = all.iter().filter(|event| event["data"]["result"] == "interrupted").count();
    assert_eq!((starts, cut), (2, 0), "the apply had its end");
}

/// C-11, C-12: after `kill -9` no reported event is lost, the numbers continue, and the interrupted session gets an
/// end; events can be read without a daemon.
#[test]
fn c11_reported_events_outlive_a_kill() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it is recorded", || {
        events(&host, &[]).iter().any(|event| event["event"] == "converged")
    });
    let before = events(&host, &["--since", "1"]);
    assert_eq!((&before[0]["event"], &before[0]["number"]), (&"run_start".into(), &1.into()));
    daemon.kill();
    assert_eq!(events(&host, &["--since", "1"]), before, "without a daemon");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    stop(&host, &mut daemon);
    let all = events(&host, &["--since", "1"]);
    contiguous(&numbers(&all));
    assert_eq!(all[..before.len()], before);
    let ends: Vec<_> = all.iter().filter(|event| event["event"] == "run_end").collect();
    assert_eq!(
        (ends.len(), &ends[0]["data"]["result"], &ends[0]["data"]["run"]),
        (2, &"interrupted".into(), &1.into())
    );
    assert_eq!(
        (&ends[1]["data"]["result"], ends[1]),
        (&"stopped".into(), all.last().expect("some"))
    );
    let starts = all.iter().filter(|event| event["event"] == "run_start");
    assert_eq!(
        starts.map(|event| &event["number"]).collect::<Vec<_>>(),
        [&ends[0]["data"]["run"], &ends[1]["data"]["run"]]
    );
    for worker in ["driver", "store", "control"] {
        let of = |event: &&Value| event["event"] == "worker_started" && event["message"] == worker;
        assert_eq!(all.iter().filter(of).count(), 2, "{worker}");
    }
    assert_eq!(events(&host, &["--since", "2h"]), all);
    assert_eq!(events(&host, &["--since", "2099-01-01T00:00"]), [] as [Value; 0]);
    assert_eq!(events(&host, &["-n", "2"]), all[all.len() - 2..]);
    let none = host.ask_daemon(&["events", "--since", "2099-01-01T00:00"]);
    none.exits(0).says("no recorded event matches; `steadfast events` shows the recent ones");
    host.ask_daemon(&["events", "--since", "yesterday"]).exits(64).says("an age such as 2h");
    host.ask_daemon(&["events", "-f"]).exits(69);
}

/// C-19: a stream that ends says so, unlike one that breaks off.
#[test]
fn c19_an_end_is_told_from_a_break() {
    let host = Host::with(GRAPH);
    for kill in [false, true] {
        let mut daemon = host.run(&[]);
        daemon.wait_for("converged");
        let mut follow = host.bare(&["events", "-f"]);
        follow.arg("--state-dir").arg(host.path("state"));
        let mut follower = follow.spawn().expect("started");
        let mut told = BufReader::new(follower.stdout.take().expect("piped"));
        let mut text = String::new();
        told.read_line(&mut text).expect("it follows");
        // The past events are complete; the next event shows that the stream continues.
        repairs(&host);
        while !text.contains("corrective") {
            assert_ne!(told.read_line(&mut text).expect("goes on"), 0, "{text}");
        }
        if kill {
            daemon.kill();
        } else {
            stop(&host, &mut daemon);
        }
        told.read_to_string(&mut text).expect("text");
        let mut said = String::new();
        let stderr = follower.stderr.take().expect("piped");
        BufReader::new(stderr).read_to_string(&mut said).expect("text");
        let code = follower.wait().expect("ended").code();
        if kill {
            assert!(said.contains("the event stream ended"), "{said}");
            assert_eq!(code, Some(1));
        } else {
            assert!(said.contains("no more events: the daemon ends"), "{said}");
            assert!(text.contains("run_end"), "{text}");
            assert_eq!(code, Some(0));
        }
    }
}

/// C-21: repeated events are counted in one.
#[test]
fn c21_repeated_events_are_counted() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    for _ in 0..15 {
        daemon.signal(Signal::SIGUSR1).wait_for("paused");
        daemon.signal(Signal::SIGUSR2).wait_for("resumed");
    }
    stop(&host, &mut daemon);
    let all = events(&host, &["--since", "1"]);
    assert_eq!(all.iter().filter(|event| event["event"] == "paused").count(), 10);
    let alike =
        all.iter().find(|event| event["event"] == "repeated" && event["data"]["of"] == "paused");
    assert_eq!(alike.expect("counted")["data"]["count"], 5);
}

/// C-12, C-15: a file recorder writes all recorded events in order and, without kills, once. It reopens a rotated
/// file; a stop writes the rest; after a kill nothing is missing.
#[test]
fn c15_a_file_gets_everything() {
    let host = Host::with(GRAPH);
    let recorder = "recorders:\n- file: {path: log.jsonl}\n";
    let mut daemon = run(&host, recorder);
    daemon.wait_for("converged");
    host.wait_until("the first tick", || host.read("log.jsonl").contains("\"converged\""));
    host.rename("log.jsonl", "log.jsonl.1");
    repairs(&host);
    stop(&host, &mut daemon);
    let lines = |names: &[&str]| -> Vec<Value> {
        let lines = names.iter().flat_map(|name| host.lines(name));
        lines.map(|line| serde_json::from_str(&host.short(&line)).expect("JSON")).collect()
    };
    let all = events(&host, &["--since", "1"]);
    assert_eq!(lines(&["log.jsonl.1", "log.jsonl"]), all, "each once, to the end of the run");
    assert!(host.exists("log.jsonl"), "rotated");
    assert_eq!(all.last().expect("some")["event"], "run_end");

    let daemon = run(&host, recorder);
    daemon.wait_for("converged");
    host.wait_until("a tick", || host.lines("log.jsonl").len() > lines(&["log.jsonl"]).len() / 2);
    daemon.kill();
    // Half a line, as left by a killed writer.
    host.append("log.jsonl", "{\"number\":");
    let mut daemon = run(&host, recorder);
    daemon.wait_for("converged");
    let report = host.ask_daemon(&["workers"]);
    report.exits(0).prints("recorder:file:");
    stop(&host, &mut daemon);
    let mut there: Vec<u64> = ["log.jsonl.1", "log.jsonl"]
        .iter()
        .flat_map(|name| host.lines(name))
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok()?["number"].as_u64())
        .collect();
    there.sort_unstable();
    there.dedup();
    assert_eq!(there, numbers(&events(&host, &["--since", "1"])));
}

/// Asserts that each key has one content, and that each event has arrived under exactly one key.
fn complete(receiver: &Receiver, host: &Host) {
    let mut batches = BTreeMap::new();
    for came in receiver.came() {
        assert!(came.numbers.len() <= 50);
        assert_eq!(came.token, "Bearer t0ken");
        let before = batches.insert(came.key.clone(), came.numbers.clone());
        assert!(before.is_none_or(|before| before == came.numbers), "{came:?}");
    }
    let mut all: Vec<u64> = batches.into_values().flatten().collect();
    all.sort_unstable();
    assert_eq!(all, numbers(&events(host, &["--since", "1"])));
}

fn webhook(receiver: &Receiver) -> String {
    let headers = "{Authorization: Bearer t0ken}";
    let url = &receiver.url;
    format!("recorders:\n- webhook: {{url: \"{url}\", timeout: 1, headers: {headers}}}\n")
}

/// C-12, C-13, C-15: a server that fails, answers late, closes or stalls gets the same batch again with the same key,
/// also from the next daemon after a kill. The host stays converged, and a stop sends the rest.
#[test]
fn c13_a_server_that_fails_gets_the_same_batch_again() {
    let host = Host::with(GRAPH);
    let bad = [Answer::Error, Answer::Late, Answer::Close, Answer::Stall];
    let receiver = Receiver::new(&bad, Answer::Stall);
    let daemon = run(&host, &webhook(&receiver));
    daemon.wait_for("converged");
    // A later batch may be sent in parallel.
    let of_the_first = || {
        let came = receiver.came();
        came.iter().filter(|other| other.key == came[0].key).count()
    };
    host.wait_until("three times", || {
        repairs(&host);
        receiver.came().len() >= 4 && of_the_first() >= 3
    });
    let key = receiver.came()[0].key.clone();
    daemon.wait_for("recorder");
    assert!(!host.ask_daemon(&["workers"]).stdout.contains("t0ken"));
    daemon.kill();
    receiver.answers(Answer::Taken);
    let count = receiver.came().len();
    let mut daemon = run(&host, &webhook(&receiver));
    daemon.wait_for("converged");
    host.wait_until("again", || receiver.came()[count..].iter().any(|came| came.key == key));
    stop(&host, &mut daemon);
    assert_eq!(receiver.came().last().expect("some").kinds.last().expect("some"), "run_end");
    complete(&receiver, &host);
}

/// C-15: a stop waits for an unresponsive server up to its deadline, and the next daemon sends the rest.
#[test]
fn c15_a_stop_has_a_deadline() {
    let host = Host::with(GRAPH);
    let receiver = Receiver::new(&[], Answer::Stall);
    let mut daemon = run(&host, &webhook(&receiver));
    daemon.wait_for("converged");
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends_within(LIMIT), 0);
    assert!(daemon.log().iter().any(|line| line.message.contains("unsent events remain")));
    receiver.answers(Answer::Taken);
    let mut daemon = run(&host, &webhook(&receiver));
    daemon.wait_for("converged");
    stop(&host, &mut daemon);
    complete(&receiver, &host);
}

/// C-12: a batch that the server rejects five times is dead-lettered, which is logged, recorded as an event and shown
/// in `status` and `report`. Later batches arrive, and the next daemon does not retry the rejected one.
#[test]
fn c12_a_batch_that_is_refused_is_put_aside() {
    let host = Host::with(GRAPH);
    let receiver = Receiver::new(&[], Answer::FirstRefused);
    let mut daemon = run(&host, &webhook(&receiver));
    let line = daemon.wait_for("dead_lettered");
    assert!(line.message.contains("422") && line.message.contains("dead-lettered"), "{line:?}");
    let offered = || {
        let came = receiver.came();
        came.into_iter().filter(|came| came.numbers.contains(&1)).collect::<Vec<_>>()
    };
    let refused = offered().remove(0).numbers;
    assert_eq!(offered().len(), 5);
    host.wait_until("the event of it has arrived", || {
        receiver.came().iter().any(|came| came.kinds.iter().any(|kind| kind == "dead_lettered"))
    });
    let says = "rejected and dead-lettered: the server responded 422";
    host.ask_daemon(&["status"]).exits(0).prints("daemon: recorder:webhook:").prints(says);
    host.ask_daemon(&["workers"]).exits(0).prints(says);
    let all = events(&host, &["--since", "1"]);
    let aside = all.iter().find(|event| event["event"] == "dead_lettered").expect("recorded");
    assert_eq!(aside["data"]["count"], refused.len());
    stop(&host, &mut daemon);
    let mut daemon = run(&host, &webhook(&receiver));
    daemon.wait_for("converged");
    stop(&host, &mut daemon);
    assert_eq!(offered().len(), 5, "it is not begun again");
    complete(&receiver, &host);
}

/// C-12, S-13: the journal gets each event with its fields; a journal that does not read delays nothing.
#[test]
fn c12_the_journal_gets_fields() {
    let host = Host::with(GRAPH);
    let journal = UnixDatagram::bind(host.path("journal")).expect("bound");
    journal.set_read_timeout(Some(LIMIT)).expect("set");
    let mut daemon = run(&host, "recorders:\n- journald: {socket: $DIR/journal}\n");
    daemon.wait_for("converged");
    let mut bytes = vec![0; 1 << 20];
    let mut number = 0;
    loop {
        let length = journal.recv(&mut bytes).expect("an entry");
        let entry = String::from_utf8(bytes[..length].to_vec()).expect("text");
        number += 1;
        assert!(entry.contains(&format!("\nSTEADFAST_NUMBER={number}\n")), "{entry}");
        assert!(entry.contains("\nSYSLOG_IDENTIFIER=steadfast\n"), "{entry}");
        if entry.contains("\nSTEADFAST_EVENT=changed\n") {
            assert!(entry.contains("\nSTEADFAST_RESOURCE=file[a]\n"), "{entry}");
            assert!(entry.starts_with("MESSAGE=changed file[a]: created"), "{entry}");
            assert!(entry.contains("\nSTEADFAST_CLASS=intentional\n"), "{entry}");
            break;
        }
    }
    for _ in 0..5 {
        repairs(&host);
    }
    stop(&host, &mut daemon);
}

/// A-19, C-12: a broken recorder is restarted and continues at its place; so is the event log.
#[cfg(feature = "fault-injection")]
#[test]
fn c12_a_recorder_that_breaks_goes_on() {
    let host = Host::with(GRAPH);
    let mut daemon = run(&host, "recorders:\n- file: {path: $DIR/log.jsonl}\n");
    daemon.wait_for("converged");
    let worker = host.full("recorder:file:$DIR/log.jsonl");
    for how in ["panic", "error"] {
        let starts = if how == "panic" { 2 } else { 3 };
        for worker in [&worker, "events"] {
            crate::workers::fault(&host, worker, how);
            // A command's output contains `$DIR`.
            crate::workers::runs_again(&host, &host.short(worker), starts);
        }
        repairs(&host);
    }
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends_after_panics(LIMIT), 0);
    let all = events(&host, &["--since", "1"]);
    contiguous(&numbers(&all));
    for (event, at_least) in [("internal_error", 2), ("run_start", 1), ("run_end", 1)] {
        let count = all.iter().filter(|told| told["event"] == event).count();
        assert!(count >= at_least, "{event}: {count}");
    }
    let lines = host.lines("log.jsonl");
    let lines = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut there: Vec<u64> = lines.filter_map(|line| line["number"].as_u64()).collect();
    there.sort_unstable();
    there.dedup();
    assert_eq!(there, numbers(&all));
}

/// A recorder that cannot deliver is shown in `status` until a batch arrives.
#[test]
fn a_recorder_that_fails_is_in_the_status() {
    let receiver = Receiver::new(&[], Answer::Error);
    let host = Host::with(GRAPH);
    let daemon = run(&host, &webhook(&receiver));
    daemon.wait_for("converged");
    let shown = || host.ask_daemon(&["status"]).stdout.contains("delivered nothing for");
    host.wait_until("status shows the recorder", shown);
    host.ask_daemon(&["status"]).exits(0).prints("  daemon: recorder:webhook:http://127.0.0.1:");
    receiver.answers(Answer::Taken);
    host.wait_until("it is well again", || !shown());
}
