//! An unread log: a full pipe and a hung journal delay no repair, no reply and no stop.

use crate::host::{Host, ends, is_root};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const GRAPH: &str = "
graph: stalls
resources:
  file:
  - {name: a, path: $DIR/a, content: \"x\\n\"}
  - {name: b, path: $DIR/b, content: \"x\\n\"}
  - {name: c, path: $DIR/c, content: \"x\\n\"}
";

/// More time than any stop takes that waits for nothing; a daemon that waited for its log would never end.
const SOON: Duration = Duration::from_secs(20);

/// A daemon with an unread log, which never outlives the test.
struct Unread(Child);

impl Unread {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).expect("it runs");
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Creates a full pipe and returns both ends.
fn full_pipe() -> (File, File) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a pipe");
    let (read, mut write) = (File::from(read), File::from(write));
    let full = loop {
        if let Err(error) = write.write(&[b'\n'; 4096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    for end in [&read, &write] {
        rustix::io::ioctl_fionbio(end, false).expect("set");
    }
    (read, write)
}

/// Starts a daemon with a full pipe as standard error; returns it with the reading end.
fn on_full_pipe(host: &Host, mut run: Command) -> (Unread, File) {
    let (read, write) = full_pipe();
    let child = run.stdout(Stdio::null()).stderr(write).spawn().expect("started");
    host.wait_until("it listens", || host.exists("state/control.socket"));
    (Unread(child), read)
}

/// Asserts that repairs happen and requests are answered.
#[track_caller]
fn goes_on(host: &Host) {
    for file in ["a", "b", "c"] {
        host.wait_until("it is made", || host.read(file) == "x\n");
        host.remove(file);
        host.wait_until("it is put right", || host.read(file) == "x\n");
    }
    host.wait_until("it answers", || host.ask_daemon(&["status"]).code == 0);
}

/// F1: repairs, status and the stop do not wait for a full pipe.
#[test]
fn a_full_pipe_delays_nothing() {
    let host = Host::with(GRAPH);
    let (mut daemon, _read) = on_full_pipe(&host, host.command(&["run", "--grace", "3"]));
    goes_on(&host);
    daemon.signal(Signal::SIGTERM);
    assert_eq!(ends(&mut daemon.0, SOON), 0);
}

/// F1: a second TERM ends a daemon at once, also with an active run and a full pipe.
#[test]
fn a_second_stop_is_obeyed_beside_a_full_pipe() {
    let graph = format!(
        "{GRAPH}  exec:\n  - {{name: e, shell: /bin/sh, cmd: \"touch $DIR/begun; $DIR/sleep 600\"}}\n"
    );
    let host = Host::with(&graph);
    let (mut daemon, _read) = on_full_pipe(&host, host.command(&["run", "--grace", "600"]));
    host.wait_until("the command runs", || host.exists("begun"));
    daemon.signal(Signal::SIGTERM);
    host.wait_until("it is stopping", || host.ask_daemon(&["status"]).stdout.contains("stopping"));
    daemon.signal(Signal::SIGTERM);
    ends(&mut daemon.0, SOON);
}

/// F1: lines without room are dropped; their number is shown while nobody reads, and logged afterwards.
#[test]
fn dropped_lines_are_counted() {
    let host = Host::with(GRAPH);
    let mut run = host.command(&["run", "--log", "json"]);
    run.env("STEADFAST_TEST_LOG_LINES", "5").env("STEADFAST_LOG", "debug");
    let (mut daemon, mut read) = on_full_pipe(&host, run);
    goes_on(&host);
    let status = host.ask_daemon(&["status"]).stdout;
    assert!(
        status.contains("daemon: log: standard error is not read; lines dropped so far: "),
        "{status}"
    );
    let log = std::thread::spawn(move || {
        let mut log = String::new();
        read.read_to_string(&mut log).expect("text");
        log
    });
    host.wait_until("it is logged", || !host.ask_daemon(&["status"]).stdout.contains("log:"));
    daemon.signal(Signal::SIGTERM);
    assert_eq!(ends(&mut daemon.0, SOON), 0);
    let log = log.join().expect("read to the end");
    let lines: Vec<serde_json::Value> = log
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).expect("whole lines"))
        .collect();
    let told = lines.iter().position(|line| line["dropped"].as_u64().is_some());
    let told = told.expect("the number of dropped lines");
    assert_eq!(lines[told]["event"], "log");
    assert!((1..=7).contains(&told), "after the lines that had room: {told}");
    assert!(lines[told + 1..].iter().any(|line| line["event"] == "stopped"), "{log}");
}

/// F1: a journal that accepts nothing delays neither a daemon nor the start of the next one.
#[test]
fn a_journal_that_hangs_delays_nothing() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    host.make_directory("journal");
    let journal = UnixDatagram::bind(host.path("journal/socket")).expect("bound");
    let sender = UnixDatagram::unbound().expect("a socket");
    sender.set_nonblocking(true).expect("set");
    sender.connect(host.path("journal/socket")).expect("connected");
    while sender.send(b"MESSAGE=x\n").is_ok() {}
    let enter = "mount -t tmpfs none /run && mkdir -p /run/systemd/journal && \
                 mount --bind \"$0\" /run/systemd/journal && exec \"$@\"";
    for _ in 0..2 {
        let run = host.command(&["run", "--log", "journald", "--grace", "3"]);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", enter]);
        command.arg(host.path("journal")).arg(run.get_program()).args(run.get_args());
        command.stdout(Stdio::null()).stderr(Stdio::null()).env_remove("STEADFAST_LOG");
        let mut daemon = Unread(command.spawn().expect("started"));
        goes_on(&host);
        daemon.signal(Signal::SIGTERM);
        assert_eq!(ends(&mut daemon.0, SOON), 0);
    }
    drop(journal);
}
