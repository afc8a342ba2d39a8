//! The loss of the lease in the real program: taken by somebody else, or not renewed.

use crate::daemon::{Daemon, Line};
use crate::host::Host;
use crate::workers::fault;

const GRAPH: &str = r#"
graph: leased
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
  - {name: b, path: $DIR/b, content: "x", after: "exec[long]"}
  exec:
  - name: long
    cmd: "echo begins >> $DIR/log; while ! test -e $DIR/go; do $DIR/sleep 0.05; done; echo ends >> $DIR/log"
    shell: /bin/sh
  - {name: told, cmd: "echo told >> $DIR/told", shell: /bin/sh, refresh_only: true, subscribe: "exec[long]"}
"#;

/// Starts a daemon with a lease of this lifetime, in milliseconds.
fn run(host: &Host, lifetime: &str) -> Daemon {
    let mut command = host.command(&["run", "--log", "json"]);
    command.env("STEADFAST_TEST_LEASE", lifetime);
    Daemon::start(command, &host.path(""))
}

/// Changes the file until its repair is refused: the driver can repair it once more before it hears of the loss.
fn break_until_refused(host: &Host, daemon: &Daemon) {
    host.wait_until("nothing is begun", || {
        host.write("a", "broken");
        host.wait_until("it is put back, or not", || {
            host.read("a") == "x" || daemon.count("failed") > 0
        });
        daemon.count("failed") > 0
    });
}

/// Starts a daemon that loses the lease while a command runs; returns once the command has ended and all else waits.
fn without_the_lease(host: &Host) -> Daemon {
    let daemon = run(host, "4000");
    daemon.wait_for_of("changed", "file[a]");
    host.wait_for_lines("log", 1);
    fault(host, "lease", "lost");
    let is_loss = |message: &str| message.contains("no changes are started");
    let lost = daemon
        .line_or_end("the loss", |line| line.event == "lease" && is_loss(&line.message))
        .expect("it goes on");
    assert!(lost.message.contains("somebody else has the lease"), "{lost:?}");
    break_until_refused(host, &daemon);
    let refused = daemon.wait_for_of("failed", "file[a]");
    assert!(refused.message.contains("no changes are started without the lease"), "{refused:?}");
    assert_eq!(host.lines("log"), ["begins"], "what runs goes on");
    host.write("go", "");
    // The change is reported once its end is durable; its dependents may be rejected before that.
    daemon.wait_for_of("changed", "exec[long]");
    for resource in ["file[b]", "exec[told]"] {
        let mut log = daemon.log().into_iter();
        let is_it = |line: &Line| line.event == "failed" && line.resource == resource;
        if !log.any(|line| is_it(&line)) {
            daemon.wait_for_of("failed", resource);
        }
    }
    host.ask_daemon(&["status"]).exits(1).prints("no changes are started without the lease");
    assert_eq!(host.lines("log"), ["begins", "ends"]);
    assert_eq!(host.read("a"), "broken");
    assert!(!host.exists("b") && !host.exists("told"));
    daemon
}

#[track_caller]
fn all_is_done(host: &Host) {
    assert_eq!(host.lines("log"), ["begins", "ends"], "it is known to have run");
    assert_eq!((host.read("a"), host.read("b")), ("x".to_owned(), "x".to_owned()));
    assert_eq!(host.lines("told"), ["told"]);
}

/// C-4: after the loss, active runs end and are recorded, nothing begins, and the reason is reported; with a new
/// lease the rejected runs are done.
#[test]
fn rejected_runs_are_done_with_a_new_lease() {
    let host = Host::with(GRAPH);
    let mut daemon = without_the_lease(&host);
    fault(&host, "lease", "found");
    daemon.wait_for("converged");
    all_is_done(&host);
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
    run(&host, "4000").wait_for("converged");
    all_is_done(&host);
}

/// C-4, B-10: a run that ended without the lease is recorded: after a kill the next daemon does the rest, and nothing
/// twice.
#[test]
fn runs_ended_without_the_lease_outlive_the_daemon() {
    let host = Host::with(GRAPH);
    without_the_lease(&host).kill_with_children();
    host.run(&[]).wait_for("converged");
    all_is_done(&host);
}

/// C-6: with a hung renewal, as in a machine's sleep, no loss is reported; each begin notices by the clock that the
/// lease has expired.
#[test]
fn a_lease_that_nobody_renews_ends_by_itself() {
    let host = Host::with(&GRAPH.replace(", after: \"exec[long]\"", ""));
    let daemon = run(&host, "4000");
    daemon.wait_for_all("changed", &["file[a]", "file[b]"]);
    fault(&host, "lease", "hang");
    break_until_refused(&host, &daemon);
    let refused = daemon.wait_for_of("failed", "file[a]");
    assert!(refused.message.contains("the lease expired without being renewed"), "{refused:?}");
    assert_eq!(host.read("a"), "broken");
}
