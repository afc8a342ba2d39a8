//! A host with a file system that does not answer (F-12).

use crate::host::Host;
use crate::hung_fs::Hung;
use nix::sys::signal::Signal::{SIGHUP, SIGTERM};
use std::time::{Duration, Instant};

const GRAPH: &str = r#"
graph: hung
resources:
  file:
  - {name: held, path: $DIR/hung/file, content: "x"}
  - {name: below, path: $DIR/after, content: "x", after: "file[held]"}
  - {name: fine, path: $DIR/fine/file, content: "x"}
  - {name: folder, path: $DIR/fine/, before: "file[fine]"}
"#;

fn is(host: &Host, content: &str) -> bool {
    host.exists("fine/file") && host.read("fine/file") == content
}

/// F-12: a resource on the hung file system waits, and so do its dependents. All others converge as usual, a reload
/// is accepted, and two stop requests are obeyed at once.
#[test]
fn only_what_lies_on_it_waits() {
    let host = Host::with(GRAPH);
    host.make_directory("hung");
    let mut hung = Hung::over(&host.path("hung"));
    let mut daemon = host.run(&["--grace", "1"]);
    host.wait_until("the others are made", || is(&host, "x"));
    for content in ["drift", "more"] {
        host.write("fine/file", content);
        host.wait_until("it is repaired", || is(&host, "x"));
    }
    assert!(!host.exists("after"), "it waits for who waits");
    let graph = GRAPH.replace("fine/file, content: \"x\"", "fine/file, content: \"new\"");
    host.graph(&graph);
    daemon.signal(SIGHUP);
    host.wait_until("the new graph runs", || is(&host, "new"));

    let began = Instant::now();
    daemon.signal(SIGTERM).wait_for("stopping");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    hung.end();
}
