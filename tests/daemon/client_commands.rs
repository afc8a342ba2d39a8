//! The commands that query a running daemon.

use crate::host::{Host, is_root};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::time::Duration;

pub(crate) const GRAPH: &str = r#"
graph: asked
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
  - {name: bad, path: $DIR/later/b, content: "x", after: "file[a]", meta: {autoedge: false}}
  - {name: below, path: $DIR/c, content: "x", after: "file[bad]"}
"#;

pub(crate) fn status(host: &Host) -> Value {
    let answer = host.ask_daemon(&["status", "--json"]);
    serde_json::from_str(&answer.stdout).unwrap_or_default()
}

pub(crate) fn verdict(host: &Host, expected: &str) {
    host.wait_until(expected, || status(host)["verdict"] == expected);
}

/// The status names each obstacle and its cause until it is gone; each verdict has its exit code.
#[test]
fn the_status_says_what_stands_in_the_way() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for_of("failed", "file[bad]");
    // A change is reported once it is durable, which its dependents do not wait for.
    host.wait_until("a change is told", || status(&host)["ages"]["repair"].is_u64());
    host.ask_daemon(&["status"])
        .exits(1)
        .prints("asked: failed: 2 of 3 resources not converged")
        .prints("file[bad]: failed, no retries left: cannot reach")
        .prints("file[below]: waiting for others: file[bad]")
        .prints_in_order(&[
            "  last check ",
            " ago, last repair ",
            " ago, last event ",
            "; uptime ",
        ]);
    host.ask_daemon(&["status", "--limit", "1"]).prints("  … and 1 more (--limit N)");
    host.ask_daemon(&["show", "file[a]"]).exits(0).prints_in_order(&[
        "file[a]: converged\n",
        "  needs: nothing\n",
        "  needed by: file[bad]\n",
        "  events: inotify\n",
        "  ownership: created by steadfast\n",
        "  checked: ",
        "  changed: ",
        "  last event: ",
        "changed file[a]: created",
    ]);
    host.ask_daemon(&["why", "file[below]"])
        .exits(0)
        .prints_in_order(&["file[below]: waiting for others", "file[bad]: failed"]);
    host.ask_daemon(&["show", "file[bad]"])
        .exits(0)
        .prints("needs: file[a]")
        .prints("needed by: file[below]")
        .prints("differs:  the differences are unknown: cannot reach")
        .prints("failed file[bad]: cannot reach");
    host.ask_daemon(&["show", "file[none]"]).exits(64).says("no such resource: file[none]");
    let meant = |word: &str, name: &str| format!("no such resource: {word} (did you mean {name}?)");
    host.ask_daemon(&["why", "file[belwo]"]).exits(64).says(&meant("file[belwo]", "file[below]"));
    host.ask_daemon(&["show", "below"]).exits(0).prints("file[below]: waiting for others");
    host.ask_daemon(&["retry", "flie[bad]"]).exits(64).says(&meant("flie[bad]", "file[bad]"));
    host.ask_daemon(&["wait", "--timeout", "1"]).exits(1).says("not converged after 1 s");

    host.make_directory("later");
    host.ask_daemon(&["retry", "file[bad]"]).exits(0);
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0).prints("converged: asked");
    host.ask_daemon(&["status"]).exits(0).prints("asked: converged for");
    let status = status(&host);
    assert_eq!(
        (&status["verdict"], &status["counts"]["settled"]),
        (&"converged".into(), &3.into())
    );
    // The event log is written beside the driver.
    host.wait_until("the event is recorded", || {
        let events = host.ask_daemon(&["events", "file[below]"]);
        events.stdout.contains("changed file[below]: created")
    });
    host.ask_daemon(&["workers"])
        .exits(0)
        .prints("control: running, 1 start, listens at")
        .prints("store: running, 1 start")
        .prints("lease: running, 1 start, held, epoch 1, inputs: store\n");

    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
    host.ask_daemon(&["status"])
        .exits(69)
        .says("no daemon listens at")
        .says("hint: start a daemon");
}

