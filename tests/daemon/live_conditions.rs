//! Conditions of a running daemon: a fact or a probe changes, and only the resources that differ are touched.

use crate::client_commands::status;
use crate::daemon::Daemon;
use crate::host::Host;
use crate::output::Output;
use nix::sys::signal::Signal::{SIGHUP, SIGTERM};
use std::os::unix::fs::MetadataExt as _;

const GRAPH: &str = r#"
graph: live
resources:
  file:
  - {name: always, path: $DIR/always, template: {text: "role {{ facts.local.role }}\n"}}
  - {name: web, when: 'facts.local.role == "web"', path: $DIR/web, content: "web\n"}
  - {name: same, path: $DIR/same, content: "same\n"}
"#;

/// The folder of local facts below the root of a test.
const ROLE: &str = "root/etc/steadfast/facts.d/role.yaml";

/// Creates a host with the local fact `role`.
fn host_with_role(graph: &str, role: &str) -> Host {
    let host = Host::with(graph);
    let folder = host.path(ROLE);
    std::fs::create_dir_all(folder.parent().expect("a folder")).expect("created");
    host.write(ROLE, role);
    host
}

fn run(host: &Host) -> Daemon {
    let mut command = host.command(&["run", "--log", "json"]);
    command.env("STEADFAST_TEST_ROOT", host.path("root"));
    Daemon::start(command, &host.path(""))
}

fn finish(host: &Host, words: &[&str]) -> Output {
    let mut command = host.command(words);
    command.env("STEADFAST_TEST_ROOT", host.path("root"));
    host.finish(command)
}

/// An active resource becomes inactive and is not removed; the status shows the condition; then it is active again.
#[test]
fn a_changed_fact_touches_only_what_differs() {
    let host = host_with_role(GRAPH, "db");
    let daemon = run(&host);
    daemon.wait_for("converged");
    assert_eq!(host.read("always"), "role db\n");
    assert!(!host.exists("web"));
    let shown = status(&host);
    assert_eq!(shown["inactive"][0]["resource"], "file[web]", "{shown}");
    let message = shown["inactive"][0]["message"].as_str().expect("a text");
    assert!(
        message.starts_with("inactive: facts.local.role (") && message.contains("db"),
        "{message}"
    );
    for (command, name) in [("show", "file[web]"), ("why", "file[web]"), ("show", "web")] {
        let shown = host.ask_daemon(&[command, name]);
        shown.exits(0).prints("file[web]: inactive: facts.local.role (");
    }
    host.ask_daemon(&["show", "file[web]"]).prints("  condition at: ");
    let before = host.metadata("same");
    host.write(ROLE, "web");
    daemon.wait_for_all("changed", &["file[always]", "file[web]"]);
    assert_eq!(host.read("always"), "role web\n");
    let after = host.metadata("same");
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    host.wait_until("the resource is active", || {
        status(&host)["inactive"] == serde_json::json!([])
    });
    host.write(ROLE, "db");
    daemon.wait_for_all("changed", &["file[always]"]);
    host.wait_until("the resource is inactive", || {
        status(&host)["inactive"][0]["resource"] == "file[web]"
    });
    daemon.signal(SIGHUP).wait_for("loaded");
    assert!(host.exists("web"), "an inactive resource is never removed");
    host.ask_daemon(&["reload"]).exits(0).prints(" removed, 2 unchanged, 1 inactive");
}

/// A reload that makes a resource inactive removes nothing, and says so.
#[test]
fn a_reload_names_what_becomes_inactive() {
    let graph = |on: bool| {
        format!(
            "graph: live\nvars: {{on: {on}}}\nresources:\n  file:\n  - {{name: a, path: $DIR/a, content: x}}\n  - {{name: b, path: $DIR/b, content: x, when: vars.on}}\n"
        )
    };
    let host = Host::with(&graph(true));
    let daemon = run(&host);
    daemon.wait_for("converged");
    host.graph(&graph(false));
    let said = "0 added, 0 changed, 0 removed, 1 unchanged, 1 inactive\no file[b] (inactive)";
    host.ask_daemon(&["reload"]).exits(0).prints(said);
    let shown = host.ask_daemon(&["show", "file[b]"]);
    shown.exits(0).prints("file[b]: inactive: vars.on (false)").prints("  declared at: ");
    let shown = host.ask_daemon(&["why", "file[b]", "--json"]);
    assert_eq!(shown.json()[0]["phase"], "inactive");
    assert!(host.exists("b"));
}

