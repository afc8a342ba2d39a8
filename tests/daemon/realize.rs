//! A file created by `realize` while a new graph without it waits: it is owned and removed later.

use crate::host::Host;
use nix::sys::signal::Signal::SIGHUP;

const SLOW: &str =
    "{name: slow, shell: /bin/sh, cmd: \"until test -e $DIR/go; do $DIR/sleep 0.02; done\"}";

fn graph(files: &str) -> String {
    format!("graph: g\nresources:\n  exec:\n  - {SLOW}\n{files}")
}

/// B-16, E-17: a file that `realize` has created before a reload drops it does not stay forever: it is reported,
/// `status` names it, and the next reload removes it, also after `kill -9`.
#[test]
fn a_file_made_during_a_pending_reload_is_removed_by_the_next() {
    for kills in [false, true] {
        let made = "  file:\n  - {name: f, path: $DIR/f, content: x, after: \"exec[slow]\", \
                    meta: {realize: true, on_remove: delete}}\n";
        let host = Host::with(&graph(made));
        let mut daemon = host.run_telling_starts(&[]);
        daemon.wait_for_of("started", "exec[slow]");
        host.graph(&graph(""));
        let line = daemon.signal(SIGHUP).wait_for("loading");
        assert!(line.message.contains("file[f]"), "{line:?}");
        host.write("go", "");
        let line = daemon.wait_for_of("undeclared", "file[f]");
        assert!(line.message.contains("`steadfast reload` removes it"), "{line:?}");
        assert_eq!(host.read("f"), "x", "it was made");
        if kills {
            daemon.kill();
            daemon = host.run(&[]);
        }
        daemon.wait_for("converged");
        let mut status = host.bare(&["status"]);
        status.arg("--state-dir").arg(host.path("state"));
        host.finish(status).prints("pending removal: file[f]");
        daemon.skip_to_now();
        daemon.signal(SIGHUP).wait_for_of("changed", "file[f]");
        daemon.wait_for_of("removed", "file[f]");
        assert!(!host.exists("f"));
    }
}
