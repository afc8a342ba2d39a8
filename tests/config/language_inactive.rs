//! Inactive resources: their static fields count, although they have no vertex.

use crate::language::{Tree, accepted, with_facts};

/// Returns the definition of the directory that purges: it contains the paths of others below.
#[track_caller]
fn purge_definition(others: &str) -> u64 {
    let loaded = accepted(&[(
        "web.yaml",
        &format!(
            "graph: g\nvars: {{dir: /srv/d}}\nresources:\n  file:\n  - {{name: /srv/d/, purge: true}}\n{others}"
        ),
    )]);
    let is_directory = |it: &&steadfast::config::Vertex| it.identity.as_ref() == "file[/srv/d/]";
    loaded.vertices.iter().find(is_directory).unwrap().definition
}

/// Rule 12: a purge spares the path of an inactive resource, however the path is written.
#[test]
fn a_purge_spares_the_paths_of_inactive_resources() {
    let active = purge_definition("  - {name: /srv/d/a, content: x}\n");
    let none = purge_definition("");
    assert_ne!(active, none);
    for inactive in [
        "  - {name: /srv/d/a, content: x, when: false}\n",
        "  - {name: a, path: \"${vars.dir}/a\", content: x, when: false}\n",
        "  - {name: a, path: \"${vars.dir}/a\", mode: \"${probe.p}\"}\n  probe: [{name: p, cmd: [/bin/true], type: text}]\n",
        "  - {name: a, path: \"${vars.dir}/a\", content: \"x\", when: probe.p}\n  probe: [{name: p, cmd: [/bin/true], type: bool}]\n",
        "  block: [{name: b, path: /srv/d/a, when: false}]\n",
        "  line: [{name: l, path: /srv/d/a, when: false}]\n",
    ] {
        assert_eq!(purge_definition(inactive), active, "{inactive}");
    }
    // A path that cannot be computed is no problem of an inactive resource.
    let absent = "  - {name: a, path: \"${facts.timezone}/a\", content: x, when: false}\n";
    assert_eq!(purge_definition(absent), none);
    let unit = |when: &str| {
        let loaded = accepted(&[(
            "web.yaml",
            &format!(
                "graph: g\nvars: {{x: 1}}\nresources:\n  file:\n  - {{name: /etc/systemd/system/, purge: true}}\n  unit:\n  - {{name: a.service, content: \"[Unit]\\n\"{when}}}\n"
            ),
        )]);
        loaded.vertices[0].definition
    };
    assert_eq!(unit(""), unit(", when: false"));
}

/// Rule 11: the static claims of a resource count while a value of it waits for a probe.
#[test]
fn a_resource_that_waits_for_a_value_keeps_its_claims() {
    let graph = |first: &str, second: &str| {
        format!(
            "graph: g\nresources:\n  file:\n  - {{name: a, path: /etc/a, {first}}}\n  - {{name: b, path: /etc/a, {second}}}\n  probe: [{{name: p, cmd: [/bin/true], type: text}}]\n"
        )
    };
    let waits = "mode: \"${probe.p}\"";
    for (first, second) in [(waits, "content: x"), ("content: x", waits), (waits, waits)] {
        let problems = Tree::new(&[("web.yaml", &graph(first, second))]).problems(&with_facts());
        assert!(problems.contains("/etc/a is claimed twice"), "{problems}");
        assert!(problems.contains("`file[a]` and `file[b]`"), "{problems}");
        assert!(problems.contains("web.yaml:4:12") && problems.contains("web.yaml:5:12"));
    }
    // A condition may exclude the other one.
    accepted(&[("web.yaml", &graph("when: probe.p == \"x\"", "when: probe.p != \"x\""))]);
    accepted(&[("web.yaml", &graph("content: x, when: false", waits))]);
    let twice = "graph: g\nresources:\n  noop: [{name: c}]\n  test:\n  - {name: a, text: \"${probe.p}\"}\n  - {name: a, when: true}\n  probe: [{name: p, cmd: [/bin/true], type: text}]\n";
    let problems = Tree::new(&[("web.yaml", twice)]).problems(&with_facts());
    assert!(problems.contains("two declarations of `test[a]` are active"), "{problems}");
}

