//! Notify: what is told of a change runs again, exactly as often as there was something to tell.

use crate::host::{Host, is_root};
use nix::sys::signal::Signal::SIGHUP;

const GRAPH: &str = r#"
graph: told
resources:
  file: [{name: f, path: $DIR/f, content: "f\n"}]
  exec:
  - {name: told, shell: /bin/sh, cmd: "echo x >> $DIR/told", subscribe: "file[f]"}
  - {name: only, shell: /bin/sh, cmd: "echo x >> $DIR/only", refresh_only: true, subscribe: "file[f]"}
  - {name: plain, shell: /bin/sh, cmd: "echo x >> $DIR/plain", after: "file[f]"}
"#;

/// E-9: once for the first time, then once for each repair.
#[test]
fn what_a_file_notifies_runs_again_when_it_changes() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(["told", "only", "plain"].map(|f| host.lines(f).len()), [1, 1, 1]);
    for round in 2..5 {
        host.append("f", "mine\n");
        daemon.wait_for_all("changed", &["file[f]", "exec[told]", "exec[only]"]);
        daemon.wait_for("converged");
        assert_eq!(["told", "only", "plain"].map(|f| host.lines(f).len()), [round, round, 1]);
    }
}

#[test]
fn edges_of_the_long_form_notify_too() {
    let host = Host::with(
        r#"
graph: edges
resources:
  file: [{name: f, path: $DIR/f, content: "f\n"}]
  exec: [{name: only, shell: /bin/sh, cmd: "echo x >> $DIR/only", refresh_only: true}]
edges:
- {name: e, from: {kind: file, name: f}, to: {kind: exec, name: only}, notify: true}
"#,
    );
    host.apply().exits(0);
    host.apply().exits(0);
    assert_eq!(host.lines("only").len(), 1);
    host.remove("f").apply().exits(0);
    assert_eq!(host.lines("only").len(), 2);
}

/// E-9: a half that was written owes, although the other half failed: when nothing is left to change, what is owed is paid.
/// As nobody, the directory can be made, and cannot be given to root.
#[test]
fn what_is_owed_by_a_write_that_failed_half_way_is_paid() {
    let with = |owner: &str| {
        format!(
            "graph: half\nresources:\n  file: [{{name: d, path: $DIR/d/{owner}}}]\n  exec: [{{name: only, shell: /bin/sh, cmd: \"echo x >> $DIR/only\", refresh_only: true, subscribe: \"file[d]\"}}]\n"
        )
    };
    let host = Host::of_nobody(&with(", owner: root"));
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for_of("failed", "file[d]");
    if !host.exists("d") {
        // Where the half is undone there is nothing to owe; only root can make such a half then.
        assert!(is_root());
    }
    assert!(!host.exists("only"), "what was told waits until its cause is right");
    host.graph(&with(""));
    daemon.signal(SIGHUP).wait_for("loaded");
    daemon.wait_for("converged");
    assert_eq!(host.lines("only").len(), 1);
}

/// E-9: the same, and the daemon is killed between the two.
#[test]
fn what_is_owed_by_a_write_that_failed_outlives_the_daemon() {
    let with = |owner: &str| {
        format!(
            "graph: half\nresources:\n  file: [{{name: f, path: $DIR/f, content: \"f\\n\", mode: 0600{owner}}}]\n  exec: [{{name: only, shell: /bin/sh, cmd: \"echo x >> $DIR/only\", refresh_only: true, subscribe: \"file[f]\"}}]\n"
        )
    };
    let host = Host::of_nobody(&with(", owner: root"));
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for_of("failed", "file[f]");
    daemon.kill();
    assert!(!host.exists("only"));
    host.graph(&with(""));
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    assert!(host.exists("f"));
    assert_eq!(host.lines("only").len(), 1);
}

/// W-1: A tells C, B only comes before it; a change of A alone reaches C.
#[test]
fn a_change_of_one_parent_alone_reaches_the_child() {
    let host = Host::with(
        r#"
graph: two
resources:
  file: [{name: a, path: $DIR/a, content: "a\n"}, {name: b, path: $DIR/b, content: "b\n"}]
  exec: [{name: c, shell: /bin/sh, cmd: "echo x >> $DIR/c", refresh_only: true, subscribe: "file[a]", after: "file[b]"}]
"#,
    );
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    host.write("a", "mine\n");
    host.wait_for_lines("c", 2);
    daemon.wait_for_of("changed", "exec[c]");
    assert_eq!(host.lines("c").len(), 2);
}
