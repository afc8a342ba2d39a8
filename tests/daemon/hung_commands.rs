//! Commands that do not answer occupy no thread (E-6): other resources converge meanwhile.

use crate::host::Host;
use nix::sys::signal::Signal::SIGTERM;
use std::net::TcpListener;

/// The number of downloads from a server that never answers. Each is a sequence of files and commands.
const HUNG: usize = 200;

/// More than the threads of a daemon: those that start processes are at most 64, however many processes there are.
const THREADS: usize = HUNG / 2;

#[test]
fn two_hundred_hung_commands_occupy_no_thread() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/never", server.local_addr().expect("an address"));
    let download = |number: usize| {
        format!(
            "  - {{name: $DIR/{number}, url: \"{url}\", checksum: \"sha256:{}\"}}\n",
            "0".repeat(64)
        )
    };
    let downloads: String = (0..HUNG).map(download).collect();
    let host = Host::with(&format!(
        "graph: hung\nresources:\n  file:\n  - {{name: $DIR/fine, content: x}}\n  fetch:\n{downloads}"
    ));
    let mut daemon = host.run(&["--grace", "1"]);
    let parent = daemon.pid().to_string();
    let running = || {
        let all = std::process::Command::new("pgrep").args(["-c", "-P", &parent]).output();
        let count = String::from_utf8_lossy(&all.expect("pgrep runs").stdout).trim().parse();
        count.unwrap_or(0)
    };
    host.wait_until("all commands run", || running() >= HUNG);
    for content in ["drift", "more"] {
        host.write("fine", content);
        host.wait_until("the file is repaired", || host.read("fine") == "x");
    }
    // The threads that worked on the files before the commands end after ten idle seconds.
    let tasks = format!("/proc/{}/task", daemon.pid());
    let threads = || std::fs::read_dir(&tasks).expect("a list").count();
    host.wait_until("the commands occupy no thread", || threads() < THREADS);
    assert!(running() >= HUNG, "the commands still run");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
}
