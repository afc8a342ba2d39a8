//! F-19: hung workers of the real program: a task is cut off and restarted; a hung thread is named, and systemd's
//! watchdog is not fed meanwhile.

use crate::daemon::{Daemon, Line};
use crate::host::{Host, LIMIT, is_root};
use crate::workers::{fault, runs_again, starts};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

const GRAPH: &str = r#"
graph: hangs
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

/// The workers that can hang, without the driver; `control` is last, since it carries the requests.
const WORKERS: [&str; 7] =
    ["recorder:file:$DIR/log.jsonl", "signals", "events", "lease", "store", "graph", "control"];

/// Starts a daemon with this hang limit for workers, in milliseconds, and a watchdog socket.
fn run(host: &Host, silence: &str) -> (Daemon, UnixDatagram) {
    let systemd = UnixDatagram::bind(host.path("notify")).expect("bound");
    let settings = "graph: graph.yaml\nstate_dir: state\nlog: json\nrecorders:\n- file: {path: $DIR/log.jsonl}\n";
    host.write("steadfast.yaml", host.full(settings));
    let mut command = host.bare(&["run", "--config", "$DIR/steadfast.yaml"]);
    command.env("STEADFAST_TEST_SILENCE", silence).env("WATCHDOG_USEC", "300000");
    command.env("NOTIFY_SOCKET", host.path("notify"));
    (Daemon::start(command, &host.path("")), systemd)
}

/// Returns true once the watchdog is fed, false if it is not fed for this time.
fn is_fed(systemd: &UnixDatagram, within: Duration) -> bool {
    let end = Instant::now() + within;
    let mut bytes = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        systemd.set_read_timeout(Some(left)).expect("set");
        let Ok(length) = systemd.recv(&mut bytes) else { continue };
        if String::from_utf8_lossy(&bytes[..length]).contains("WATCHDOG=1") {
            return true;
        }
    }
}

/// Waits until the watchdog is not fed for a second, ten times its interval.
fn starves(host: &Host, systemd: &UnixDatagram) {
    host.wait_until("the watchdog is not fed", || !is_fed(systemd, Duration::from_secs(1)));
}