/// A change that leads to the same graph is not swapped in.
#[test]
fn an_equal_graph_is_not_swapped() {
    let graph = GRAPH.replace("role {{ facts.local.role }}", "role");
    let host = host_with_role(&graph, "db");
    let daemon = run(&host);
    daemon.wait_for("converged");
    host.write(ROLE, "cache");
    host.write(ROLE, "web");
    daemon.wait_for_of("changed", "file[web]");
    assert_eq!(daemon.count("loaded"), 2, "{:?}", daemon.log());
}

/// A fact of a path waits for a reload.
#[test]
fn a_static_field_keeps_its_value_until_a_reload() {
    let graph = r#"
graph: live
resources:
  file:
  - {name: of_role, path: "$DIR/${facts.local.role}", content: "x\n"}
"#;
    let host = host_with_role(graph, "db");
    let daemon = run(&host);
    daemon.wait_for("converged");
    host.write(ROLE, "web");
    let waits = "waits for a reload: facts.local.role changed from db to web";
    host.wait_until("the fact waits", || status(&host)["input_reports"][0] == waits);
    assert!(!host.exists("web"));
    host.ask_daemon(&["status"]).exits(0).prints(waits);
    daemon.signal(SIGHUP).wait_for_of("changed", "file[of_role]");
    assert!(host.exists("web"));
    host.wait_until("no fact waits", || status(&host)["input_reports"] == serde_json::json!([]));
}

/// An expansion that fails is a rejected reload.
#[test]
fn an_invalid_graph_is_rejected_and_the_previous_one_runs_on() {
    let graph = GRAPH.replace(
        "graph: live\n",
        "graph: live\nassert:\n- {that: 'facts.local.role != \"bad\"', message: the role is bad}\n",
    );
    let host = host_with_role(&graph, "web");
    let daemon = run(&host);
    daemon.wait_for("converged");
    host.write(ROLE, "bad");
    let line = daemon.wait_for("rejected");
    assert!(line.message.contains("after a change of facts.local.role"), "{line:?}");
    assert!(line.message.contains("the role is bad"), "{line:?}");
    assert_eq!(host.read("always"), "role web\n");
    host.write(ROLE, "web");
    host.wait_until("nothing is rejected", || status(&host)["rejected"].is_null());
}

const PROBED: &str = r#"
graph: probed
resources:
  file:
  - {name: flag, path: $DIR/flag, content: "yes\n"}
  - {name: on, when: probe.is_on, path: $DIR/on, content: "on\n"}
  - {name: level, path: $DIR/level, template: {text: "{{ level }}\n"}, with: {level: "${probe.level}"}}
  probe:
  - {name: is_on, cmd: [cat, $DIR/switch], type: bool, watchfiles: [$DIR/switch]}
  - {name: level, cmd: [cat, $DIR/flag], after: ["file[flag]"]}
"#;

/// The answer of a probe activates a resource, and a new answer is followed.
#[test]
fn an_answer_of_a_probe_is_followed() {
    let host = Host::with(PROBED);
    host.write("switch", "no\n");
    let daemon = run(&host);
    daemon.wait_for_of("changed", "file[level]");
    assert_eq!(host.read("level"), "yes\n");
    assert!(!host.exists("on"));
    host.write("switch", "yes\n");
    daemon.wait_for_of("changed", "file[on]");
}

