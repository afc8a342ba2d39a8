//! Stops by TERM and INT: active runs end, nothing starts; a second signal stops at once; no process is left behind.

use crate::daemon::Daemon;
use crate::host::{Host, is_root};
use crate::process;
use nix::sys::signal::Signal::{SIGINT, SIGTERM};
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

const LONG: &str = r#"
graph: long
resources:
  exec:
  - {name: long, shell: /bin/sh, cmd: "echo x >> $DIR/began; $DIR/sleep SECONDS; echo x >> $DIR/ended"}
  file: [{name: next, path: $DIR/next, after: "exec[long]"}]
"#;

fn long(seconds: &str) -> Host {
    Host::with(&LONG.replace("SECONDS", seconds))
}

#[track_caller]
fn leaves_no_process(host: &Host) {
    // A killed process disappears a moment after the kill.
    host.wait_until("no process is left", || host.processes().is_empty());
}

/// E-16: the active command ends first; nothing starts after it.
#[test]
fn a_stop_during_a_ten_second_exec_is_in_order() {
    let host = long("10");
    let mut daemon = host.run(&[]);
    host.wait_for_lines("began", 1);
    let line = daemon.signal(SIGTERM).wait_for("stopping");
    assert!(line.message.contains("exec[long]"), "it says whom it waits for: {line:?}");
    assert_eq!(daemon.ends(), 0);
    assert_eq!(host.lines("ended").len(), 1, "it was let end");
    assert!(!host.exists("next"), "and nothing was started after it");
    assert!(!daemon.wait_for("stopped").message.contains("interrupted"));
    assert!(host.processes().is_empty());
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(host.lines("began").len(), 1, "it had ended, and is not run again");
    assert!(host.exists("next"));
}

/// R-15, R-16: a second stop is obeyed at once and kills all child processes.
#[test]
fn a_second_stop_is_at_once() {
    let host = long("1000");
    let mut daemon = host.run(&[]);
    host.wait_for_lines("began", 1);
    daemon.signal(SIGTERM).wait_for("stopping");
    assert_eq!(host.processes().len(), 2, "a shell and its sleep: {:?}", host.processes());
    let again = Instant::now();
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    assert!(again.elapsed() < Duration::from_secs(4), "at once: {:?}", again.elapsed());
    assert!(daemon.wait_for("stopped").message.contains("interrupted: exec[long]"));
    leaves_no_process(&host);
    assert!(!host.exists("ended") && !host.exists("next"));
}

/// E-16: after the grace period an active run is cut off and recorded as interrupted: it runs again later.
#[test]
fn a_stop_waits_no_longer_than_its_grace() {
    let host = long("1000");
    let mut daemon = host.run(&["--grace", "1"]);
    host.wait_for_lines("began", 1);
    let began = Instant::now();
    daemon.signal(SIGTERM).wait_for("stopping");
    assert_eq!(daemon.ends(), 0);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(950) && took < Duration::from_secs(20), "{took:?}");
    leaves_no_process(&host);
    let _daemon = host.run(&[]);
    host.wait_for_lines("began", 2);
}

/// R-16: a command that ignores TERM is killed with its child processes.
#[test]
fn a_command_that_ignores_term_is_killed() {
    let host = Host::with(
        r#"
graph: deaf
resources:
  exec:
  - name: deaf
    shell: /bin/sh
    cmd: "trap '' TERM HUP INT; $DIR/sleep 1000 & $DIR/sleep 1000 & echo x > $DIR/began; wait; wait"
"#,
    );
    let mut daemon = host.run(&[]);
    host.wait_for_lines("began", 1);
    daemon.signal(SIGTERM).wait_for("stopping");
    let again = Instant::now();
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    assert!(again.elapsed() < Duration::from_secs(8), "{:?}", again.elapsed());
    leaves_no_process(&host);
}

