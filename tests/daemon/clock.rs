//! Jumps of the wall clock: no wait may depend on them. `libfaketime` moves the clock of the daemon alone.

use crate::daemon::Daemon;
use crate::host::Host;
use std::time::Duration;

const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

const GRAPH: &str = r#"
graph: jumps
resources:
  timer: [{name: t, interval: 0.2}]
  file: [{name: held, path: $DIR/held, content: right}]
  exec:
  - {name: told, shell: /bin/sh, cmd: "echo x >> $DIR/told", refresh_only: true, subscribe: "timer[t]"}
  - {name: bad, shell: /bin/sh, cmd: "echo x >> $DIR/tries; exit 1", meta: {retry: -1, delay: 300, delay_max: 300}}
  - {name: slow, shell: /bin/sh, cmd: "echo x >> $DIR/starts", refresh_only: true, subscribe: "timer[t]", meta: {limit: 2}}
"#;

/// Starts a daemon with its wall clock moved by the offset in the file `clock`.
fn start(host: &Host) -> Daemon {
    let mut command = host.command(&["run", "--log", "json", "--sweep", "1"]);
    command
        .env("LD_PRELOAD", FAKETIME)
        .env("FAKETIME_TIMESTAMP_FILE", host.path("clock"))
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Daemon::start(command, &host.path(""))
}

/// F-11: after jumps of a second, an hour and ten years in both directions, no tick, retry, limit or sweep hangs or
/// bursts.
#[test]
fn the_wall_clock_may_jump() {
    assert!(std::path::Path::new(FAKETIME).exists(), "Debian's package faketime is needed");
    let host = Host::with(GRAPH);
    host.write("clock", "+0");
    let mut daemon = start(&host);
    host.wait_for_lines("told", 3);
    for jump in ["+1s", "-1s", "+1h", "-1h", "+10y", "-10y"] {
        host.write("clock", jump);
        let counts = || ["told", "tries", "starts"].map(|name| host.lines(name).len());
        let first = counts();
        host.write("held", jump);
        host.wait_until("it is put back", || host.read("held") == "right");
        std::thread::sleep(Duration::from_secs(1));
        let [ticks, tries, starts] = {
            let now = counts();
            [now[0] - first[0], now[1] - first[1], now[2] - first[2]]
        };
        assert!(ticks <= 12 && tries <= 8 && starts <= 5, "{jump}: {ticks} {tries} {starts}");
        let before = counts();
        host.wait_for_lines("told", before[0] + 2);
        host.wait_for_lines("tries", before[1] + 1);
        host.wait_for_lines("starts", before[2] + 1);
    }
    assert!(
        daemon.years().len() >= 3,
        "the clock of the daemon did not move: {:?}",
        daemon.years()
    );
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);
}

/// F6: after daemons with clocks ten years ahead or three behind, however they ended, a start with the right clock
/// gets the lease and the state. Finished commands do not run again, a pause is no longer than requested, and drift
/// is repaired.
#[test]
fn a_start_after_a_wrong_clock_is_like_any_other() {
    assert!(std::path::Path::new(FAKETIME).exists(), "Debian's package faketime is needed");
    let host = Host::with(
        r#"
graph: started
resources:
  file:
  - {name: held, path: $DIR/held, content: right}
  - {name: rests, path: $DIR/rests, content: right}
  exec:
  - {name: once, shell: /bin/sh, cmd: "echo x >> $DIR/once"}
"#,
    );
    let repairs = |what: &str| {
        host.write("held", "wrong");
        host.wait_until(what, || host.read("held") == "right");
    };
    for (round, (clock, is_killed)) in
        [("+10y", true), ("+10y", false), ("-3y", true), ("-3y", false)].into_iter().enumerate()
    {
        host.write("clock", clock);
        let mut daemon = start(&host);
        daemon.wait_for("loaded");
        host.wait_until("it is made", || host.read("rests") == "right");
        repairs("the repair with a wrong clock");
        host.ask_daemon(&["pause", "file[rests]", "--for", "1h"]).exits(0);
        if is_killed {
            daemon.kill();
        } else {
            daemon.signal(nix::sys::signal::Signal::SIGTERM);
            assert_eq!(daemon.ends(), 0);
        }
        host.write("clock", "+0");
        let mut daemon = start(&host);
        daemon.wait_for("loaded");
        repairs("the repair with the right clock");
        let status = host.ask_daemon(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status.stdout).expect("JSON");
        assert!(
            status["read_only"].is_null() && status["daemon"] == serde_json::json!([]),
            "{status}"
        );
        let left = status["paused"][0]["pause"]["ends_in"].as_u64();
        if clock == "-3y" {
            assert_eq!(left, None, "by the right clock it is over: {status}");
        } else {
            assert!(left.is_some_and(|left| left <= 3600), "{round}: {status}");
        }
        host.ask_daemon(&["resume", "file[rests]"]).exits(0);
        host.ask_daemon(&["state", "verify"]).exits(0);
        assert_eq!(host.lines("once").len(), 1, "{clock}: it ran again");
        daemon.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(daemon.ends(), 0);
    }
    host.apply().exits(0);
}

/// R3: a start with a clock 200 days ahead deletes neither the event log nor the history, and names the jump.
#[test]
fn a_jump_of_the_clock_deletes_no_records() {
    assert!(std::path::Path::new(FAKETIME).exists(), "Debian's package faketime is needed");
    let host = Host::with(
        "graph: g\nresources: {file: [{name: held, path: $DIR/held, content: right}]}\n",
    );
    host.write("held", "first");
    for clock in ["+0", "+200d", "+0"] {
        host.write("clock", clock);
        let mut daemon = start(&host);
        if clock == "+200d" {
            assert!(daemon.wait_for("clock_jump").message.contains("days ahead"));
        }
        daemon.wait_for("converged");
        host.write("held", "drift");
        host.wait_until("the repair", || host.read("held") == "right");
        daemon.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(daemon.ends(), 0);
    }
    let events = host.ask_daemon(&["events", "--json"]);
    let starts = events.stdout.lines().filter(|line| line.contains("\"run_start\"")).count();
    assert_eq!(starts, 3, "{events}");
    let changes = host.ask_daemon(&["history", "file[held]"]);
    assert!(changes.stdout.lines().count() >= 4, "{changes}");
}
