//! Resources dropped without an operator's request are not forgotten: they return with their records.

use crate::daemon::Daemon;
use crate::host::{Host, LIMIT};
use nix::sys::signal::Signal::{SIGHUP, SIGTERM};

const STAYS: &str = "graph: g\nresources:\n  noop: [{name: stays}]\n";

const WHOLE: &str = r#"graph: g
resources:
  noop: [{name: stays}]
  password: [{name: p, length: 24, saved: true}]
  file: [{name: secret, path: $DIR/secret, mode: 0600, template: {text: "pw={{ p }}\n"}, values: {p: "password[p].password"}}]
  exec: [{name: once, shell: /bin/sh, cmd: "echo ran >> $DIR/ran"}]
"#;

fn stop(mut daemon: Daemon) {
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends_after_panics(LIMIT), 0);
}

/// Asserts that nothing was generated or run again: the password is the old one, also for a file that is created
/// again.
#[track_caller]
fn is_as_before(host: &Host, secret: &str) {
    host.remove("secret");
    host.wait_until("the file is there again", || host.exists("secret"));
    assert_eq!(host.read("secret"), secret);
    assert_eq!(host.lines("ran").len(), 1);
}

fn reload(host: &Host, daemon: &Daemon, text: &str) {
    daemon.skip_to_now();
    host.graph(text);
    daemon.wait_for("loaded");
    daemon.wait_for("converged");
}

/// B-16: `--watch` finds a graph half written and then whole, in one session and across a crash in between.
#[test]
fn a_watched_graph_that_was_half_written_loses_nothing() {
    let host = Host::with(WHOLE);
    let daemon = host.run(&["--watch"]);
    daemon.wait_for("converged");
    let secret = host.read("secret");
    assert!(secret.len() > 20 && host.lines("ran").len() == 1);
    reload(&host, &daemon, STAYS);
    reload(&host, &daemon, WHOLE);
    is_as_before(&host, &secret);
    reload(&host, &daemon, STAYS);
    daemon.kill();
    host.graph(WHOLE);
    let daemon = host.run(&["--watch"]);
    daemon.wait_for("converged");
    is_as_before(&host, &secret);
    // An operator's reload forgets dropped resources, whether they were dropped before or now.
    reload(&host, &daemon, STAYS);
    daemon.skip_to_now();
    daemon.signal(SIGHUP).wait_for("loaded");
    reload(&host, &daemon, WHOLE);
    host.wait_until("it has run again", || host.lines("ran").len() == 2);
    host.wait_until("another one is made", || {
        let now = host.read("secret");
        now.len() == secret.len() && now != secret
    });
    stop(daemon);
}

/// B-16: a plan of another graph, by whichever command, forgets nothing.
#[test]
fn a_look_at_another_graph_loses_nothing() {
    let host = Host::with(WHOLE);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let secret = host.read("secret");
    stop(daemon);
    host.graph(STAYS);
    let daemon = host.run(&["--noop"]);
    daemon.wait_for("converged");
    daemon.skip_to_now();
    daemon.signal(SIGHUP).wait_for("loaded");
    stop(daemon);
    host.graph(WHOLE);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    is_as_before(&host, &secret);
    stop(daemon);
}

/// B-16: a last-good graph that runs in place of a rejected one forgets no later resource.
#[test]
fn a_kept_graph_loses_nothing() {
    let host = Host::with(STAYS);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it is kept", || host.exists("state/graph.json"));
    stop(daemon);
    host.graph(WHOLE);
    let daemon = host.run(&["--no-last-good-graph"]);
    daemon.wait_for("converged");
    let secret = host.read("secret");
    stop(daemon);
    host.graph("graph: g\nresources: {file: [{nam: x}]}\n");
    let daemon = host.run(&[]);
    daemon.wait_for("last_good_graph_used");
    daemon.wait_for("converged");
    daemon.skip_to_now();
    host.graph(WHOLE);
    daemon.signal(SIGHUP).wait_for("loaded");
    daemon.wait_for("converged");
    is_as_before(&host, &secret);
    stop(daemon);
}

/// B-16, B-18: a resource that was dropped at a start and returns has its own records, and not those of the running
/// resource in its alias; each is removed on its own.
#[test]
fn a_returning_resource_takes_no_other_record() {
    let file = |name: &str, more: &str| {
        format!(
            "{STAYS}  file: [{{name: {name}, path: $DIR/{name}, content: x, meta: {{on_remove: delete}}{more}}}]\n"
        )
    };
    let host = Host::with(&file("new", ""));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    stop(daemon);
    host.graph(&file("other", ""));
    let daemon = host.run(&[]);
    daemon.wait_for_of("undeclared", "file[new]");
    daemon.wait_for("converged");
    host.graph(&file("new", ", aliases: [other]"));
    host.ask_daemon(&["reload"]).exits(0);
    daemon.wait_for_of("changed", "file[other]");
    host.wait_until("it is removed", || !host.exists("other"));
    assert!(host.exists("new"));
    host.graph(STAYS);
    host.ask_daemon(&["reload"]).exits(0);
    daemon.wait_for_of("changed", "file[new]");
    host.wait_until("it is removed", || !host.exists("new"));
}
