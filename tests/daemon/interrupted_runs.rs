//! Interrupted runs: a begin without an end is unknown at the next start, which checks the resource and follows the
//! rule of its kind.

use crate::host::Host;
use steadfast::store::{Entry, SqliteStore, Store as _, Verb};

const GRAPH: &str = r#"
graph: g
resources:
  file: [{name: f, path: $DIR/f, content: "declared\n"}]
  exec:
  - {name: told, shell: /bin/sh, cmd: "cat $DIR/f >> $DIR/told", refresh_only: true, subscribe: "file[f]"}
"#;

/// B-8: after a begin without an end, a converged object is adopted without a change, a missing one is created, and
/// any other is applied as usual. The owed refresh is delivered once in each case.
#[test]
fn a_begin_without_an_end_is_unknown() {
    for (found, changes) in [(Some("declared\n"), false), (None, true), (Some("half"), true)] {
        let host = Host::with(GRAPH);
        host.apply().exits(0);
        assert_eq!(host.lines("told").len(), 1);
        let mut store = SqliteStore::open(&host.path("state")).expect("opened");
        let recalled = store.recall().expect("told");
        let begin = Entry::Begin {
            identity: "file[f]".into(),
            definition: recalled.resources["file[f]"].done.expect("done"),
            stamp: recalled.stamp + 1,
            verb: Verb::Update,
            owes: vec!["exec[told]".into()],
            pays: None,
        };
        store.commit(&[begin]).expect("kept");
        drop(store);
        host.ask_daemon(&["state", "show", "file[f]"]).exits(0).prints("a change was interrupted");
        host.remove("f");
        if let Some(content) = found {
            host.write("f", content);
        }
        let applied = host.apply();
        applied.exits(0).prints("changed exec[told]");
        assert_eq!(applied.stdout.contains("changed file[f]"), changes, "{found:?}: {applied}");
        assert_eq!(host.lines("told"), ["declared", "declared"], "{found:?}: owed, and paid once");
        host.apply().exits(0).prints(", 0 changed in");
        let mut store = SqliteStore::open(&host.path("state")).expect("opened");
        let kept = store.recall().expect("told").resources;
        assert!(kept.values().all(|kept| kept.owed.is_none()), "{found:?}: {kept:?}");
        // An adopted object is checked at each start, which costs no write (B-5).
        assert_eq!(kept["file[f]"].interrupted.is_some(), !changes, "{found:?}: {kept:?}");
    }
}

/// E-9, row Q: `on_interrupt` holds for a command that a refresh had started. `rerun` does the refresh once more,
/// `skip` counts it as done, and `ask` waits for the operator. A later refresh is done after a skip.
#[test]
fn a_refresh_that_was_cut_off_follows_on_interrupt() {
    for (word, lines) in [("rerun", 2), ("skip", 1), ("ask", 1)] {
        let graph = format!(
            r#"
graph: g
resources:
  file: [{{name: f, path: $DIR/f, content: "declared\n"}}]
  exec:
  - name: told
    shell: /bin/sh
    cmd: "echo x >> $DIR/told; while ! test -e $DIR/go; do sleep 0.02; done"
    refresh_only: true
    subscribe: "file[f]"
    on_interrupt: {word}
"#
        );
        let host = Host::with(&graph);
        let daemon = host.run(&[]);
        host.wait_until("the command runs", || host.exists("told"));
        daemon.kill_with_children();
        host.write("go", "");
        for _ in 0..2 {
            let applied = host.apply();
            assert_eq!(host.lines("told").len(), lines, "{word}: {applied}");
        }
        if word == "skip" {
            host.remove("f");
            host.apply().exits(0).prints("changed exec[told]");
            assert_eq!(host.lines("told").len(), 2, "a later refresh is done");
        }
    }
}

