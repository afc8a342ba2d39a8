//! Starts, stops and restarts of the service, and its return after every kind of end.

use crate::host::{Host, within};
use crate::service::{GRAPH, ONE_FILE};
use std::time::Duration;

#[test]
fn start_makes_what_is_declared_and_stop_leaves_no_process() {
    let host = Host::holding(ONE_FILE);
    assert_eq!(host.property("ActiveState"), "active");
    host.until("a status line with counts", || {
        host.property("StatusText").contains(|letter: char| letter.is_ascii_digit())
    });
    let daemon = |line: &String| line.starts_with("/usr/bin/steadfast run ");
    assert!(host.processes().iter().any(daemon), "{:#?}", host.processes());

    assert_eq!(host.systemctl("stop").code, Some(0));
    assert_eq!(host.property("ActiveState"), "inactive");
    assert_eq!(host.property("Result"), "success");
    assert_eq!(host.property("ExecMainStatus"), "0");
    assert!(!host.processes().iter().any(daemon), "{:#?}", host.processes());
    host.shell("rm /etc/held");
    assert!(host.read("/etc/held").is_none(), "held by nobody, and yet it came back");
}

/// The graph comes through a pipe, so that the daemon cannot have loaded it before the test writes it.
#[test]
fn it_is_ready_only_after_the_first_graph_is_loaded() {
    let host = Host::boot();
    host.adjust("ExecStart=\nExecStart=/usr/bin/steadfast run -\nStandardInput=file:/run/pipe");
    host.shell("mkfifo --mode=0600 /run/pipe");
    host.shell("systemctl start --no-block steadfast.service");
    host.write("/run/graph.yaml", ONE_FILE);
    // Both ends of the pipe wait for each other, and systemd opens its end before the daemon exists: the script waits
    // for the daemon before it writes.
    let script = "exec 3>/run/pipe
        until systemctl show --value -p MainPID steadfast.service | grep -v '^0$' >/run/pid &&
            grep -q '^/usr/bin/steadfast' /proc/$(cat /run/pid)/cmdline; do sleep 0.02; done
        systemctl is-active steadfast.service >/run/before || true
        cat /run/graph.yaml >&3";
    let answer = host.run(&["timeout", "60", "sh", "-euc", script]);
    assert_eq!(answer.code, Some(0), "{}{}", answer.stderr, host.report());
    assert_eq!(host.read("/run/before").as_deref(), Some("activating\n"));
    host.until("the service to be ready", || host.property("ActiveState") == "active");
    host.until("the graph to be applied", || host.is_held());
}

#[test]
fn restart_is_another_daemon_on_the_same_state() {
    let host = Host::holding(ONE_FILE);
    let before = host.daemon();
    assert_eq!(host.systemctl("restart").code, Some(0), "{}", host.report());
    assert_ne!(host.daemon(), before);
    assert_eq!(host.property("ActiveState"), "active");
    host.write("/etc/held", "drift");
    host.until("the drift to be repaired", || host.is_held());
}

#[test]
fn a_killed_daemon_comes_back_and_repairs_what_happened_meanwhile() {
    let host = Host::holding(ONE_FILE);
    let before = host.daemon();
    // One step, so that the drift falls between two daemons: a stopped process sees nothing.
    host.shell(&format!("kill -STOP {before}; echo drift >/etc/held; kill -KILL {before}"));
    host.until("another daemon", || ![0, before].contains(&host.daemon()));
    host.until("the drift to be repaired", || host.is_held());
    host.until("the service to be ready", || host.property("ActiveState") == "active");
    assert_eq!(host.property("NRestarts"), "1");
}

