//! F-19: threads and tasks inside workers end: this is noticed at once, the affected workers are restarted, and no
//! drift is missed.

use crate::daemon::Daemon;
use crate::host::{Host, LIMIT};
use crate::workers::{fault, runs_again, starts};
use nix::sys::signal::Signal;
use std::fs;

const GRAPH: &str = r#"
graph: threads
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
  - {name: b, path: $DIR/d/b, content: "x"}
"#;

fn repairs(host: &Host, file: &str) {
    host.write(file, "broken");
    host.wait_until("it is put back", || host.read(file) == "x");
}

/// Injects a fault into a thread, triggers it, and asserts that exactly these workers restart.
fn strikes(place: &str, how: &str, anew: &[&str], happens: impl Fn(&Host)) {
    let host = Host::with(GRAPH);
    host.make_directory("d");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    let mut expected = starts(&host);
    fault(&host, &format!("in:{place}"), how);
    happens(&host);
    for worker in anew {
        let count = expected.get_mut(*worker).expect("a worker");
        *count += 1;
        runs_again(&host, worker, *count);
    }
    daemon.wait_for("converged");
    for file in ["a", "d/b"] {
        host.wait_until("what was made meanwhile is put back", || host.read(file) == "x");
        repairs(&host, file);
    }
    assert_eq!(starts(&host), expected, "a fault in {place}: {how}");
    daemon.skip_to_now();
    daemon.signal(Signal::SIGUSR1).wait_for("paused");
    daemon.signal(Signal::SIGUSR2).wait_for("resumed");
    ends(&host, &mut daemon, how);
}

fn ends(host: &Host, daemon: &mut Daemon, how: &str) {
    host.ask_daemon(&["stop"]).exits(0);
    let code = if how == "panic" { daemon.ends_after_panics(LIMIT) } else { daemon.ends() };
    assert_eq!(code, 0);
}

/// F-19, F-6: the inotify thread ends with an unhandled event.
#[test]
fn the_thread_that_reads_inotify_ends() {
    for how in ["error", "panic"] {
        strikes("inotify", how, &["driver"], |host| {
            host.write("a", "broken");
        });
    }
}

/// F-19, R-9: the path walk thread ends at a replaced directory.
#[test]
fn the_thread_that_walks_paths_ends() {
    for how in ["error", "panic"] {
        strikes("watch", how, &["driver"], |host| {
            fs::rename(host.path("d"), host.path("old")).expect("moved");
            host.make_directory("d");
        });
    }
}

/// F-19: the history thread ends with an unwritten entry.
#[test]
fn the_thread_that_keeps_the_history_ends() {
    for how in ["error", "panic"] {
        strikes("history", how, &["driver"], |host| {
            host.write("a", "broken");
        });
    }
}

/// F-19: the task that listens to systemd panics, with or without a systemd.
#[test]
fn the_task_that_listens_to_systemd_ends() {
    let host = Host::with(
        r#"
graph: threads
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
  svc:
  - {name: steadfast-none, state: stopped}
"#,
    );
    let mut daemon = host.run(&[]);
    host.wait_until("it is held", || host.exists("a"));
    let before = starts(&host)["driver"];
    fault(&host, "in:units", "panic");
    runs_again(&host, "driver", before + 1);
    repairs(&host, "a");
    ends(&host, &mut daemon, "panic");
}
