//! `kill -9` at chosen moments: owed refreshes are delivered, interrupted runs repeated, finished runs not.

use crate::host::Host;

const WAITS: &str = "while ! test -e $DIR/go; do $DIR/sleep 0.02; done";

/// F-1, E-9: a kill during a command that a file has notified.
#[test]
fn an_exec_cut_off_by_a_crash_runs_again() {
    let host = Host::with(&format!(
        r#"
graph: crash
resources:
  file: [{{name: f, path: $DIR/f, content: "f\n"}}]
  exec: [{{name: e, shell: /bin/sh, cmd: "echo x >> $DIR/began; {WAITS}; echo x >> $DIR/ended", refresh_only: true, subscribe: "file[f]"}}]
"#
    ));
    let daemon = host.run(&[]);
    host.wait_for_lines("began", 1);
    daemon.kill_with_children();
    assert!(!host.exists("ended"));
    host.write("go", "");
    for _ in 0..2 {
        let daemon = host.run(&[]);
        daemon.wait_for("converged");
        daemon.kill();
        assert_eq!(
            (host.lines("began").len(), host.lines("ended").len()),
            (2, 1),
            "again, and only once"
        );
    }
}

/// F-1, E-9: a kill after a file was written and before its notified command could start, which a semaphore delays.
#[test]
fn an_exec_that_was_told_and_had_not_started_runs_after_a_crash() {
    let host = Host::with(&format!(
        r#"
graph: crash
resources:
  file: [{{name: f, path: $DIR/f, content: "f\n", after: "noop[held]"}}]
  noop: [{{name: held}}]
  exec:
  - {{name: holder, shell: /bin/sh, cmd: "echo x >> $DIR/holds; {WAITS}", always: true, meta: {{sema: ["s:1"]}}}}
  - {{name: e, shell: /bin/sh, cmd: "echo x >> $DIR/told", refresh_only: true, subscribe: "file[f]", meta: {{sema: ["s:1"]}}}}
"#
    ));
    let daemon = host.run(&["--sweep", "0"]);
    host.wait_for_lines("holds", 1);
    daemon.wait_for_of("changed", "file[f]");
    let had_run = host.lines("told").len();
    // The holder now has the semaphore in either order, so the notified command must wait.
    host.append("f", "mine\n");
    daemon.wait_for_of("changed", "file[f]");
    daemon.kill_with_children();
    assert_eq!(host.lines("told").len(), had_run, "it waits for the semaphore");
    host.write("go", "");
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    assert_eq!(host.lines("told").len(), had_run + 1, "paid, and only once");
    let owed = daemon
        .log()
        .into_iter()
        .filter(|l| l.event == "changed" && l.resource == "file[f]")
        .count();
    assert_eq!(owed, 0, "the file was right already: what ran was owed");
}

/// F-1: repeated kills at arbitrary moments of load and repair leave the host converged in the end, with no torn
/// file.
#[test]
fn killed_at_arbitrary_moments_it_is_right_in_the_end() {
    let whole = |n: usize| format!("{}\n", "declared ".repeat(n + 1));
    let file = |n: usize| {
        let content = whole(n).replace('\n', "\\n");
        format!("  - {{name: f{n}, path: $DIR/f{n}, content: \"{content}\"}}\n")
    };
    let files = (0..30).map(file).collect::<String>();
    let graph = format!(
        "graph: often\nresources:\n  file:\n{files}  exec: [{{name: e, shell: /bin/sh, cmd: \"cat $DIR/f? $DIR/f?? | wc -c > $DIR/size\", refresh_only: true, subscribe: [{}]}}]\n",
        (0..30).map(|n| format!("\"file[f{n}]\"")).collect::<Vec<_>>().join(", ")
    );
    let host = Host::with(&graph);
    for round in 0..25_u64 {
        for n in 0..30 {
            let found = host.read(&format!("f{n}"));
            assert!(found.is_empty() || found == whole(n) || found == "mine\n", "torn: {found}");
            if host.exists(&format!("f{n}")) {
                host.write(&format!("f{n}"), "mine\n");
            }
        }
        let daemon = host.run(&[]);
        // Real time on purpose: each round kills at another moment.
        std::thread::sleep(std::time::Duration::from_millis(7 * round));
        daemon.kill_with_children();
    }
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for n in 0..30 {
        assert_eq!(host.read(&format!("f{n}")), whole(n));
    }
    let bytes: usize = (0..30).map(|n| whole(n).len()).sum();
    assert_eq!(host.read("size").trim(), bytes.to_string(), "what was told saw the last state");
    let strays: Vec<_> = std::fs::read_dir(host.path(""))
        .expect("the folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(strays.is_empty(), "S-5: nothing is left behind: {strays:?}");
}

/// B-11, B-22, F-4: an unreadable state is left as it is; a repair rebuilds it from the host and preserves the
/// damaged copy.
#[test]
fn damaged_state_is_rebuilt_when_it_is_repaired() {
    let host = Host::with("graph: g\nresources: {file: [{name: $DIR/f, content: x}]}\n");
    host.apply().exits(0);
    host.write(
        "state/state.db",
        "this is not a database, and long enough to be looked at as one".repeat(100),
    );
    host.remove("f");
    let daemon = host.run(&[]);
    daemon.wait_for("read_only");
    assert!(!host.exists("f"));
    let mut repair = host.bare(&["state", "repair"]);
    repair.arg("--state-dir").arg(host.path("state"));
    host.finish(repair).exits(0).prints("backup of the old state");
    daemon.wait_for("converged");
    assert_eq!(host.read("f"), "x");
}