/// A reload keeps the answers of the probes: the resources that use them stay active and are repaired. A probe with
/// another type starts without an answer.
#[test]
fn a_reload_keeps_the_answers_of_probes() {
    let host = Host::with(PROBED);
    host.write("switch", "yes\n");
    let daemon = run(&host);
    daemon.wait_for_all("changed", &["file[on]", "file[level]"]);
    daemon.wait_for("converged");
    let line = daemon.signal(SIGHUP).wait_for("loaded");
    assert!(line.message.ends_with("0 added, 0 changed, 0 removed, 5 unchanged"), "{line:?}");
    host.remove("on");
    host.wait_until("it is repaired", || host.exists("on"));
    let other = PROBED.replace("when: probe.is_on", "when: probe.is_on == \"yes\"");
    host.graph(&other.replace("type: bool", "type: text"));
    daemon.signal(SIGHUP).wait_for("loaded");
    host.remove("on");
    host.wait_until("it is active again", || host.exists("on"));
}

/// An apply expands the graph again after the answers of its probes.
#[test]
fn an_apply_has_rounds() {
    let host = Host::with(PROBED);
    host.write("switch", "yes\n");
    finish(&host, &["apply"]).exits(0);
    assert_eq!((host.read("on"), host.read("level")), ("on\n".to_owned(), "yes\n".to_owned()));
    finish(&host, &["apply", "--detailed-exitcode"]).exits(0);
}

/// A graph that changes with what it does ends after five rounds with an error.
#[test]
fn an_apply_that_never_ends_is_refused() {
    let host = Host::with(
        r#"
graph: endless
resources:
  probe:
  - {name: size, cmd: [sh, -c, "echo x >> $DIR/asked; wc -l < $DIR/asked"], type: int}
  file:
  - {name: grows, path: $DIR/grows, template: {text: "{{ size }}\n"}, with: {size: "${probe.size + 1}"}}
"#,
    );
    let output = finish(&host, &["apply"]);
    output.exits(1).says("the graph still changes after 5 rounds");
}

/// A plan names inactive resources with their condition.
#[test]
fn a_plan_names_inactive_resources() {
    let host = host_with_role(GRAPH, "db");
    finish(&host, &["plan"]).exits(0).prints("file[web]: inactive: facts.local.role (");
}

/// A module sees the answers of its own probes.
#[test]
fn a_module_has_probes_of_its_own() {
    let graph = r"
graph: modular
modules:
- {use: site, as: one, with: {file: $DIR/one}}
- {use: site, as: two, with: {file: $DIR/two}}
";
    let module = r#"
module: site
params:
  file: {type: string}
resources:
  probe:
  - {name: size, cmd: [cat, "${params.file}.in"], type: int}
  file:
  - {name: out, path: "${params.file}.out", template: {text: "{{ size }}\n"}, with: {size: "${probe.size + 1}"}}
"#;
    let host = Host::with(graph);
    host.make_directory("site").write("site/module.yaml", module);
    host.write("one.in", "1\n").write("two.in", "2\n");
    finish(&host, &["apply"]).exits(0);
    assert_eq!((host.read("one.out"), host.read("two.out")), ("2\n".to_owned(), "3\n".to_owned()));
}

/// One fact is used in a path, in a condition and in a value: the path alone waits for a reload.
#[test]
fn a_condition_follows_a_fact_that_a_path_uses_too() {
    let graph = r#"
graph: live
resources:
  file:
  - {name: of_role, path: "$DIR/${facts.local.role}", template: {text: "role {{ facts.local.role }}\n"}}
  - {name: web, when: 'facts.local.role == "web"', path: $DIR/only-web, content: "web\n"}
"#;
    let host = host_with_role(graph, "db");
    let daemon = run(&host);
    daemon.wait_for("converged");
    host.write(ROLE, "web");
    daemon.wait_for_all("changed", &["file[of_role]", "file[web]"]);
    assert_eq!(host.read("db"), "role web\n");
    assert!(host.exists("only-web") && !host.exists("web"));
    let waits = "waits for a reload: facts.local.role changed from db to web";
    host.wait_until("the path waits", || status(&host)["input_reports"][0] == waits);
    daemon.signal(SIGHUP).wait_for_of("changed", "file[of_role]");
    assert_eq!(host.read("web"), "role web\n");
}

