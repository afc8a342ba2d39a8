//! Pauses by USR1 and USR2: a paused daemon changes nothing and forgets nothing.

use crate::host::Host;
use nix::sys::signal::Signal::{SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};
use std::time::Duration;

const GRAPH: &str = r#"
graph: rests
resources:
  file:
  - {name: a, path: $DIR/a, content: "a\n"}
  - {name: b, path: $DIR/b, content: "b\n", mode: 0600}
  - {name: c, path: $DIR/c, content: "c\n", after: ["file[a]", "file[b]"]}
  exec:
  - {name: told, shell: /bin/sh, cmd: "echo told >> $DIR/told", refresh_only: true, subscribe: "file[c]"}
"#;

fn breaks(host: &Host) {
    host.write("a", "mine\n").chmod("b", 0o644).remove("c");
}

#[track_caller]
fn is_broken(host: &Host) {
    // Real time on purpose: half a second is enough for a hundred repairs.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(
        (host.read("a").as_str(), host.mode("b"), host.exists("c")),
        ("mine\n", 0o644, false)
    );
}

#[track_caller]
fn is_right(host: &Host) {
    let contents = ["a", "b", "c"].map(|name| host.read(name));
    assert_eq!((contents.join(""), host.mode("b")), ("a\nb\nc\n".to_owned(), 0o600));
}

/// E-15: during a pause nothing is changed; after the resume all drift is repaired.
#[test]
fn a_pause_touches_nothing_and_loses_nothing() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    daemon.signal(SIGUSR1).wait_for("paused");
    breaks(&host);
    is_broken(&host);
    daemon.has_not_said("changed");
    daemon.has_not_said("converged");
    daemon.signal(SIGUSR2).wait_for("resumed");
    daemon.wait_for("converged");
    is_right(&host);
    assert_eq!(host.lines("told").len(), 2, "once when c was made, once when it was made again");
}

/// E-15: a pause lets active runs end; with `--drain` the pending work is done first.
#[test]
fn a_pause_that_drains_does_first_what_is_to_be_done() {
    for drains in [false, true] {
        let host = Host::with(
            "graph: g\nresources:\n  exec:\n  - {name: first, shell: /bin/sh, cmd: 'touch $DIR/began; while [ ! -e $DIR/go ]; do sleep 0.02; done', before: 'exec[second]'}\n  - {name: second, shell: /bin/sh, cmd: 'touch $DIR/done'}\n",
        );
        let daemon = host.run(&[]);
        host.wait_until("the first runs", || host.exists("began"));
        let words: &[&str] = if drains { &["pause", "--drain"] } else { &["pause"] };
        host.ask_daemon(words).exits(0);
        host.write("go", "");
        daemon.wait_for("paused");
        assert_eq!(host.exists("done"), drains);
    }
}

/// Pauses and resumes by signals take effect in order. Commands start with no signal blocked.
#[test]
fn pauses_and_resumes_by_signals_alternate() {
    let host = Host::with(
        "graph: g\nresources:\n  exec:\n  - {name: mask, shell: /bin/sh, cmd: 'grep SigBlk /proc/self/status > $DIR/mask'}\n",
    );
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(host.read("mask").trim(), "SigBlk:\t0000000000000000");
    for _ in 0..50 {
        daemon.signal(SIGUSR1).wait_for("paused");
        daemon.signal(SIGUSR2).wait_for("resumed");
    }
}

/// E-15: a pause is recorded; neither `kill -9` nor a reload ends it.
#[test]
fn paused_killed_and_started_again_is_still_paused() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    daemon.signal(SIGUSR1).wait_for("paused");
    daemon.kill();
    breaks(&host);
    let daemon = host.run(&[]);
    daemon.wait_for("paused");
    is_broken(&host);
    daemon.signal(SIGHUP).wait_for("loaded");
    is_broken(&host);
    daemon.has_not_said("changed");
    daemon.signal(SIGUSR2).wait_for("resumed");
    daemon.wait_for("converged");
    is_right(&host);
}

/// A stop works during a pause; the pause outlives the stop and still ends in time.
#[test]
fn a_stop_while_paused_keeps_the_pause() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    daemon.signal(SIGUSR1).wait_for("paused");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    let mut daemon = host.run(&[]);
    daemon.wait_for("paused");
    daemon.signal(SIGUSR2).wait_for("resumed");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(daemon.count("paused"), 0);
}

/// E-15: a pause ends by itself.
#[test]
fn a_pause_that_nobody_ends_ends() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&["--pause-limit", "1"]);
    daemon.wait_for("converged");
    daemon.signal(SIGUSR1).wait_for("paused");
    breaks(&host);
    daemon.wait_for("resumed");
    daemon.wait_for("converged");
    is_right(&host);
}

/// E-15, R-1: active runs end, and the pause names those that it waits for.
#[test]
fn a_pause_waits_for_what_runs() {
    let host = Host::with(
        r#"
graph: runs
resources:
  exec:
  - {name: long, shell: /bin/sh, cmd: "echo x > $DIR/began; while ! test -e $DIR/go; do $DIR/sleep 0.02; done; echo x > $DIR/ended"}
  file: [{name: next, path: $DIR/next, after: "exec[long]"}]
"#,
    );
    let daemon = host.run(&[]);
    host.wait_for_lines("began", 1);
    let line = daemon.signal(SIGUSR1).wait_for("pausing");
    assert!(line.message.contains("exec[long]"), "{line:?}");
    daemon.has_not_said("paused");
    host.write("go", "");
    daemon.wait_for("paused");
    assert!(host.exists("ended") && !host.exists("next"));
    daemon.signal(SIGUSR2).wait_for("converged");
    assert!(host.exists("next"));
}
