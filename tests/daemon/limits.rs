//! Semaphores, rate limits and polls in real time, judged by the output of commands and the times of log lines.

use crate::host::Host;
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn four(meta: &str) -> Host {
    let mut text = "graph: four\nresources:\n  exec:\n".to_owned();
    for n in 0..4 {
        let shell = format!("date +%s.%N > $DIR/from{n}; $DIR/sleep 1; date +%s.%N > $DIR/to{n}");
        writeln!(text, "  - {{name: e{n}, shell: /bin/sh, cmd: \"{shell}\"{meta}}}")
            .expect("a string");
    }
    Host::with(&text)
}

/// Returns the seconds from the first start to the last end, and the largest number of simultaneous runs.
fn span(host: &Host) -> (f64, usize) {
    let time = |name: &str, n: i32| {
        host.read(&format!("{name}{n}")).trim().parse::<f64>().expect("a time")
    };
    let runs: Vec<(f64, f64)> = (0..4).map(|n| (time("from", n), time("to", n))).collect();
    let first = runs.iter().map(|run| run.0).fold(f64::INFINITY, f64::min);
    let last = runs.iter().map(|run| run.1).fold(0.0, f64::max);
    let most = runs
        .iter()
        .map(|run| runs.iter().filter(|other| other.0 <= run.0 && run.0 < other.1).count());
    (last - first, most.max().unwrap_or_default())
}

/// E-14: under a semaphore of one, the durations add up.
#[test]
fn four_seconds_under_a_semaphore_of_one() {
    let host = four(", meta: {sema: [\"x:1\"]}");
    host.apply().exits(0);
    let (seconds, most) = span(&host);
    assert_eq!(most, 1, "one at a time");
    assert!((4.0..30.0).contains(&seconds), "{seconds}");
}

#[test]
fn one_second_without() {
    let host = four("");
    host.apply().exits(0);
    let (seconds, most) = span(&host);
    assert_eq!(most, 4, "all at once");
    assert!((1.0..3.9).contains(&seconds), "{seconds}");
}

#[test]
fn two_seconds_under_a_semaphore_of_two_or_the_flag() {
    let host = four(", meta: {sema: [\"x:2\", \"y:3\"]}");
    host.apply().exits(0);
    assert_eq!(span(&host).1, 2);
    let host = four("");
    host.ask(&["apply", "--sema", "2"]).exits(0);
    let (seconds, most) = span(&host);
    assert_eq!(most, 2);
    assert!((2.0..30.0).contains(&seconds), "{seconds}");
}

/// E-12: starts are a second apart under all circumstances, and the last event is not lost.
#[test]
fn a_limit_of_one_a_second_holds() {
    let host = Host::with(
        "graph: slow\nresources: {file: [{name: f, path: $DIR/f, content: \"f\\n\", meta: {limit: 1}}]}\n",
    );
    let daemon = host.run_telling_starts(&["--sweep", "0"]);
    daemon.wait_for("converged");
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(3300) {
        host.write("f", "mine\n");
        std::thread::sleep(Duration::from_millis(30));
    }
    host.write("f", "the last word\n");
    host.wait_until("the declared content wins", || host.read("f") == "f\n");
    let started: Vec<f64> =
        daemon.log().iter().filter(|l| l.event == "started").map(|l| l.seconds).collect();
    assert!(started.len() >= 4, "it goes on, once a second: {started:?}");
    for pair in started.windows(2) {
        // The log's clock and the limit's clock are read one after the other.
        assert!(pair[1] - pair[0] > 0.9, "{started:?}");
    }
}

/// E-12: a burst runs at once, then the limit applies.
#[test]
fn a_burst_may_go_first() {
    let host = Host::with(
        "graph: slow\nresources: {exec: [{name: e, args: [\"false\"], meta: {limit: 1, burst: 3, retry: 4, delay: 100, delay_max: 100}}]}\n",
    );
    let daemon = host.run_telling_starts(&[]);
    daemon.wait_for_of("failed", "exec[e]");
    let started: Vec<f64> =
        daemon.log().iter().filter(|l| l.event == "started").map(|l| l.seconds).collect();
    assert_eq!(started.len(), 5, "{started:?}");
    assert!(
        started[4] - started[0] > 1.7,
        "three at once, two more a second apart each: {started:?}"
    );
    assert!(started[2] - started[0] < started[4] - started[2], "{started:?}");
}

/// E-13: a poll replaces the watch.
#[test]
fn a_poll_repairs_without_events() {
    let text = |poll: i32| {
        format!(
            "graph: polled\nresources:\n  file:\n  - {{name: f, path: $DIR/f, content: \"f\\n\", meta: {{poll: {poll}}}}}\n  - {{name: sentinel, path: $DIR/sentinel, content: \"s\\n\"}}\n"
        )
    };
    let host = Host::with(&text(3600));
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    host.write("f", "mine\n").write("sentinel", "mine\n");
    daemon.wait_for_of("changed", "file[sentinel]");
    assert_eq!(
        host.read("f"),
        "mine\n",
        "no event comes for f, or it would have been repaired first"
    );
    host.graph(&text(1));
    daemon.signal(nix::sys::signal::Signal::SIGHUP).wait_for("loaded");
    daemon.wait_for_of("changed", "file[f]");
    for _ in 0..2 {
        host.write("f", "mine again\n");
        daemon.wait_for_of("changed", "file[f]");
    }
    assert_eq!(host.read("f"), "f\n");
}

/// A limit of file sizes fails the file that exceeds it, and nothing else. A command has the usual action of the
/// signal.
#[test]
fn a_limit_of_file_sizes_fails_one_resource() {
    let graph = r#"
graph: limited
resources:
  file:
  - {name: $DIR/large, source: source}
  - {name: $DIR/small, content: "x"}
  exec:
  - {name: child, shell: /bin/sh, cmd: "exec head -c 20M /dev/zero > $DIR/child", creates: $DIR/child}
"#;
    let host = Host::with(graph);
    host.write("source", vec![7_u8; 9 << 20]);
    let apply = host.command(&["apply"]);
    let mut limited = Command::new("bash");
    limited.args(["-c", "ulimit -f 8192; exec \"$@\"", "bash"]).arg(apply.get_program());
    limited.args(apply.get_args()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let done = host.finish(limited);
    done.exits(1)
        .prints("the file exceeds the size limit of this process")
        .prints("raise LimitFSIZE");
    done.prints("killed by signal 25");
    assert_eq!(host.read("small"), "x");
    assert!(!host.exists("large"));
    host.remove("child").apply().exits(0);
    assert!(host.exists("large"));
}
