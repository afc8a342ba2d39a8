//! Selectors: the same texts select the same resources in every command.

use crate::host::Host;
use nix::sys::signal::Signal::SIGTERM;

const GRAPH: &str = r#"
graph: many
resources:
  file:
  - {name: a, path: $DIR/a, content: "a\n"}
  - {name: b, path: $DIR/b, content: "b\n"}
  - {name: ab, path: $DIR/ab, content: "ab\n"}
  - {name: run, path: $DIR/run, content: "run\n"}
  exec:
  - {name: run, args: [touch, $DIR/ran], creates: $DIR/ran}
"#;

/// Pause, resume, check, retry, status and show take names, kinds and patterns; an ambiguous name lists its resources.
#[test]
fn every_command_takes_selectors() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["pause", "file[a*]", "--for", "1h"]).exits(0);
    host.ask_daemon(&["status", "file[*]"])
        .exits(0)
        .prints("4 of 4 resources converged, 2 paused")
        .prints("file[ab]: converged; paused: by command");
    host.ask_daemon(&["status", "b"]).exits(0).prints("1 of 1 resource converged\n");
    host.ask_daemon(&["resume", "ab"]).exits(0);
    host.ask_daemon(&["status", "file"]).exits(0).prints(", 1 paused");
    host.ask_daemon(&["resume", "file[a?]", "a"]).exits(0);
    host.ask_daemon(&["status", "*[a*]"]).prints_nothing_of("paused");
    host.ask_daemon(&["check", "file[*]"]).exits(0).prints("checked again");
    host.ask_daemon(&["retry", "exec"]).exits(0);
    host.ask_daemon(&["show", "b"]).exits(0).prints("file[b]: converged");
    host.ask_daemon(&["why", "ab"]).exits(0).prints("file[ab]");
    host.ask_daemon(&["pause", "run"])
        .exits(64)
        .says("`run` selects 2 resources: exec[run], file[run]")
        .says("hint: name one of them: kind[name]");
    host.ask_daemon(&["show", "file[*]"]).exits(64).says("selects 4 resources: ");
    host.ask_daemon(&["pause", "svc[*]"]).exits(64).says("no such resource: svc[*]");
    host.ask_daemon(&["pause", "-l", "tier=web"])
        .exits(64)
        .says("no resource has the label tier=web");
    let whole = host.ask_daemon(&["status"]);
    whole.exits(0).prints_nothing_of("paused");
}

/// `--only` and `--skip` take the same selectors.
#[test]
fn a_graph_is_selected_alike() {
    let host = Host::with(GRAPH);
    host.ask(&["plan", "--only", "file[a*]"]).exits(0).prints("2 to create, 0 unchanged");
    host.ask(&["plan", "--only", "b"]).exits(0).prints("+ file[b]").prints("1 to create");
    host.ask(&["plan", "--skip", "file"]).exits(0).prints("1 to change, 0 unchanged");
    host.ask(&["plan", "--only", "run"]).exits(65).says("selects 2 resources: ");
    host.ask(&["apply", "--only", "*[a]"]).exits(0).prints("1 changed");
    assert!(host.exists("a") && !host.exists("ab"));
}

const LABELLED: &str = r#"
graph: tiers
resources:
  file:
  - {name: a, path: $DIR/a, content: "a\n", labels: {tier: web, stage: test}}
  - {name: b, path: $DIR/b, content: "b\n", labels: {tier: web}}
  - {name: c, path: $DIR/c, content: "c\n", labels: {tier: db}}
  - {name: d, path: $DIR/d, content: "d\n"}
"#;