/// The last-good graph has the paths of the last load after a restart, although the fact has changed since.
#[test]
fn the_last_good_graph_keeps_the_paths_of_its_load() {
    let graph = r#"
graph: live
resources:
  file:
  - {name: of_role, path: "$DIR/${facts.local.role}", template: {text: "role {{ facts.local.role }}\n"}}
"#;
    let host = host_with_role(graph, "db");
    let mut daemon = run(&host);
    daemon.wait_for("converged");
    host.write(ROLE, "web");
    daemon.wait_for_of("changed", "file[of_role]");
    let has_fact = || host.read("state/graph.json").contains("facts_at_load");
    host.wait_until("the graph is stored", has_fact);
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    host.graph("graph: broken\nresources: 1\n").write("db", "other\n");
    let daemon = run(&host);
    daemon.wait_for_of("changed", "file[of_role]");
    assert_eq!(host.read("db"), "role web\n");
    assert!(!host.exists("web"));
}

/// A fact that an apply changes reaches conditions in the same apply, and names in the next one.
#[test]
fn an_apply_keeps_its_names_and_says_so() {
    let graph = r#"
graph: renamed
resources:
  file:
  - {name: role, path: $DIR/root/etc/steadfast/facts.d/role.yaml, content: "web\n"}
  - {name: of_role, path: "$DIR/${facts.local.role}", content: "x\n"}
  - {name: web, when: 'facts.local.role == "web"', path: $DIR/only-web, content: "web\n"}
"#;
    let host = host_with_role(graph, "db\n");
    let applied = finish(&host, &["apply"]);
    applied.exits(0);
    applied.prints("waits for the next apply: facts.local.role changed from db to web");
    assert!(host.exists("db") && host.exists("only-web") && !host.exists("web"));
    finish(&host, &["apply"]).exits(0).prints_nothing_of("waits for the next apply");
    assert!(host.exists("web"));
}

/// Rule 11: a probe that fails after a restart keeps the value that is stored.
#[test]
fn a_failed_probe_keeps_its_stored_value_after_a_restart() {
    let host = Host::with(PROBED);
    host.write("switch", "yes\n");
    let mut daemon = run(&host);
    daemon.wait_for_of("changed", "file[on]");
    daemon.signal(SIGTERM);
    assert_eq!(daemon.ends(), 0);
    host.remove("switch");
    let daemon = run(&host);
    daemon.wait_for_of("failed", "probe[is_on]");
    // The resource is active again, and does not wait for the failed probe.
    host.wait_until("the resource is active", || {
        status(&host)["inactive"] == serde_json::json!([])
    });
    host.remove("on");
    host.wait_until("the resource is repaired", || host.exists("on"));
}

/// Rule 11: a probe that fails keeps its last value, and is reported.
#[test]
fn a_failed_probe_keeps_its_last_value() {
    let host = Host::with(PROBED);
    host.write("switch", "yes\n");
    let daemon = run(&host);
    daemon.wait_for_of("changed", "file[on]");
    host.remove("switch");
    daemon.wait_for_of("failed", "probe[is_on]");
    host.remove("on");
    host.wait_until("its user is repaired meanwhile", || host.exists("on"));
    host.write("switch", "yes\n");
    daemon.wait_for("converged");
    assert_eq!(status(&host)["inactive"], serde_json::json!([]));
    host.write("switch", "no\n");
    host.wait_until("the resource is inactive", || {
        status(&host)["inactive"][0]["resource"] == "file[on]"
    });
    // The first answers changed the graph, and the last one: the failure did not.
    assert_eq!(daemon.count("conditions_changed"), 2, "{:?}", daemon.log());
}