/// Rule 12: a receiver with a default uses it while its sender is inactive.
#[test]
fn a_receiver_with_a_default_does_not_wait() {
    let graph = |value: &str, resource: &str| {
        format!(
            "graph: g\nvars: {{on: false}}\nresources:\n  value:\n  - {{name: v, text: x, int: 2, when: {value}}}\n{resource}"
        )
    };
    let sent = |key: &str, default: &str| {
        format!("{{from: \"value[v]\", key: {key}, default: {default}}}")
    };
    let definition = |text: &str| {
        let loaded = accepted(&[("web.yaml", text)]);
        assert!(loaded.vertices.iter().any(|it| it.recipe.is_none()), "{text}");
        loaded.vertices.last().unwrap().definition
    };
    let (text, number) = (sent("text", "d"), sent("int", "7"));
    for (received, written) in [
        (
            format!("  test: [{{name: t, recv: {{text: {text}, int: {number}}}}}]\n"),
            "  test: [{name: t, text: d, int: 7}]\n",
        ),
        (
            format!("  test: [{{name: t, recv: {{map.k: {text}}}}}]\n"),
            "  test: [{name: t, map: {k: d}}]\n",
        ),
        (
            format!("  exec: [{{name: e, args: [a, b], recv: {{args.1: {text}}}}}]\n"),
            "  exec: [{name: e, args: [a, d, b]}]\n",
        ),
        (
            format!(
                "  file: [{{name: /tmp/a, template: {{text: \"p={{{{ p }}}} ${{x}}\"}}, values: {{p: {text}}}}}]\n"
            ),
            "  file: [{name: /tmp/a, content: \"p=d ${x}\"}]\n",
        ),
    ] {
        let text = graph("false", &received);
        assert_eq!(definition(&text), definition(&graph("false", written)), "{text}");
        let active = accepted(&[("web.yaml", &graph("true", &received))]);
        assert!(active.vertices.last().unwrap().recipe.is_some());
    }
    let wrong =
        graph("false", &format!("  test: [{{name: t, recv: {{int: {}}}}}]\n", sent("int", "abc")));
    let problems = Tree::new(&[("web.yaml", &wrong)]).problems(&with_facts());
    assert!(problems.contains("the default of `int` should be an integer"), "{problems}");
}

/// A fact in a static field of an inactive resource waits for a reload: its path is spared until then.
#[test]
fn static_fields_of_inactive_resources_keep_their_facts() {
    let names = |when: &str| {
        let text = format!(
            "graph: g\nresources:\n  file:\n  - {{name: a, path: \"/srv/${{facts.hostname}}\", when: 'facts.hostname {when} \"h1\"'}}\n"
        );
        accepted(&[("web.yaml", &text)]).used.static_names.len()
    };
    assert_eq!((names("=="), names("!=")), (1, 1));
}

/// Members of the socket's group see conditions: the machine id and values with names of secrets are not shown.
#[test]
fn private_values_of_conditions_are_not_shown() {
    let loaded = accepted(&[(
        "web.yaml",
        "graph: g\nvars: {db_password: hunter2, role: web}\nresources:\n  noop:\n  - {name: a, when: 'vars.db_password == \"x\" and vars.role == \"db\"'}\n  - {name: b, when: 'facts.machine_id | default(\"none\") == \"x\"'}\n",
    )]);
    let shown: Vec<String> = loaded.inactive.iter().map(ToString::to_string).collect();
    assert!(shown[0].contains("vars.db_password (not shown)"), "{shown:?}");
    assert!(shown[0].contains("vars.role (\"web\")"), "{shown:?}");
    let collected = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let id = collected.trim();
    assert!(shown[1].contains("facts.machine_id"), "{shown:?}");
    assert!(id.is_empty() || !shown[1].contains(id), "{shown:?}");
}
