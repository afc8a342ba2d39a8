//! Facts that have changed since the load: static fields keep the values of the load, all other expressions have the
//! present ones.

use crate::language::{Tree, edges, with_facts};
use std::sync::Arc;
use steadfast::config::{LoadedGraph, Options, load_texts};
use steadfast::expressions::Value;

/// Returns facts of a host with a name.
fn facts_of(host_name: &str) -> Value {
    let mut facts = Value::clone(&crate::language::facts());
    facts.insert_path("hostname", Value::Text(host_name.to_owned()));
    facts
}

/// Returns options for a host that has got the name `new` since its load, when it was called `old`.
fn renamed() -> Options {
    Options {
        facts: Some(Arc::new(facts_of("new"))),
        facts_at_load: Some(Arc::new(facts_of("old"))),
        ..crate::options()
    }
}

#[track_caller]
fn load(files: &[(&str, &str)], options: &Options) -> LoadedGraph {
    Tree::new(files).load(options).unwrap_or_else(|why| panic!("{why}"))
}

fn names(loaded: &LoadedGraph) -> Vec<&str> {
    loaded.vertices.iter().map(|vertex| vertex.identity.as_ref()).collect()
}

/// Rule 3: one fact is used in a name, a condition and a value.
#[test]
fn a_name_keeps_the_fact_of_the_load_and_a_condition_follows_it() {
    let text = r#"
graph: g
vars: { host: "${facts.hostname}" }
resources:
  test:
  - { name: "of-${facts.hostname}", text: "${facts.hostname}" }
  - { name: "var-${vars.host}", text: "${vars.host}" }
  - { name: was, when: 'facts.hostname == "old"' }
  - { name: is, when: 'vars.host == "new"', after: ["test[of-${vars.host}]"] }
  - { for_each: ["${vars.host}"], name: "item-${item}", text: "${item}" }
edges:
- { from: "test[of-${vars.host}]", to: "test[var-${facts.hostname}]" }
"#;
    let loaded = load(&[("web.yaml", text)], &renamed());
    assert_eq!(names(&loaded), ["test[of-old]", "test[var-old]", "test[is]", "test[item-old]"]);
    assert_eq!(loaded.inactive.len(), 1, "{:?}", loaded.inactive);
    assert_eq!(loaded.inactive[0].to_string(), "inactive: facts.hostname (\"new\") == \"old\"");
    let written = load(
        &[(
            "web.yaml",
            "graph: g\nresources:\n  test:\n  - {name: of-old, text: new}\n  - {name: var-old, text: new}\n  - {name: is}\n  - {name: item-old, text: old}\n",
        )],
        &renamed(),
    );
    for (one, other) in loaded.vertices.iter().zip(&written.vertices) {
        assert_eq!(one.definition, other.definition, "{}", one.identity);
    }
    let all = edges(&loaded);
    let has = |from: &str, to: &str| all.iter().any(|(a, b, _)| a == from && b == to);
    assert!(has("test[of-old]", "test[is]") && has("test[of-old]", "test[var-old]"), "{all:?}");
}

/// A parameter of a module has two values as well.
#[test]
fn params_of_modules_keep_the_fact_of_the_load_in_names() {
    let graph = "graph: g\nvars: {x: \"${facts.hostname}\"}\nmodules:\n- {use: m, as: one, with: {host: \"${vars.x}\"}}\n";
    let module = "module: m\nparams: {host: {type: string}}\nmodules:\n- {use: n, as: two, with: {name: \"${params.host}\"}}\nresources:\n  test:\n  - {name: \"${params.host}\", text: \"${params.host}\"}\n";
    let inner = "module: n\nparams: {name: {type: string}}\nresources:\n  test:\n  - {name: \"${params.name}\", when: 'params.name == \"new\"'}\n";
    let files = [("web.yaml", graph), ("m/module.yaml", module), ("n/module.yaml", inner)];
    let files = files
        .map(|(path, text)| (if path.starts_with('n') { "m/n/module.yaml" } else { path }, text));
    let loaded = load(&files, &renamed());
    assert_eq!(names(&loaded), ["one/test[old]", "one/two/test[old]"]);
    let written = module.replace("name: \"${params.host}\", text", "name: old, text");
    let literal = load(&[files[0], (files[1].0, &written), files[2]], &renamed());
    assert_eq!(loaded.vertices[0].definition, literal.vertices[0].definition);
    let fresh = Options { facts_at_load: None, ..renamed() };
    assert_eq!(names(&load(&files, &fresh)), ["one/test[new]", "one/two/test[new]"]);
}

