//! A failure counts only after a check of the parents: the event of a child can come before theirs.

use crate::daemon::Daemon;
use crate::host::Host;
use std::process::Command;

const META: &str = "meta: {on_conflict: win}";

/// Creates a tree of three directories, each with a file.
fn tree() -> Host {
    let text = "graph: tree\nresources:\n  file:\n".to_owned();
    let lines = ["d", "d/e", "d/e/f"].map(|directory| {
        format!(
            "  - {{name: {directory}, path: $DIR/{directory}/, state: exists, {META}}}\n  - {{name: {directory}/x, path: $DIR/{directory}/x, content: \"x\\n\", {META}}}\n"
        )
    });
    Host::with(&(text + &lines.concat()))
}

fn is_whole(host: &Host) -> bool {
    ["d/x", "d/e/x", "d/e/f/x"]
        .iter()
        .all(|path| std::fs::read_to_string(host.path(path)).is_ok_and(|content| content == "x\n"))
}

fn has_not_failed(daemon: &Daemon) {
    for line in daemon.log() {
        assert!(!["failed", "retrying"].contains(&line.event.as_str()), "{line:?}");
    }
}

#[test]
fn a_removed_tree_comes_back_without_a_failure() {
    let host = tree();
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    for _ in 0..20 {
        // A repair can happen during the removal: then something is left, and the tree is soon whole.
        Command::new("rm").arg("-rf").arg(host.path("d")).status().expect("rm runs");
        host.wait_until("the tree is whole", || is_whole(&host));
    }
    has_not_failed(&daemon);
    let events = host.ask_daemon(&["events", "--json"]).stdout;
    assert!(!events.contains("\"failed\""), "{events}");
}

/// A polled parent gets no event for an hour: its failing child requests its check.
#[test]
fn a_parent_that_is_polled_is_made_again_for_its_child() {
    let host = Host::with(
        "graph: polled\nresources:\n  file:\n  - {name: d, path: $DIR/d/, state: exists, meta: {poll: 3600}}\n  - {name: x, path: $DIR/d/x, content: \"x\\n\"}\n",
    );
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    // In one step: a repair of the child would stop a removal halfway.
    host.rename("d", "removed");
    host.wait_until("the child is back", || {
        std::fs::read_to_string(host.path("d/x")).is_ok_and(|content| content == "x\n")
    });
    has_not_failed(&daemon);
}

/// A failure counts if no parent differs, and the parent is checked once.
#[test]
fn a_failure_of_its_own_counts() {
    let host = Host::with(
        "graph: own\nresources:\n  file:\n  - {name: d, path: $DIR/d/, state: exists}\n  exec:\n  - {name: bad, shell: /bin/sh, cmd: \"exit 3\", after: \"file[d]\"}\n",
    );
    let daemon = host.run_telling_starts(&["--sweep", "0"]);
    daemon.wait_for_of("failed", "exec[bad]");
    // The first run may follow the creation of the parent at once; the parent of this one has settled long before.
    daemon.skip_to_now();
    host.ask_daemon(&["retry", "exec[bad]"]).exits(0);
    daemon.wait_for_of("asking", "exec[bad]");
    daemon.wait_for_of("failed", "exec[bad]");
}
