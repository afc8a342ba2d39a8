//! The status line of systemd, as a simulated notification socket receives it.

use crate::daemon::Daemon;
use crate::host::Host;
use nix::sys::signal::Signal;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

const GRAPH: &str = r#"
graph: status-line
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

/// Reads datagrams until a status line contains these words.
fn wait_for_status(host: &Host, systemd: &UnixDatagram, words: &str) {
    systemd.set_read_timeout(Some(Duration::from_millis(100))).expect("set");
    let (mut bytes, mut seen) = ([0; 4096], Vec::new());
    host.wait_until(&format!("the status line says `{words}`"), || {
        let Ok(length) = systemd.recv(&mut bytes) else { return false };
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        seen.push(text);
        seen.iter().any(|text| text.contains("STATUS=") && text.contains(words))
    });
}

/// The status follows a resume and a rejected reload at once; no watchdog feeds it here (audit M-39).
#[test]
fn the_status_line_follows_resume_and_rejection() {
    let host = Host::with(GRAPH);
    let systemd = UnixDatagram::bind(host.path("notify")).expect("bound");
    let mut command = host.command(&["run", "--log", "json"]);
    command.env("NOTIFY_SOCKET", host.path("notify"));
    let daemon = Daemon::start(command, &host.path(""));
    wait_for_status(&host, &systemd, "converged: 1 resources");
    daemon.signal(Signal::SIGUSR1);
    wait_for_status(&host, &systemd, "paused");
    daemon.signal(Signal::SIGUSR2);
    wait_for_status(&host, &systemd, "converged: 1 resources");
    host.graph("graph: status-line\nresources: 7\n");
    daemon.signal(Signal::SIGHUP);
    wait_for_status(&host, &systemd, "the graph file was rejected");
    host.graph(GRAPH);
    daemon.signal(Signal::SIGHUP);
    wait_for_status(&host, &systemd, "converged: 1 resources");
}
