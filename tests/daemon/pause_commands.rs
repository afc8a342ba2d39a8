//! `pause` and `resume` of a daemon or of single resources: the shown reason, end and pending changes.

use crate::client_commands::{GRAPH, status, verdict};
use crate::host::Host;

/// A pause shows its reason and duration; nothing is repaired before it ends.
#[test]
fn a_pause_is_shown_and_ends() {
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["pause", "--for", "2h", "--reason", "somebody looks"])
        .exits(0)
        .prints("2 h 0 min");
    daemon.wait_for("paused");
    host.write("a", "edited");
    verdict(&host, "paused");
    host.ask_daemon(&["status"])
        .exits(2)
        .prints("paused: somebody looks; resumes automatically in 1 h 59 min");
    assert_eq!(host.read("a"), "edited");
    host.ask_daemon(&["resume"]).exits(0);
    host.wait_until("it is put back", || host.read("a") == "x");
    verdict(&host, "converged");
    host.ask_daemon(&["pause", "--for", "2 weeks"]).exits(64).says("such as 2h");
    host.ask_daemon(&["pause", "--for", "1s"]).exits(0);
    daemon.wait_for("resumed");
}

/// A resume during a start ends the stored pause: the daemon does not know it yet when the command comes.
#[test]
fn a_resume_during_a_start_ends_the_pause() {
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["pause", "--for", "2h"]).exits(0);
    daemon.wait_for("paused");
    daemon.kill();
    let daemon = host.run(&[]);
    host.wait_until("the daemon is asked", || host.ask_daemon(&["resume"]).code != 69);
    daemon.wait_for("converged");
    host.ask_daemon(&["status"]).exits(0).prints_nothing_of("paused");
}

/// E-15: a paused resource is left alone and its dependents wait; the pause survives a restart and ends by itself.
#[test]
fn one_resource_is_paused() {
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let pause = ["pause", "file[bad]", "--for", "2h", "--reason", "somebody looks"];
    host.ask_daemon(&pause).exits(0);
    daemon.wait_for_of("paused", "file[bad]");
    host.ask_daemon(&["status"])
        .exits(0)
        .prints("file[bad]: paused: somebody looks; resumes automatically in 1 h 59 min");
    host.write("a", "edited");
    host.wait_until("another is put back", || host.read("a") == "x");
    // Right after its own repair the daemon may take an event for its echo, so the file is written again.
    host.wait_until("it is not as declared", || {
        host.write("b", "edited");
        status(&host)["verdict"] == "held"
    });
    host.wait_until("what depends on it waits", || {
        host.write("c", "edited");
        status(&host)["unhealthy"][1]["phase"] == "waiting"
    });
    host.ask_daemon(&["status"])
        .exits(2)
        .prints("asked: paused or held: 1 of 3 resources")
        .prints(
            "file[bad]: paused, check pending: somebody looks; resumes automatically in 1 h 59 min",
        )
        .prints("file[below]: waiting for others: file[bad]");
    host.ask_daemon(&["show", "file[bad]"]).prints("somebody looks").prints("content");
    host.ask_daemon(&["retry", "file[bad]"]).exits(0);
    daemon.kill();

    let daemon = host.run(&[]);
    host.wait_until("it listens", || status(&host)["paused"][0]["resource"] == "file[bad]");
    daemon.has_not_said("changed");
    assert_eq!((host.read("b").as_str(), host.read("c").as_str()), ("edited", "edited"));
    host.ask_daemon(&["resume", "file[bad]", "--plan"])
        .exits(0)
        .prints_in_order(&["1 resource will be changed", "file[bad]", "content", "-edited", "+x"])
        .prints_nothing_of("resumed");
    assert_eq!(host.read("b"), "edited", "only shown");
    host.ask_daemon(&["resume", "file[bad]"]).exits(0).prints("-edited").prints("resumed");
    daemon.wait_for_of("resumed", "file[bad]");
    host.wait_until("both are put back", || host.read("b") == "x" && host.read("c") == "x");

    host.ask_daemon(&["pause", "file[a]", "file[none]"])
        .exits(64)
        .says("no such resource: file[none]");
    host.ask_daemon(&["pause", "file[a]", "--for", "1s"]).exits(0);
    host.write("a", "edited");
    daemon.wait_for_of("resumed", "file[a]");
    host.wait_until("it is put back", || host.read("a") == "x");
    verdict(&host, "converged");
}