/// `state show` tells a run in progress from an interrupted one, in text and JSON (audit, surprises).
#[test]
fn state_show_tells_a_run_in_progress_from_an_interrupted_one() {
    const WAITING: &str = r#"
graph: g
resources:
  exec: [{name: waits, shell: /bin/sh, cmd: "touch $DIR/began; while ! test -e $DIR/go; do sleep 0.02; done"}]
"#;
    let host = Host::with(WAITING);
    let daemon = host.run(&[]);
    host.wait_until("the command runs", || host.exists("began"));
    let show = ["state", "show", "exec[waits]"];
    host.ask_daemon(&show).exits(0).prints("is in progress");
    let json = [&show[..], &["--json"]].concat();
    host.ask_daemon(&json).exits(0).prints(r#""in_progress":true"#);
    daemon.kill_with_children();
    host.ask_daemon(&show).exits(0).prints("was interrupted");
    host.ask_daemon(&json).exits(0).prints(r#""in_progress":false"#);
}

/// Waits until the daemon has recorded a command, right after its start.
pub(crate) fn wait_for_recorded_command(host: &Host) {
    let is_whole = |record: std::fs::DirEntry| {
        std::fs::read(record.path()).is_ok_and(|content| content.contains(&b' '))
    };
    let records = host.path("state/commands");
    host.wait_until("the command is recorded", || {
        let found = std::fs::read_dir(&records).into_iter().flatten();
        found.filter_map(Result::ok).any(is_whole)
    });
}

/// A command that a killed daemon left running is ended before its rerun starts (audit, surprises).
#[test]
fn an_orphaned_command_ends_before_its_rerun() {
    const SLOW: &str = r#"
graph: g
resources:
  exec:
  - {name: slow, shell: /bin/sh, cmd: "echo start >> $DIR/log; while ! test -e $DIR/go; do sleep 0.02; done; echo end >> $DIR/log"}
"#;
    let host = Host::with(SLOW);
    let daemon = host.run(&[]);
    host.wait_for_lines("log", 1);
    wait_for_recorded_command(&host);
    daemon.kill();
    let daemon = host.run(&[]);
    host.wait_for_lines("log", 2);
    host.write("go", "");
    daemon.wait_for("converged");
    assert_eq!(
        host.lines("log"),
        ["start", "start", "end"],
        "the first one has not ended by itself"
    );
    assert!(daemon.log().iter().any(|line| line.message.contains("left running")));
}

/// B-9: an interrupted command without a usable check is run again, skipped, or left to the operator, as declared.
/// The waiting one is shown with its time and waits at each start until the operator decides.
#[test]
fn a_command_that_was_cut_off_follows_its_policy() {
    let each = ["rerun", "skip", "ask"].map(|policy| {
        format!(
            "  - {{name: {policy}, shell: /bin/sh, cmd: \"echo x >> $DIR/{policy}; while ! test -e $DIR/go; do \
             $DIR/sleep 0.02; done\", on_interrupt: {policy}}}\n"
        )
    });
    let host = Host::with(&format!("graph: g\nresources:\n  exec:\n{}", each.concat()));
    let daemon = host.run(&[]);
    for policy in ["rerun", "skip", "ask"] {
        host.wait_for_lines(policy, 1);
    }
    daemon.kill_with_children();
    host.write("go", "");
    let ran = || ["rerun", "skip", "ask"].map(|policy| host.lines(policy).len());
    for _ in 0..2 {
        let daemon = host.run(&[]);
        daemon.wait_for_of("held", "exec[ask]");
        host.wait_until("the others are done", || ran() == [2, 1, 1]);
        let waits = "exec[ask]: interrupted, waiting for the operator (`steadfast retry`), for ";
        host.wait_until("only it is left", || {
            let status = host.ask_daemon(&["status"]);
            status.stdout.contains(waits) && !status.stdout.contains("exec[rerun]")
        });
        host.wait_until("its age grows", || {
            let status = host.ask_daemon(&["status", "--json"]).json().to_string();
            let ages = status.split("\"awaiting_operator_for\":").skip(1);
            let seconds =
                ages.filter_map(|rest| rest.split([',', '}']).next()?.parse::<u64>().ok());
            seconds.max() >= Some(1)
        });
        daemon.kill();
    }
    assert_eq!(ran(), [2, 1, 1], "what was decided once is not decided again");
    let daemon = host.run(&[]);
    daemon.wait_for_of("held", "exec[ask]");
    host.ask_daemon(&["retry", "--persist", "exec[ask]"]).exits(0);
    daemon.wait_for("converged");
    assert_eq!(ran(), [2, 1, 2]);
    host.ask_daemon(&["status"]).exits(0).prints_nothing_of("waiting for the operator");
}