/// Labels select resources in every command, with all forms of a requirement.
#[test]
fn labels_select_resources_of_a_daemon() {
    let host = Host::with(LABELLED);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for (labels, count) in [
        ("tier=web", "2 of 2 resources"),
        ("tier", "3 of 3 resources"),
        ("tier=web,stage!=test", "1 of 1 resource"),
        ("tier=w*", "2 of 2 resources"),
        ("tier!=web", "2 of 2 resources"),
    ] {
        host.ask_daemon(&["status", "-l", labels]).exits(0).prints(count);
    }
    host.ask_daemon(&["pause", "-l", "tier=db", "--for", "1h"]).exits(0);
    host.ask_daemon(&["wait", "-l", "tier=db", "--for", "paused", "--timeout", "60"]).exits(0);
    host.ask_daemon(&["status"]).exits(0).prints("file[c]: paused: by command");
    host.ask_daemon(&["resume", "-l", "tier"]).exits(0);
    host.ask_daemon(&["status"]).exits(0).prints_nothing_of("paused");
    host.ask_daemon(&["check", "-l", "tier=web"]).exits(0).prints("checked again");
    host.ask_daemon(&["retry", "-l", "stage=test"]).exits(0);
    host.ask_daemon(&["wait", "-l", "tier=web", "--timeout", "60"]).exits(0);
    host.ask_daemon(&["events", "-l", "tier=web"])
        .exits(0)
        .prints("file[a]")
        .prints("file[b]")
        .prints_nothing_of("file[c]");
    host.ask_daemon(&["pause", "-l", "tier=nosuch"])
        .exits(64)
        .says("no resource has the label tier=nosuch");
}

/// A reload that changes only labels changes the selection, and runs nothing.
#[test]
fn labels_follow_a_reload() {
    let host = Host::with(LABELLED);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.graph(&LABELLED.replace("labels: {tier: db}", "labels: {tier: web}"));
    host.ask_daemon(&["reload"]).exits(0);
    host.ask_daemon(&["status", "-l", "tier=web"]).exits(0).prints("3 of 3 resources");
    host.ask_daemon(&["status", "-l", "tier=db"]).exits(64);
}

/// `plan`, `apply` and `check GRAPH` take labels.
#[test]
fn labels_select_a_part_of_a_graph() {
    let host = Host::with(LABELLED);
    host.ask(&["plan", "-l", "tier=web"]).exits(0).prints("2 to create, 0 unchanged");
    host.ask(&["plan", "-l", "tier=web", "--skip", "a"]).exits(0).prints("1 to create");
    host.ask(&["plan", "-l", "tier=nosuch"]).exits(65).says("label:tier=nosuch");
    host.ask(&["check", "-l", "tier"]).exits(0).prints("3 resources");
    host.ask(&["apply", "-l", "tier=web,stage!=test"]).exits(0).prints("1 changed");
    assert!(host.exists("b") && !host.exists("a") && !host.exists("d"));
}

/// A selection by labels removes nothing, and misses no protected resource: the other resources are declared.
#[test]
fn a_selection_removes_nothing() {
    let host = Host::with(
        r#"
graph: labelled
resources:
  file:
  - {name: a, path: $DIR/a, content: "a\n", labels: {tier: web}}
  - {name: b, path: $DIR/b, content: "b\n", meta: {on_remove: delete}}
  - {name: c, path: $DIR/c, content: "c\n", meta: {protect: true}}
"#,
    );
    host.ask(&["apply"]).exits(0).prints("3 changed");
    for selection in [["-l", "tier=web"], ["--only", "a"], ["--skip", "b,c"]] {
        let mut words = vec!["plan"];
        words.extend(selection);
        let plan = host.ask(&words);
        plan.exits(0).prints("1 unchanged");
        plan.prints_nothing_of("destroy").prints_nothing_of("undeclared");
        words[0] = "apply";
        host.ask(&words).exits(0).prints("0 changed");
        words[0] = "graph";
        host.ask(&words).exits(0).prints_nothing_of("file[b]");
        assert!(host.exists("b") && host.exists("c"), "{selection:?}");
        let mut daemon = host.run(&selection);
        daemon.wait_for("converged");
        crate::event_log::stop(&host, &mut daemon);
        assert!(host.exists("b") && host.exists("c"), "{selection:?}");
    }
}