/// F-19: a hung worker of each sort is named, cut off and restarted. The host stays converged, signals and commands
/// work, and `status` shows repeated hangs.
#[test]
fn each_worker_that_hangs_heals() {
    let host = Host::with(GRAPH);
    let (mut daemon, systemd) = run(&host, "3000");
    daemon.wait_for("converged");
    for starts in 2..=3 {
        for worker in WORKERS {
            fault(&host, &host.full(worker), "hang");
        }
        for worker in WORKERS {
            runs_again(&host, worker, starts);
        }
        host.write("a", "broken");
        host.wait_until("it is put back", || host.read("a") == "x");
        daemon.skip_to_now();
        daemon.signal(Signal::SIGUSR1).wait_for("paused");
        daemon.signal(Signal::SIGUSR2).wait_for("resumed");
        daemon.signal(Signal::SIGHUP).wait_for("loaded");
        host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    }
    assert!(daemon.count("worker_hangs") >= 2 * WORKERS.len(), "each was named");
    let status = host.ask_daemon(&["status"]);
    status.exits(0).prints("hangs: converged");
    for worker in ["control", "graph", "signals"] {
        status.prints(&format!("daemon: {worker}: failed 2 times within an hour: the worker hung"));
    }
    assert!(is_fed(&systemd, LIMIT));
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// F-19: the accept loop of the socket hangs, then the loop of the lease; neither has a heartbeat of its own. Each is
/// named and restarted.
#[test]
fn a_loop_that_stands_still_is_noticed() {
    let host = Host::with(GRAPH);
    let (mut daemon, _systemd) = run(&host, "3000");
    daemon.wait_for("converged");
    for (place, worker) in [("in:accept", "control"), ("in:lease", "lease")] {
        fault(&host, place, "hang");
        runs_again(&host, worker, 2);
        let named = |line: &Line| line.event == "worker_hangs" && line.message.starts_with(worker);
        assert!(daemon.line_or_end("it is named", named).is_some(), "it has ended");
    }
    host.write("a", "broken");
    host.wait_until("it is put back", || host.read("a") == "x");
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// F-19: a socket worker with a running loop that accepts no connection is restarted.
#[test]
fn a_socket_that_lets_nobody_in_is_noticed() {
    let host = Host::with(GRAPH);
    let (mut daemon, _systemd) = run(&host, "1500");
    daemon.wait_for("converged");
    fault(&host, "in:accept", "error");
    runs_again(&host, "control", 2);
    host.ask_daemon(&["workers"]).exits(0).prints("a connection has waited at the socket for");
    assert_eq!(daemon.count("worker_hangs"), 0, "it has not stood still");
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// F-19: the watchdog's own worker is restarted when it hangs.
#[test]
fn the_watchdog_worker_recovers() {
    let host = Host::with(GRAPH);
    let (mut daemon, systemd) = run(&host, "2000");
    daemon.wait_for("converged");
    assert!(is_fed(&systemd, LIMIT));
    fault(&host, "watchdog", "hang");
    daemon.wait_for("worker_hangs");
    runs_again(&host, "watchdog", 2);
    while is_fed(&systemd, Duration::from_millis(10)) {}
    assert!(is_fed(&systemd, LIMIT));
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// F-11: a stopped daemon, as in a suspend, continues: no worker counts as hung or is restarted, and missed ticks are
/// not repeated. The stop is longer than a worker's hang limit and its ten seconds of tolerance.
#[test]
fn a_suspend_is_no_hang_and_no_burst() {
    const STOPPED: Duration = Duration::from_secs(13);
    const WATCHED: Duration = Duration::from_secs(4);
    const INTERVAL: Duration = Duration::from_millis(200);
    let host = Host::with(
        r#"
graph: hangs
resources:
  timer: [{name: t, interval: 0.2}]
  file: [{name: a, path: $DIR/a, content: "x"}]
  exec:
  - {name: told, shell: /bin/sh, cmd: "echo x >> $DIR/told", refresh_only: true, subscribe: "timer[t]"}
"#,
    );
    let (mut daemon, systemd) = run(&host, "1000");
    host.wait_for_lines("told", 3);
    let before = starts(&host);
    assert!(before.len() >= WORKERS.len(), "{before:?}");
    daemon.signal(Signal::SIGSTOP);
    let stopped = Instant::now();
    host.wait_until("time has passed", || stopped.elapsed() >= STOPPED);
    let told = host.lines("told").len();
    let goes_on = Instant::now();
    daemon.signal(Signal::SIGCONT);
    host.wait_until("time has passed", || goes_on.elapsed() >= WATCHED);
    let runs = host.lines("told").len() - told;
    let due = goes_on.elapsed().as_millis() / INTERVAL.as_millis();
    let at_most = usize::try_from(due).expect("small") + 5;
    assert!((1..=at_most).contains(&runs), "{runs} runs where {due} were due");
    assert_eq!((starts(&host), daemon.count("worker_hangs")), (before, 0));
    host.write("a", "broken");
    host.wait_until("it is put back", || host.read("a") == "x");
    assert!(is_fed(&systemd, LIMIT));
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// F-19: a hung driver is named by the log, the report and `status`, and the watchdog is not fed.
#[test]
fn a_driver_that_hangs_is_named_and_starves_the_watchdog() {
    let host = Host::with(GRAPH);
    let (daemon, systemd) = run(&host, "1000");
    daemon.wait_for("converged");
    assert!(is_fed(&systemd, LIMIT));
    fault(&host, "driver", "hang");
    let line = daemon.wait_for("worker_hangs");
    assert!(line.message.starts_with("driver: the thread has not responded for"), "{line:?}");
    host.ask_daemon(&["workers"]).exits(0).prints("driver: running, 1 start, hangs for");
    starves(&host, &systemd);
    host.ask_daemon(&["status"])
        .exits(1)
        .says("the driver is busy")
        .says("s: the driver hangs; the systemd watchdog restarts the daemon, or kill the process");
}

/// A guard that stops a thread of a process, as if it hung, until it is dropped.
pub(crate) struct Stopped(Pid);

impl Stopped {
    pub(crate) fn thread(daemon: &Daemon, name: &str) -> Self {
        assert!(is_root(), "this test must run as root");
        let tasks = format!("/proc/{}/task", daemon.pid());
        let tasks = std::fs::read_dir(tasks).expect("it runs").flatten();
        let is_named = |path: &std::path::Path| {
            std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name)
        };
        let found = tasks.map(|task| task.path()).find(|path| is_named(path));
        let found = found.unwrap_or_else(|| panic!("no thread is named {name}"));
        let number = found.file_name().and_then(|name| name.to_str()?.parse().ok());
        let thread = Pid::from_raw(number.expect("a number"));
        ptrace::seize(thread, Options::empty()).expect("traced");
        ptrace::interrupt(thread).expect("interrupted");
        waitpid(thread, Some(WaitPidFlag::__WALL)).expect("stopped");
        Self(thread)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // The thread may have been killed with its process.
        if ptrace::detach(self.0, None).is_err() {}
    }
}

/// F-19, F-12: a hung thread of the store, then of the event log, is named by the log, the report and `status`. The
/// watchdog is not fed, and all recovers once the thread continues. Root only (ptrace).
#[test]
fn a_thread_that_hangs_is_named_and_starves_the_watchdog() {
    let host = Host::with(GRAPH);
    let (mut daemon, systemd) = run(&host, "3000");
    daemon.wait_for("converged");
    for (worker, thread) in [("store", "journal"), ("events", "events")] {
        host.wait_until("the watchdog is fed", || is_fed(&systemd, LIMIT));
        let stopped = Stopped::thread(&daemon, thread);
        let says = format!("{worker}: the thread has not responded for");
        let is_named =
            |line: &Line| line.event == "worker_hangs" && line.message.starts_with(&says);
        assert!(daemon.line_or_end(&says, is_named).is_some(), "it has ended");
        host.ask_daemon(&["workers"])
            .exits(0)
            .prints(&format!("{worker}: running, 1 start, hangs for"));
        host.ask_daemon(&["status"]).exits(0).prints(&format!("daemon: {worker}: hangs for"));
        starves(&host, &systemd);
        drop(stopped);
        daemon.wait_for("worker_responds");
        host.wait_until("the watchdog is fed again", || is_fed(&systemd, LIMIT));
        host.ask_daemon(&["status"]).exits(0).prints_nothing_of(&format!("daemon: {worker}"));
        host.write("a", "broken");
        host.wait_until("it is put back", || host.read("a") == "x");
    }
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}