/// `status` names the blocker that needs an operator, not the first one of the graph.
#[test]
fn the_worst_of_what_stands_in_the_way_is_followed() {
    let host = Host::with(
        r#"
graph: two
resources:
  exec: [{name: slow, shell: /bin/sh, cmd: "echo x >> $DIR/began; while ! test -e $DIR/go; do $DIR/sleep 0.02; done"}]
  file:
  - {name: bad, path: $DIR/later/b, content: "x", meta: {autoedge: false}}
  - {name: below, path: $DIR/c, content: "x", after: ["exec[slow]", "file[bad]"]}
"#,
    );
    let daemon = host.run(&[]);
    host.wait_for_lines("began", 1);
    daemon.wait_for_of("failed", "file[bad]");
    let list = status(&host)["unhealthy"].clone();
    let below =
        list.as_array().and_then(|all| all.iter().find(|it| it["resource"] == "file[below]"));
    assert_eq!(below.expect("it waits")["waits_for"][0], "exec[slow]", "it comes first");
    host.ask_daemon(&["why", "file[below]"])
        .exits(0)
        .prints_in_order(&[
            "file[below]: waiting for others: file[bad], exec[slow]",
            "file[bad]: failed",
        ])
        .prints_nothing_of("exec[slow]: running");
    host.ask_daemon(&["show", "file[bad]"]).exits(0).prints("  dependents waiting: file[below]\n");
    host.ask_daemon(&["show", "exec[slow]"]).exits(0).prints("  dependents waiting: file[below]\n");
    host.ask_daemon(&["show", "file[below]"]).exits(0).prints_nothing_of("  dependents waiting");
    host.make_directory("later").write("go", "");
    host.ask_daemon(&["retry", "file[bad]"]).exits(0);
    verdict(&host, "converged");
    host.ask_daemon(&["show", "file[bad]"]).exits(0).prints_nothing_of("  dependents waiting");
}

/// A resource that waits for a semaphore is shown with the semaphore and its holder, and the holder with its waiters.
#[test]
fn semaphore_holders_are_named() {
    let exec = |name: &str| {
        let cmd =
            format!("echo {name} >> $DIR/began; while ! test -e $DIR/go; do $DIR/sleep 0.02; done");
        format!("  - {{name: {name}, shell: /bin/sh, cmd: \"{cmd}\", meta: {{sema: ['db:1']}}}}\n")
    };
    let host =
        Host::with(&format!("graph: s\nresources:\n  exec:\n{}{}", exec("one"), exec("two")));
    let _daemon = host.run(&[]);
    host.wait_for_lines("began", 1);
    let (has, waits) = match host.lines("began")[0].as_str() {
        "one" => ("exec[one]", "exec[two]"),
        _ => ("exec[two]", "exec[one]"),
    };
    let says = format!("{waits}: waiting for semaphore `db` (1), held by {has}\n");
    host.wait_until("it waits", || host.ask_daemon(&["status"]).stdout.contains(&says));
    host.ask_daemon(&["show", waits]).exits(0).prints(&says);
    host.ask_daemon(&["why", waits]).exits(0).prints_in_order(&[&says, &format!("{has}: running")]);
    host.ask_daemon(&["show", has]).exits(0).prints(&format!("  dependents waiting: {waits}\n"));
    host.write("go", "");
    verdict(&host, "converged");
    host.ask_daemon(&["show", waits]).exits(0).prints_nothing_of("semaphore");
}

/// `show --json` has all fields of `show` in one value; an unknown value differs from an empty one.
#[test]
fn show_prints_all_fields_as_json() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for_of("failed", "file[bad]");
    let show = |name: &str| -> Value {
        let shown = host.ask_daemon(&["show", "--json", name]);
        shown.exits(0);
        serde_json::from_str(&shown.stdout).expect("one value")
    };
    // A change is reported once it is durable, which its dependents do not wait for.
    let has_change = |shown: &Value| {
        let events = shown["events"].as_array().expect("events");
        events.iter().any(|event| event["event"] == "changed")
    };
    host.wait_until("the change is told", || has_change(&show("file[a]")));
    let good = show("file[a]");
    assert_eq!(
        (&good["status"]["phase"], &good["needs"]),
        (&"settled".into(), &Value::Array(vec![]))
    );
    assert_eq!((&good["differences"], &good["diff_error"]), (&Value::Array(vec![]), &Value::Null));
    let bad = show("file[bad]");
    assert_eq!(
        (&bad["differences"], &bad["waited_for_by"][0]),
        (&Value::Null, &"file[below]".into())
    );
    assert!(bad["diff_error"].as_str().is_some_and(|why| why.contains("cannot reach")), "{bad}");
    host.ask_daemon(&["pause", "file[a]"]).exits(0);
    host.write("a", "edited");
    let differs = show("file[a]");
    assert_eq!(differs["differences"][0]["aspect"], "content", "{differs}");
    assert!(
        differs["differences"][0]["diff"].as_str().is_some_and(|diff| diff.contains("-edited"))
    );
    assert_eq!(differs["destructive"], false);
}

