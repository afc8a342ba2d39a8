//! Notifications: a notified command runs again, exactly once for each change.

use crate::host::Host;
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

/// The beginning of a command that runs only when notified.
const TOLD: &str = r#"{name: only, shell: /bin/sh, cmd: "echo x >> $DIR/only", refresh_only: true"#;

/// E-9: one run at first, then one for each repair.
#[test]
fn a_notified_command_runs_again_after_each_change() {
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

/// E-9: a write that fails half-way owes a refresh, which is delivered once nothing is left to change. As nobody, a
/// directory can be removed to make room, but the new file cannot be given to root.
#[test]
fn a_refresh_owed_by_a_half_failed_write_is_delivered() {
    let with = |fields: &str| {
        let file = format!("file: [{{name: f, path: $DIR/f, {fields}}}]");
        format!("graph: half\nresources:\n  {file}\n  exec: [{TOLD}, subscribe: \"file[f]\"}}]\n")
    };
    let host = Host::of_nobody(&with("content: x, force: true, owner: root"));
    host.make_directory("f").chmod("f", 0o755);
    host.give_away("f");
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for_of("failed", "file[f]");
    assert!(!host.exists("f"), "half of it was done: there is room for the file");
    assert!(!host.exists("only"), "what was told waits until its cause is right");
    host.graph(&with("state: absent"));
    daemon.signal(SIGHUP).wait_for("loaded");
    daemon.wait_for("converged");
    assert_eq!(host.lines("only").len(), 1);
    let changed = daemon.log().iter().filter(|l| l.event == "changed").count();
    assert_eq!(changed, 1, "nothing was left to change: what ran was owed");
}

/// E-9: a refresh owed by a failed write outlives a kill of the daemon.
#[test]
fn a_refresh_owed_by_a_failed_run_outlives_the_daemon() {
    let host = Host::with(&format!(
        r#"
graph: half
resources:
  exec:
  - {{name: half, shell: /bin/sh, cmd: "echo x >> $DIR/half; exit 1", nifshell: /bin/sh, nifcmd: "ls $DIR | grep -qx half"}}
  - {TOLD}, subscribe: "exec[half]"}}
"#
    ));
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for_of("failed", "exec[half]");
    daemon.kill();
    assert!(!host.exists("only"), "what was told waits until its cause is right");
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    assert_eq!((host.lines("half").len(), host.lines("only").len()), (1, 1));
}

/// W-1: `a` notifies `c`, and `b` only runs before `c`; a change of `a` alone refreshes `c`.
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