/// Rule 11: neither an edge that a user of the answer declares, nor a receiver of the answer, makes anything wait for a
/// failed probe.
#[test]
fn users_of_a_failed_probe_and_their_successors_go_on() {
    let host = Host::with(
        "graph: g\nresources:\n  probe:\n  - {name: flip, args: [cat, $DIR/flip], type: bool, watchfiles: [$DIR/flip]}\n  \
         file:\n  - {name: user, path: $DIR/user, content: x, when: probe.flip, before: ['file[other]']}\n  \
         - {name: other, path: $DIR/other, content: x}\n  \
         - {name: received, path: $DIR/received, recv: {content: 'probe[flip].output'}}\n",
    );
    host.write("flip", "true\n");
    let daemon = run(&host);
    let names = ["user", "other", "received"];
    daemon.wait_for_of("changed", "file[user]");
    host.wait_until("all are made", || names.iter().all(|name| host.exists(name)));
    host.write("flip", "garbage\n");
    daemon.wait_for_of("failed", "probe[flip]");
    for name in names {
        host.remove(name);
        host.wait_until(&format!("{name} is repaired"), || host.exists(name));
    }
}

/// Rule 11: receivers of a probe that has never answered wait for its first answer.
#[test]
fn receivers_of_a_probe_without_an_answer_wait() {
    let host = Host::with(
        "graph: g\nresources:\n  probe:\n  - {name: flip, args: [cat, $DIR/flip], watchfiles: [$DIR/flip]}\n  \
         file:\n  - {name: received, path: $DIR/received, recv: {content: 'probe[flip].output'}}\n",
    );
    let daemon = run(&host);
    daemon.wait_for_of("failed", "probe[flip]");
    assert!(!host.exists("received"));
    let has_failed =
        daemon.log().iter().any(|it| it.event == "failed" && it.resource == "file[received]");
    assert!(!has_failed, "{:?}", daemon.log());
    host.write("flip", "one");
    daemon.wait_for_of("changed", "file[received]");
}

/// A host is not converged while its graph does not use the last answer of a probe: `wait` right after the start, and
/// after a new answer, sees the resources that follow from it.
#[test]
fn a_wait_sees_what_follows_from_an_answer() {
    let host = Host::with(PROBED);
    host.write("switch", "yes\n");
    let mut daemon = run(&host);
    host.wait_until("the daemon is asked", || host.exists("state/control.socket"));
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    assert!(host.exists("on") && host.exists("level"));
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
    host.remove("on");
    host.finish(host.command(&["run", "--converged-timeout", "0"])).exits(0);
    assert!(host.exists("on"), "the daemon ended before it used the answer");
}

/// A stop right after a reload stores the accepted graph: a start with a broken file runs it.
#[test]
fn a_stop_after_a_reload_stores_the_graph() {
    let graph = |content: &str| {
        format!(
            "graph: g\nresources:\n  file:\n  - {{name: a, path: $DIR/a, content: {content}}}\n"
        )
    };
    let host = Host::with(&graph("one"));
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.write("graph.yaml", host.full(&graph("two")));
    host.ask_daemon(&["reload"]).exits(0);
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
    host.write("graph.yaml", "graph: [\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(host.read("a"), "two");
}

/// A probe that became inactive answers no more: what uses it waits, as it would after a restart.
#[test]
fn an_inactive_probe_has_no_answer() {
    let host = Host::with(
        r#"
graph: chain
resources:
  probe:
  - {name: outer, cmd: [cat, $DIR/switch], type: bool, watchfiles: [$DIR/switch]}
  - {name: inner, when: probe.outer, cmd: [echo, deep]}
  file:
  - {name: on, when: 'probe.inner == "deep"', path: $DIR/on, content: "on\n"}
"#,
    );
    host.write("switch", "true\n");
    let _daemon = run(&host);
    host.wait_until("the file follows both answers", || host.exists("on"));
    host.write("switch", "false\n");
    host.wait_until("the file waits for the inner probe", || {
        status(&host)["inactive"].to_string().contains("unknown until probe[inner]")
    });
    host.write("switch", "true\n");
    host.wait_until("both are active again", || status(&host)["inactive"] == serde_json::json!([]));
}
