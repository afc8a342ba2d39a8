//! The graph language through the real program: inactive resources, shrinking loops, facts of a file, expanded graphs.

use crate::host::Host;

const INACTIVE: &str = r#"graph: g
vars: {on: false}
resources:
  file:
  - {name: a, path: $DIR/a, content: "a\n"}
  - {name: b, path: $DIR/b, content: "b\n", when: vars.on, after: ["file[a]"]}
"#;

/// Rule 12: `show` and `why` answer with the condition of an inactive resource.
#[test]
fn show_and_why_name_the_condition_of_an_inactive_resource() {
    let host = Host::with(INACTIVE);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    for words in [["show", "file[b]"], ["why", "file[b]"]] {
        let shown = host.ask_daemon(&words);
        shown.exits(0).prints("file[b]: inactive: vars.on (false) ($DIR/graph.yaml:6)");
    }
    host.plan().exits(0).prints("file[b]: inactive: vars.on (false)");
}

/// Rule 12: a purge leaves the file of a resource that has become inactive.
#[test]
fn a_purge_leaves_the_file_of_an_inactive_resource() {
    let graph = "graph: g\nvars: {on: true}\nresources:\n  file:\n  - {name: $DIR/d/, purge: true}\n  - {name: a, path: $DIR/d/a, content: x, when: vars.on}\n";
    let host = Host::with(graph);
    host.apply().exits(0);
    host.write("d/other", "x");
    host.graph(&graph.replace("on: true", "on: false"));
    host.apply().exits(0);
    assert!(host.exists("d/a") && !host.exists("d/other"));
}

/// Part 6: a loop with `on_remove: delete` whose list shrinks is accepted; the plan lists each removal last, by name.
#[test]
fn a_shrinking_loop_is_planned_last_and_by_name() {
    let graph = |list: &str, new: &str| {
        format!(
            "graph: g\nvars: {{names: [{list}]}}\nresources:\n  file:\n  - {{for_each: vars.names, name: \"$DIR/${{item}}\", content: x, meta: {{on_remove: delete}}}}\n{new}"
        )
    };
    let host = Host::with(&graph("a, b, c", ""));
    host.apply().exits(0);
    host.graph(&graph("b", "  - {name: $DIR/new, content: x}\n"));
    let planned = host.plan();
    planned.exits(0).prints_in_order(&["+ file[$DIR/new]", "- file[$DIR/"]);
    for name in ["- file[$DIR/a]", "- file[$DIR/c]"] {
        planned.prints(name);
    }
    host.apply().exits(0);
    assert!(!host.exists("a") && host.exists("b") && !host.exists("c"));
}

/// Rule 15: `check` and `graph --expanded` judge a graph for the facts of a file.
#[test]
fn facts_of_a_file_judge_a_graph_for_another_host() {
    let graph = "graph: g\nresources:\n  noop:\n  - {name: \"on-${facts.os.id}\"}\n  - {name: big, when: facts.cpu.count > 1000}\n";
    let host = Host::with(graph);
    host.write("facts.json", r#"{"os": {"id": "other"}, "cpu": {"count": 2000}}"#);
    let facts = host.path("facts.json").display().to_string();
    let file = host.path("graph.yaml").display().to_string();
    let expanded = host.ask(&["graph", "--expanded", &file, "--facts", &facts]);
    expanded.exits(0).prints("name: \"on-other\"").prints("when facts.cpu.count > 1000");
    expanded.prints(":4");
    host.ask(&["check", &file, "--facts", &facts]).exits(0);
    let own = host.ask(&["graph", "--expanded", &file]);
    own.exits(0).prints("inactive: facts.cpu.count > 1000").prints_nothing_of("on-other");
    host.write("facts.json", r#"{"os": {"id": "other"}, "cpu": {}}"#);
    let wrong = host.ask(&["check", &file, "--facts", &facts]);
    wrong.exits(65);
    assert!(wrong.stderr.contains("the host has no value of `facts.cpu.count`"), "{wrong}");
}

/// A plan names the facts behind the path of a resource, whose name may be another one.
#[test]
fn a_plan_finds_facts_by_the_path_of_a_resource() {
    let graph = |file: &str| {
        format!(
            "graph: g\nresources:\n  file:\n  - {file}\n  noop:\n  - {{name: \"n-${{facts.time_zone}}\"}}\n"
        )
    };
    // The state would be another one: nothing is applied here.
    for file in [
        "{name: /etc/timezone, content: \"Mars/Olympus\\n\"}",
        "{name: zone, path: /etc/timezone, content: \"Mars/Olympus\\n\"}",
    ] {
        let host = Host::with(&graph(file));
        host.plan().prints("facts.time_zone: unknown until file[");
    }
}

/// Rule 10: a fact whose value does not match its pattern is absent, and `doctor` says so.
#[test]
fn doctor_names_a_fact_with_a_wrong_value() {
    let host = Host::with("graph: g\nresources: {noop: [a]}\n");
    std::fs::create_dir_all(host.path("root/proc/sys/kernel")).expect("created");
    host.write("root/proc/sys/kernel/hostname", "a name; rm -rf /\n");
    let mut command = host.bare(&["doctor"]);
    command.env("STEADFAST_TEST_ROOT", host.path("root"));
    let output = host.finish(command);
    output.prints("facts").prints("hostname").prints("expressions treat the fact as absent");
    let mut command = host.bare(&["facts", "--json"]);
    command.env("STEADFAST_TEST_ROOT", host.path("root"));
    let facts = host.finish(command).json();
    assert_eq!(facts["hostname"], serde_json::Value::Null, "{facts}");
}