/// R-16: watch commands end with the daemon.
#[test]
fn watch_commands_are_not_left_behind() {
    let host = Host::with(
        r#"
graph: watching
resources:
  exec:
  - {name: w, args: ["true"], watchcmd: "echo ready; exec $DIR/sleep 1000", watchshell: /bin/sh}
"#,
    );
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("the watch command runs", || {
        host.processes().iter().any(|p| p.1.contains("sleep 1000"))
    });
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    leaves_no_process(&host);
}

/// E-16: an idle daemon stops at once, by either signal, without further changes.
#[test]
fn a_daemon_at_rest_stops_at_once() {
    for signal in [SIGTERM, SIGINT] {
        let host = Host::with("graph: g\nresources: {file: [{name: $DIR/f, content: x}]}\n");
        let mut daemon = host.run(&[]);
        daemon.wait_for("converged");
        let began = Instant::now();
        daemon.signal(signal);
        assert_eq!(daemon.ends(), 0);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        host.write("f", "mine");
        assert_eq!(host.read("f"), "mine");
    }
}

/// R-15: `apply` stops in two steps too, and unfinished work is a failure.
#[test]
fn an_interrupted_apply_fails() {
    let host = long("1000");
    let command = host.command(&["apply", "--log", "json"]);
    let mut apply = Daemon::start(command, &host.path(""));
    host.wait_for_lines("began", 1);
    // The kernel merges two signals of one moment.
    apply.signal(SIGINT).wait_for("stopping");
    apply.signal(SIGINT);
    assert_eq!(apply.ends_within(Duration::from_secs(20)), 1);
    leaves_no_process(&host);
    assert!(!host.exists("next"));
}

/// R-15: an interrupt during the reading of the graph is not lost.
#[test]
fn an_interrupt_at_start_up_is_latched() {
    let host = Host::with("graph: unused\n");
    for words in [&["run"][..], &["apply"]] {
        let mut all = words.to_vec();
        all.extend(["--state-dir", "$DIR/state", "-"]);
        let mut command = host.bare(&all);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("started");
        host.wait_until("it listens for signals", || process::caught(child.id()) & 0b10 != 0);
        let pid = nix::unistd::Pid::from_raw(child.id().try_into().expect("a number"));
        nix::sys::signal::kill(pid, SIGINT).expect("it runs");
        let mut stdin = child.stdin.take().expect("piped");
        let text = host
            .full("graph: late\nresources: {exec: [{name: e, args: [$DIR/sleep, \"1000\"]}]}\n");
        // A program that has ended does not read its input.
        drop(stdin.write_all(text.as_bytes()));
        drop(stdin);
        let began = Instant::now();
        crate::host::ends(&mut child, Duration::from_secs(45));
        assert!(began.elapsed() < Duration::from_secs(10), "{words:?}: {:?}", began.elapsed());
        leaves_no_process(&host);
    }
}

/// R-15: an interrupt ends the wait for a graph that never comes.
#[test]
fn an_interrupt_ends_the_wait_for_a_graph() {
    let host = Host::with("graph: unused\n");
    for words in [&["run"][..], &["apply"]] {
        let mut all = words.to_vec();
        all.extend(["--state-dir", "$DIR/state", "-"]);
        let mut command = host.bare(&all);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("started");
        host.wait_until("it listens for signals", || process::caught(child.id()) & 0b10 != 0);
        let pid = nix::unistd::Pid::from_raw(child.id().try_into().expect("a number"));
        nix::sys::signal::kill(pid, SIGINT).expect("it runs");
        crate::host::ends(&mut child, Duration::from_secs(10));
    }
}

/// Child processes of another user are ended too. Needs root.
#[test]
fn children_of_another_user_are_ended_too() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(
        "graph: g\nresources: {exec: [{name: e, args: [$DIR/sleep, \"1000\"], user: nobody}]}\n",
    );
    host.chmod("", 0o755);
    let mut daemon = host.run(&[]);
    host.wait_until("it sleeps", || host.processes().len() == 1);
    daemon.signal(SIGTERM).wait_for("stopping");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    leaves_no_process(&host);
}