/// The status shows the commit of the graph's checkout, also after it has moved and after a restart.
#[test]
fn the_status_tells_the_commit_and_can_be_watched() {
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    host.make_directory(".git").write(".git/HEAD", "ref: refs/heads/main\n");
    host.write(".git/packed-refs", format!("{} refs/heads/main\n", "a1".repeat(20)));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["status"])
        .prints("graph at commit a1a1a1a1a1a1 (main); uncommitted edits are not shown");
    host.write(".git/HEAD", "b2".repeat(20));
    let status = status(&host);
    assert_eq!(status["checkout"]["commit"], "b2".repeat(20));
    assert!(status["checkout"]["branch"].is_null(), "{status}");

    let mut command = host.bare(&["status", "--watch"]);
    command.arg("--state-dir").arg(host.path("state"));
    let terminal = crate::terminal::Terminal::start(command.env("TERM", "xterm"), 24, 100);
    terminal.wait_for("asked: converged");
    daemon.kill();
    terminal.wait_for("no daemon listens").wait_until("cleared", |s| !s.contains("converged"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    terminal.wait_for("asked: converged");
}

/// A reload replies with its result; a broken graph changes nothing (F-20).
#[test]
fn a_reload_says_what_became_of_it() {
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["reload"]).exits(0).prints("0 added, 0 changed, 0 removed, 3 unchanged");
    host.graph("graph: [");
    host.ask_daemon(&["reload"]).exits(65).says("graph.yaml:").says("hint: nothing was changed");
    host.write("a", "edited");
    host.wait_until("the old graph goes on", || host.read("a") == "x");
    host.graph(
        &GRAPH
            .replace("later/b", "b")
            .replace("content: \"x\", after: \"file[bad]\"", "content: \"new\""),
    );
    host.ask_daemon(&["reload"]).exits(0).prints("1 changed").prints("\n~ file[below]\n");
    host.wait_until("the new one runs", || host.read("c") == "new");
    let made = "- {name: made, path: $DIR/m, content: \"x\", meta: {on_remove: delete}}\n";
    host.graph(&format!("{}  {made}", GRAPH.replace("later/b", "b")));
    host.ask_daemon(&["reload"]).exits(0).prints("+ file[made]");
    host.wait_until("it is made", || host.read("m") == "x");
    host.graph("graph: asked\nresources:\n  noop: [{name: n}]\n");
    host.ask_daemon(&["reload"])
        .exits(0)
        .prints("1 added, 0 changed, 4 removed")
        .prints_in_order(&["- file[made]\n", "  file[a] (leaves the graph, stays on the host)\n"]);
    host.graph(&GRAPH.replace("later/b", "b"));
    host.ask_daemon(&["reload"]).exits(0);
    host.ask_daemon(&["check", "file[a]", "file[bad]"]).exits(0).prints("checked again");
    host.ask_daemon(&["check", "file[a]", "file[none]"])
        .exits(64)
        .says("no such resource: file[none]");
}

/// Each of several simultaneous reloads gets its own reply.
#[test]
fn a_reload_answers_for_itself() {
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for _ in 0..10 {
        for _ in 0..3 {
            daemon.signal(Signal::SIGHUP);
        }
        host.graph("graph: [");
        host.ask_daemon(&["reload"]).exits(65).says("graph.yaml:");
        daemon.signal(Signal::SIGHUP);
        host.graph(&GRAPH.replace("later/b", "b"));
        host.ask_daemon(&["reload"]).exits(0).prints("0 added, 0 changed, 0 removed, 3 unchanged");
    }
}