/// Rule 12: a purge spares the path that an inactive resource had at the load.
#[test]
fn the_path_of_an_inactive_resource_stays() {
    let purge = |file: &str| {
        let text = format!(
            "graph: g\nresources:\n  file:\n  - {{name: /srv/d/, purge: true}}\n  - {file}\n"
        );
        load(&[("web.yaml", &text)], &renamed()).vertices[0].definition
    };
    let inactive = purge("{name: a, path: \"/srv/d/${facts.hostname}\", content: x, when: false}");
    assert_eq!(inactive, purge("{name: a, path: /srv/d/old, content: x, when: false}"));
    assert_ne!(inactive, purge("{name: a, path: /srv/d/new, content: x, when: false}"));
}

/// A stored graph has both values: it runs with the same names after a restart.
#[test]
fn stored_texts_hold_the_facts_of_the_load() {
    let text = "graph: g\nresources:\n  test:\n  - {name: \"${facts.hostname}\", text: \"${facts.hostname}\"}\n";
    let loaded = load(&[("web.yaml", text)], &renamed());
    let again = load_texts(loaded.texts.clone(), &crate::options()).expect("valid texts");
    assert_eq!(names(&again), ["test[old]"]);
    assert_eq!(again.vertices[0].definition, loaded.vertices[0].definition);
    assert_eq!(
        again.used.facts_at_load.unwrap().at_path("hostname"),
        facts_of("old").at_path("hostname")
    );
}

/// In a plan, a fact that a step changes makes its users unknown; names keep the present value.
#[test]
fn users_of_an_unknown_fact_wait_for_the_resource_that_changes_it() {
    let graph = r#"
graph: g
vars: { host: "${facts.hostname}", other: "${facts.os.id}" }
resources:
  test:
  - { name: "name-${vars.host}", text: "${vars.other}" }
  - { name: value, text: "at ${facts.hostname}" }
  - { name: variable, text: "${vars.host}" }
  - { name: condition, when: 'vars.host != "x"' }
  - { name: other, text: "${facts.os.id}" }
modules:
- { use: m, as: one, with: { host: "${vars.host}", os: "${vars.other}" } }
"#;
    let module = r#"
module: m
params: { host: { type: string }, os: { type: string } }
resources:
  test:
  - { name: "${params.host}", text: "${params.os}" }
  - { name: value, text: "${params.host}" }
"#;
    let until = "hostname[h]".to_owned();
    let options = Options {
        facts: Some(Arc::new(facts_of("old"))),
        unknown_facts: [("hostname".to_owned(), until.clone())].into(),
        ..crate::options()
    };
    let loaded = load(&[("web.yaml", graph), ("m/module.yaml", module)], &options);
    assert_eq!(names(&loaded), ["test[name-old]", "test[other]", "one/test[old]"]);
    let waiting: Vec<&str> = loaded.inactive.iter().map(|it| it.identity.as_ref()).collect();
    let expected = ["one/test[value]", "test[condition]", "test[value]", "test[variable]"];
    assert_eq!(waiting, expected);
    assert!(loaded.inactive.iter().all(|it| it.unknown_until.as_ref() == Some(&until)));
}

/// An expression in the list of a loop cannot use a probe: the instances must be known at load.
#[test]
fn a_list_of_a_loop_and_an_edge_take_no_probe() {
    for (text, message) in [
        (
            "graph: g\nresources:\n  test:\n  - {for_each: [\"${probe.p}\"], name: \"${item}\"}\n  probe: [{name: p, cmd: [/bin/true], type: text}]\n",
            "`for_each` must be known at load; a probe is not",
        ),
        (
            "graph: g\nresources:\n  test: [a, b]\n  probe: [{name: p, cmd: [/bin/true], type: text}]\nedges:\n- {from: \"test[${probe.p}]\", to: \"test[b]\"}\n",
            "an edge must be known at load; a probe is not",
        ),
    ] {
        let answered = [("p".to_owned(), Value::Text("a".to_owned()))].into();
        let options = Options { probes: Some(Arc::new(answered)), ..with_facts() };
        let problems = Tree::new(&[("web.yaml", text)]).problems(&options);
        assert!(problems.contains(message), "{problems}");
    }
}