#[test]
fn the_watchdog_is_fed_and_replaces_a_daemon_that_hangs() {
    let host = Host::boot();
    host.adjust("WatchdogSec=3s");
    host.write(GRAPH, ONE_FILE);
    host.start();
    let fed = || host.property("WatchdogTimestampMonotonic");
    for _ in 0..3 {
        let last = fed();
        host.until("the watchdog to be fed again", || fed() != last);
    }
    assert_eq!(host.property("NRestarts"), "0");

    let before = host.daemon();
    host.signal("STOP");
    host.until("another daemon", || ![0, before].contains(&host.daemon()));
    let journal = host.shell("journalctl --no-pager --output=cat UNIT=steadfast.service");
    assert!(journal.contains("Watchdog timeout"), "{journal}");
    host.until("the service to be ready", || host.property("ActiveState") == "active");
}

/// F-12, F-19: only the driver's thread hangs. The watchdog is not fed, systemd starts another daemon, and the drift
/// is repaired. Needs a program built with fault injection.
#[cfg(feature = "fault-injection")]
#[test]
fn a_driver_that_hangs_alone_is_replaced() {
    let host = Host::boot();
    host.adjust("WatchdogSec=3s");
    host.write(GRAPH, ONE_FILE);
    host.start();
    host.until("the graph to be applied", || host.is_held());
    let before = host.daemon();
    host.put_fault("driver", "hang");
    host.shell("echo drift >/etc/held");
    host.until("another daemon", || ![0, before].contains(&host.daemon()));
    host.until("the drift to be repaired", || host.is_held());
    let journal = host.shell("journalctl --no-pager --output=cat UNIT=steadfast.service");
    assert!(journal.contains("Watchdog timeout"), "{journal}");
}

#[test]
fn a_broken_graph_fails_the_start_once() {
    let host = Host::boot();
    host.write(GRAPH, "graph: host\nresources:\n  fiel:\n    - name: /etc/held\n");
    assert_ne!(host.systemctl("start").code, Some(0));
    // A start that is to be repeated would be `activating` (auto-restart) here.
    assert_eq!(host.property("ActiveState"), "failed");
    assert_eq!(host.property("ExecMainStatus"), "65", "{}", host.report());
    assert_eq!(host.property("NRestarts"), "0");
    let told = host.log().join("\n");
    assert!(told.contains(GRAPH) && told.contains("fiel"), "what is broken, and where:\n{told}");
}

#[test]
fn a_second_daemon_is_refused_and_not_tried_again() {
    let host = Host::boot();
    host.write(GRAPH, ONE_FILE);
    let first = "systemd-run --quiet --unit=first --service-type=notify \
                 --property=StateDirectory=steadfast /usr/bin/steadfast run";
    host.shell(&format!("{first} {GRAPH}"));
    assert_ne!(host.systemctl("start").code, Some(0));
    assert_eq!(host.property("ActiveState"), "failed");
    assert_eq!(host.property("ExecMainStatus"), "75", "{}", host.report());
    assert_eq!(host.property("NRestarts"), "0");
    host.shell("systemctl is-active first.service");
}

#[test]
fn a_second_stop_cuts_off_a_long_command_and_leaves_nothing() {
    let host = Host::boot();
    let graph = r#"
graph: host
resources:
  exec:
    - name: long
      shell: /bin/sh
      cmd: "sleep 3217; true"
"#;
    host.write(GRAPH, graph);
    host.start();
    let sleeper = |line: &String| line.starts_with("sleep 3217");
    host.until("the command to run", || host.processes().iter().any(sleeper));
    host.shell("systemctl stop --no-block steadfast.service");
    // The kernel merges two signals that arrive before a process runs, so the test waits for the first one to be
    // logged.
    host.until("the first to be heard", || host.log().iter().any(|line| line.contains("stopping")));
    host.signal("TERM");
    let prompt = Duration::from_secs(25);
    assert!(
        within(prompt, || host.property("ActiveState") == "inactive"),
        "a second TERM waits like the first\n{}",
        host.report()
    );
    assert!(!host.processes().iter().any(sleeper), "{:#?}", host.processes());
}