/// `events` takes several selectors; they also select resources that are no longer declared.
#[test]
fn events_take_selectors() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    let of = |selectors: &[&str]| {
        let output = host.ask_daemon(&[&["events", "--json"], selectors].concat());
        let mut names: Vec<String> = output
            .exits(0)
            .stdout
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
            .map(|event| event["resource"].as_str().unwrap_or("none").to_owned())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    // The event log is written beside the driver.
    host.wait_until("the events are recorded", || of(&["file[a*]"]) == ["file[a]", "file[ab]"]);
    host.wait_until("the last event is recorded", || {
        of(&["b", "exec"]) == ["exec[run]", "file[b]"]
    });
    assert_eq!(of(&["b", "exec"]), ["exec[run]", "file[b]"]);
    host.ask_daemon(&["events", "run"]).exits(64).says("`run` selects 2 resources");
    host.ask_daemon(&["events", "nosuch"]).exits(1).says("no such resource: nosuch");
    host.graph(&GRAPH.replace("  - {name: ab,", "  - {name: other,").replace("$DIR/ab", "$DIR/o"));
    host.ask_daemon(&["reload"]).exits(0);
    assert_eq!(of(&["ab"]), ["file[ab]"], "undeclared, and recorded");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    assert_eq!(of(&["file[a*]"]), ["file[a]", "file[ab]"]);
    host.ask_daemon(&["events", "run"]).exits(64).says("`run` selects 2 resources");
    host.ask_daemon(&["events", "-l", "tier"]).exits(64).says("labels select declared resources");
}

/// Without a daemon, `forget` and the history take selectors of the recorded resources.
#[test]
fn recorded_resources_are_selected_without_a_daemon() {
    let host = Host::with(GRAPH);
    host.apply().exits(0);
    host.ask_daemon(&["protect", "file[a*]"]).exits(0).prints("file[a]").prints("file[ab]");
    host.ask_daemon(&["unprotect", "a", "ab"]).exits(0);
    host.ask_daemon(&["protect", "run"]).exits(64).says("selects 2 resources: ");
    host.ask_daemon(&["forget", "-l", "tier"]).exits(64).says("labels select declared resources");
    let listed = host.ask_daemon(&["history", "file[a*]"]);
    listed.exits(0).prints("file[a]").prints("file[ab]").prints_nothing_of("file[b]");
}

/// `wait` waits for a state of selected resources.
#[test]
fn wait_takes_resources_and_states() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.ask_daemon(&["wait", "file[*]", "--timeout", "60"])
        .exits(0)
        .prints("converged: 4 resources");
    host.ask_daemon(&["wait", "a", "--for", "paused", "--timeout", "1"])
        .exits(1)
        .says("not paused after 1 s");
    host.ask_daemon(&["pause", "a", "--for", "1h"]).exits(0);
    host.ask_daemon(&["wait", "a", "--for", "paused", "--timeout", "60"]).exits(0);
    host.ask_daemon(&["wait", "a", "--for", "failed", "--timeout", "1"]).exits(1);
    let mut command =
        host.bare(&["wait", "b", "--for", "changed", "--timeout", "60", "--state-dir"]);
    command.arg(host.path("state"));
    let mut waiting = command.spawn().expect("started");
    // The command may look for the first time only after an edit, so there is one edit after another.
    host.wait_until("a change of b is seen", || {
        host.write("b", "edited\n");
        std::thread::sleep(std::time::Duration::from_millis(300));
        waiting.try_wait().expect("a child").is_some()
    });
    assert!(waiting.wait().expect("ended").success());
}

/// A request with so many or so long patterns that their search would take long is refused.
#[test]
fn a_search_is_bounded() {
    let host = Host::with(LABELLED);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let patterns: Vec<String> = (0..51).map(|number| format!("*{number}")).collect();
    let many: Vec<&str> =
        ["status"].into_iter().chain(patterns.iter().map(String::as_str)).collect();
    host.ask_daemon(&many).exits(1).says("expected at most 50 names or patterns without a kind");
    let long = format!("*{}", "a*".repeat(1000));
    host.ask_daemon(&["status", &long]).exits(1).says("expected a selector of at most 512 bytes");
    let unknown: Vec<String> = (0..1000).map(|number| format!("file[{number}]")).collect();
    let many: Vec<&str> = ["check"].into_iter().chain(unknown.iter().map(String::as_str)).collect();
    host.ask_daemon(&many).exits(64).says("file[999]");
    host.ask_daemon(&["status", "file[a]"]).exits(0);
}