/// `events -f` shows each event once and in order; a lower log level shows more events.
#[test]
fn events_can_be_followed() {
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let mut command = host.bare(&["events", "-f", "--json", "--debug"]);
    command.arg("--state-dir").arg(host.path("state"));
    let mut follower = command.spawn().expect("started");
    let mut lines = BufReader::new(follower.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("one more").expect("text");
        serde_json::from_str(&line).expect("JSON")
    };
    let mut last = 0;
    let mut until = |what: &str, resource: &str| loop {
        let event = next();
        // Debug events have no number; every recorded event arrives, in order.
        if !event["number"].is_null() {
            assert_eq!(event["number"], last + 1, "{event}");
            last += 1;
        }
        if event["event"] == what && event["resource"] == resource {
            return event;
        }
    };
    until("changed", "file[below]");
    host.write("c", "edited");
    assert_eq!(
        until("changed", "file[below]")["message"].as_str().map(|s| s.starts_with("content")),
        Some(true)
    );
    daemon.has_not_said("unchanged");
    host.ask_daemon(&["log-level", "debug"])
        .exits(0)
        .prints("log level: debug, until the next start");
    host.write("a", "edited");
    until("changed", "file[a]");
    daemon.wait_for_of("started", "file[a]");
    for (words, level) in [("inof", "inof"), ("a=b=c", "c"), ("info,steadfast=many", "many")] {
        let says = format!("expected one of off, error, warn, info, debug, trace, found `{level}`");
        host.ask_daemon(&["log-level", words]).exits(1).says(&says);
    }
    // The earlier level is in effect again.
    host.write("a", "edited again");
    until("changed", "file[a]");
    daemon.wait_for_of("started", "file[a]");
    host.ask_daemon(&["stop", "--now"]).exits(0);
    assert!(follower.wait().expect("ends").success(), "the end of the daemon is its end");
}

/// S-12: another user cannot connect and changes nothing.
#[test]
fn another_user_is_refused() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    let mut daemon = host.run(&["--socket", "$DIR/control/socket"]);
    daemon.wait_for("converged");
    host.chmod("", 0o755);
    let program = host.path("steadfast");
    std::fs::copy(env!("CARGO_BIN_EXE_steadfast"), &program).expect("a copy");
    for verb in ["status", "stop", "pause"] {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.arg(&program).args([verb, "--socket"]).arg(host.path("control/socket"));
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        host.finish(command)
            .exits(77)
            .says("permission denied to connect to")
            .says("hint: run this command as root");
    }
    let mut command = host.bare(&["stop", "--socket", "$DIR/control/socket"]);
    command.current_dir("/");
    host.finish(command).exits(0);
    assert_eq!(daemon.ends_within(Duration::from_secs(30)), 0);
}

/// A daemon without a socket still keeps the host converged.
#[test]
fn without_a_socket_the_host_is_held_all_the_same() {
    let host = Host::with(&GRAPH.replace("later/b", "b"));
    host.write("file", "not a directory");
    let daemon = host.run(&["--socket", "$DIR/file/socket"]);
    daemon.wait_for("control");
    daemon.wait_for("converged");
    host.write("a", "edited");
    host.wait_until("it is put back", || host.read("a") == "x");
}

/// A content that is no text is inspected as a source: with the copied file, the graph holds the object, also where it
/// was missing.
#[test]
fn a_binary_file_is_inspected_with_its_source() {
    let host = Host::with(GRAPH);
    host.write("binary", [0_u8, 255, 1]);
    let path = host.full("$DIR/binary");
    let printed = host.bare(&["inspect", "file", &path]);
    let printed = host.finish(printed);
    printed.exits(0).says("install -D $DIR/binary files$DIR/binary");
    printed.prints("source: files$DIR/binary");
    let copy = format!("files{path}");
    let folder = std::path::Path::new(&copy).parent().unwrap().to_str().unwrap().to_owned();
    std::fs::create_dir_all(host.path(&folder)).unwrap();
    host.write(&copy, [0_u8, 255, 1]);
    host.graph(&printed.stdout);
    host.plan().exits(0).prints("1 unchanged");
    host.remove("binary");
    host.apply().exits(0);
    assert_eq!(std::fs::read(host.path("binary")).unwrap(), [0, 255, 1]);
    host.remove(&copy);
    host.check().exits(0).says("warning: ").says("does not exist");
}

/// The print of a kind without objects is a graph too.
#[test]
fn a_kind_without_objects_is_inspected_as_a_graph() {
    let host = Host::with(GRAPH);
    let printed = host.bare(&["inspect", "--all", "firewall"]);
    let printed = host.finish(printed);
    printed.exits(0).prints("# no firewall to print on this host");
    host.graph(&printed.stdout);
    host.ask(&["check", "--allow-empty"]).exits(0);
}