/// Before a resume, a paused daemon shows exactly the changes that the resume makes.
#[test]
fn pending_changes_are_shown_before_a_resume() {
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it listens", || host.exists("state/control.socket"));
    host.ask_daemon(&["resume"]).exits(0).prints("nothing to do: the daemon is not paused");
    host.ask_daemon(&["pause", "file[a]"]).exits(0);
    host.ask_daemon(&["resume"]).exits(0).prints("individually paused: file[a]");
    host.ask_daemon(&["resume", "file[a]"]).exits(0).prints("0 resources will be changed");
    host.ask_daemon(&["pause"]).exits(0);
    daemon.wait_for_of("paused", "");
    // An event that may be an echo of a repair makes a check, which is a part of the plan too.
    host.write("c", "edited\u{1b}[2J");
    host.wait_until("it is in the plan", || {
        host.ask_daemon(&["resume", "--plan"]).stdout.contains("file[below]")
    });
    host.ask_daemon(&["resume", "--plan"])
        .exits(0)
        .prints_in_order(&[
            "1 resource will be changed",
            "file[below]",
            "content: 10 bytes -> 1 bytes",
        ])
        .prints_nothing_of("\u{1b}");
    assert_ne!(host.read("c"), "x", "only shown");
    host.ask_daemon(&["resume"]).exits(0).prints_in_order(&["file[below]", "resumed"]);
    host.wait_until("it is put back", || host.read("c") == "x");
}

/// B6: `resume --plan` leaves out resources with a pause of their own and their dependents, and names them. B14: the
/// event of a general pause has its reason and its end.
#[test]
fn a_resume_lists_only_its_own_changes() {
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["pause", "file[bad]", "--for", "10m", "--reason", "mine"]).exits(0);
    host.ask_daemon(&["pause", "--for", "2h", "--reason", "kernel update"]).exits(0);
    let paused = daemon.wait_for_of("paused", "");
    assert!(paused.message.contains("kernel update; resumes automatically in 1"), "{paused:?}");
    host.ask_daemon(&["status"]).exits(2).prints("asked: paused: no check is due, 3 resources");
    let due = "asked: paused: 3 of 3 resources to be checked";
    host.wait_until(due, || {
        host.write("a", "edited").write("b", "edited").remove("b").write("c", "edited");
        let shown = host.ask_daemon(&["status"]).exits(2).stdout.clone();
        // Soon after a repair, an event only causes a check and holds no dependents.
        shown.contains(due) && shown.contains("file[bad]: paused, check pending")
    });
    host.ask_daemon(&["resume", "file[bad]", "--plan"])
        .exits(0)
        .prints("0 resources will be changed: the daemon is paused");
    host.ask_daemon(&["resume"])
        .exits(0)
        .prints_in_order(&[
            "1 resource will be changed\n",
            "  file[a]\n",
            "still individually paused: file[bad]\n",
            "waiting for those: file[below]\n",
            "resumed",
        ])
        .prints_nothing_of("  file[bad]")
        .prints_nothing_of("  file[below]");
    host.wait_until("it is put back", || host.read("a") == "x");
    assert!(!host.exists("b") && host.read("c") == "edited");
}

/// A paused member of a group rests, and the others of its group are repaired.
#[test]
fn a_paused_member_leaves_its_group() {
    let host = Host::with(
        "graph: g\nresources:\n  line:\n  - {name: one, path: $DIR/f, line: one}\n  - {name: two, path: $DIR/f, line: two}\n",
    );
    host.write("f", "top\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["pause", "line[one]", "--for", "1h"]).exits(0);
    host.write("f", "top\n");
    host.wait_until("the other line is back", || host.read("f") == "top\ntwo\n");
    host.ask_daemon(&["resume", "line[one]"]).exits(0);
    host.wait_until("both are there", || host.lines("f").len() == 3);
}

/// A resource that a resume does not change is no announced change.
#[test]
fn held_changes_are_not_announced() {
    let host = Host::with(
        "graph: g\nresources:\n  file:\n  - {name: a, path: $DIR/a, content: x, meta: {noop: true}}\n  - {name: b, path: $DIR/b, content: x}\n",
    );
    let daemon = host.run(&[]);
    daemon.wait_for_of("changed", "file[b]");
    host.wait_until("it listens", || host.exists("state/control.socket"));
    host.ask_daemon(&["pause"]).exits(0);
    daemon.wait_for_of("paused", "");
    host.write("b", "edited");
    host.wait_until("the edit is known", || {
        host.ask_daemon(&["resume", "--plan"]).stdout.contains("1 resource will be changed")
    });
    host.ask_daemon(&["check", "file[a]"]);
    host.ask_daemon(&["resume", "file[a]", "--plan"])
        .exits(0)
        .prints("0 resources will be changed");
    host.ask_daemon(&["resume"]).exits(0).prints("1 resource will be changed");
    host.wait_until("it is put back", || host.read("b") == "x");
    assert!(!host.exists("a"));
}

/// E-10: the operator's retry ends the wait for the next try.
#[test]
fn a_retry_ends_the_delay() {
    let host = Host::with(
        r"
graph: delayed
resources:
  exec:
  - {name: late, args: [test, -e, $DIR/ok], meta: {retry: -1, delay: 3h, delay_max: 3h}}
",
    );
    let daemon = host.run(&[]);
    daemon.wait_for_of("retrying", "exec[late]");
    host.write("ok", "");
    host.ask_daemon(&["retry", "exec[late]"]).exits(0);
    daemon.wait_for("converged");
}
