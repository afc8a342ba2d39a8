//! The memory of a daemon at rest, as `ps` shows it.

use crate::host::Host;

/// The allocator's options are set: without them the anonymous memory is at least 60 MB, in unused huge pages.
#[test]
fn a_daemon_at_rest_keeps_little_memory() {
    let mut graph = "graph: memory\nresources:\n  file:\n".to_owned();
    for number in 0..300 {
        graph.push_str(&format!(
            "  - {{name: f{number}, path: $DIR/f{number}, content: \"{number}\"}}\n"
        ));
    }
    let host = Host::with(&graph);
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    let limit = 30_000;
    let anonymous = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid()));
        let status = status.expect("the daemon runs");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
        let kilobytes = line.trim().trim_end_matches("kB").trim().parse::<u32>();
        kilobytes.expect("a number")
    };
    host.wait_until("it keeps little memory", || anonymous() < limit);
}