/// One graph fits hosts with and without a local fact, and the message about an absent one names its folder.
#[test]
fn a_local_fact_may_be_absent() {
    let graph = r#"graph: g
resources:
  noop:
  - { name: 'rack-${facts.local.rack.row | default(0)}' }
  - { name: 'role-${facts.local.role | default("none")}' }
  - { name: racked, when: '"rack" in facts.local' }
"#;
    let files = [("web.yaml", graph)];
    let with = |local: serde_json::Value| {
        let mut facts = Value::clone(&crate::language::facts());
        facts.insert_path("local", Value::from_json(local).unwrap());
        Options { facts: Some(Arc::new(facts)), ..crate::options() }
    };
    let without = load(&files, &with(serde_json::json!({})));
    assert_eq!(names(&without), ["noop[rack-0]", "noop[role-none]"]);
    let both = with(serde_json::json!({"rack": {"row": 7}, "role": "db"}));
    assert_eq!(names(&load(&files, &both)), ["noop[rack-7]", "noop[role-db]", "noop[racked]"]);
    for (expression, expected) in [
        ("facts.local.rack", "no fact `local.rack`"),
        (
            "facts.local.rack",
            "this host lacks it: add /etc/steadfast/facts.d/rack.yaml, or write `facts.local.rack | default(VALUE)`",
        ),
        ("facts.local.role | default(0)", "the value is string, the default int"),
        ("facts.os.idd | default(0)", "no fact `os.idd`; nearest: `os.id`"),
    ] {
        let text =
            format!("graph: g\nresources: {{test: [{{name: t, text: '${{{expression}}}'}}]}}\n");
        let role = with(serde_json::json!({"role": "db"}));
        let problems = Tree::new(&[("web.yaml", &text)]).problems(&role);
        assert!(problems.contains(expected), "expected {expected}\nfound {problems}");
    }
}

/// One template fits hosts with and without a local fact: a default, a condition and a loop in it need no file.
#[test]
fn a_template_may_use_an_absent_local_fact() {
    let load = |local: Option<serde_json::Value>, template: &str| {
        let graph = format!(
            "graph: g\nresources:\n  file:\n  - {{name: /srv/a, template: {{text: \"{template}\"}}}}\n"
        );
        let mut facts = Value::clone(&crate::language::facts());
        if let Some(local) = local {
            facts.insert_path("local", Value::from_json(local).unwrap());
        }
        let options = Options { facts: Some(Arc::new(facts)), ..with_facts() };
        let tree = Tree::new(&[("web.yaml", &graph)]);
        let path = [tree.path("web.yaml")];
        let expanded = steadfast::config::expanded_text(&path, &options);
        expanded.map_err(|rejected| rejected.with_source())
    };
    let none = || Some(serde_json::json!({}));
    let some = || Some(serde_json::json!({"role": {"name": "db", "deep": {"x": 1}}}));
    for (template, without, with) in [
        ("{{ facts.local.role.name | default('none') }}", "none", "db"),
        ("{{ facts.local.role.deep.x | default(0) }}", "0", "1"),
        ("{{ facts.local.role.deep.y | default(0) }}", "0", "0"),
        ("{% if 'role' in facts.local %}{{ facts.local.role.name }}{% endif %}!", "!", "db!"),
        ("{% if facts.local.role is defined %}{{ facts.local.role.name }}{% endif %}!", "!", "db!"),
        ("{% set r = facts.local.role.name|default('x') %}{{ r ~ r }}", "xx", "dbdb"),
        ("{% if facts.local.role.name|default('') == 'db' %}y{% else %}n{% endif %}", "n", "y"),
    ] {
        for (facts, wanted) in [(none(), without), (some(), with)] {
            let text = load(facts, template).unwrap_or_else(|said| panic!("{template}: {said}"));
            let content = text.lines().find(|line| line.contains("content:")).unwrap_or_default();
            let found =
                content.split_once("content: ").unwrap().1.trim_matches('"').trim_matches('\'');
            assert_eq!(found, wanted, "{template}");
        }
    }
    let default = "{{ facts.local.role.name | default('none') }}";
    assert!(load(None, default).is_ok(), "{:?}", load(None, default));
    for template in ["{{ facts.local.role.name }}", "a {{ facts.local.role.name | upper }}"] {
        let said = load(none(), template).unwrap_err();
        assert!(said.contains("no fact `local.role"), "{said}");
        let hint = "this host lacks it: add /etc/steadfast/facts.d/role.yaml, or write `facts.local.role.name | default(VALUE)`";
        assert!(said.contains(hint), "{said}");
        assert!(said.contains("template:1:"), "{said}");
    }
    let said = load(some(), "{{ facts.local.role.nmae }}").unwrap_err();
    assert!(said.contains("no fact `local.role.nmae`"), "{said}");
    // The template depends on the fact that it names, and on no other local fact.
    let graph = format!(
        "graph: g\nresources:\n  file: [{{name: /srv/a, template: {{text: \"{default}\"}}}}]\n"
    );
    let loaded = Tree::new(&[("web.yaml", &graph)]).load(&with_facts()).unwrap();
    let used: Vec<&str> = loaded.used.fact_names.iter().map(String::as_str).collect();
    assert_eq!(used, ["local.role.name"]);
}
