//! Probes in expressions: declared types, edges, and the values of parameters before the first answer.

use crate::language::{Tree, accepted, edges, with_facts};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast::config::Options;
use steadfast::expressions::Value;

const PROBES: &str = "  probe:\n  - {name: flag, cmd: [/bin/true], type: bool}\n  - {name: count, cmd: [/bin/true], value: {exit: true}}\n  - {name: data, cmd: [/bin/true], type: json}\n  - {name: word, builtin: os}\n  - {name: ssl, cmd: [/bin/true], value: {match: x}}\n";

/// Part 3: an expression is checked against the declared type of a probe before the probe has answered.
#[test]
fn expressions_are_checked_before_a_probe_answers() {
    let graph = |vars: &str, resource: &str| {
        format!(
            "graph: g\nvars: {{{vars}}}\nresources:\n  test:\n  - {{name: t, {resource}}}\n{PROBES}"
        )
    };
    for (vars, resource, message) in [
        ("", "when: probe.flag > 3", "compares bool with int"),
        ("", "when: probe.ssl == 1", "compares bool with int"),
        ("", "when: probe.count", "a condition must be bool, this is int; write `probe.count > 0`"),
        ("", "when: probe.word", "a condition must be bool, this is string"),
        ("", "when: vars.w", "no variable"),
        ("f: \"${probe.flag}\"", "when: vars.f == \"x\"", "compares bool with string"),
        ("f: \"${probe.flag > 1}\"", "text: x", "compares bool with int"),
        ("f: \"x ${probe.count}\"", "when: vars.f > 1", "compares string with int"),
        ("", "int: \"${probe.flag}\"", "`int` wants an integer"),
        ("", "int: \"a${probe.flag}\"", "mixed text is a string"),
        ("", "text: \"${probe.flag + 1}\"", "bool"),
    ] {
        let problems = Tree::new(&[("web.yaml", &graph(vars, resource))]).problems(&with_facts());
        assert!(problems.contains(message), "{vars} {resource}: {problems}");
    }
    for (vars, resource) in [
        ("", "when: probe.flag or probe.count > 3"),
        ("", "when: probe.data.a > 3"),
        (
            "f: \"${probe.count + 1}\"",
            "when: vars.f > 1, int: \"${vars.f}\", text: \"a ${vars.f}\"",
        ),
        ("f: [\"${probe.count + 1}\"]", "when: 'vars.f[0] > 1'"),
    ] {
        let loaded = accepted(&[("web.yaml", &graph(vars, resource))]);
        assert!(loaded.inactive[0].unknown_until.is_some(), "{resource}");
    }
}

fn options(answer: bool) -> Options {
    let probes = BTreeMap::from([("flag".to_owned(), Value::Bool(answer))]);
    Options { probes: Some(Arc::new(probes)), ..with_facts() }
}

fn has_edge(loaded: &steadfast::config::LoadedGraph, from: &str, to: &str) -> bool {
    edges(loaded).contains(&(from.to_owned(), to.to_owned(), false))
}

/// Rule 11: a parameter may come from a probe: its users wait for the answer, and come after the probe.
#[test]
fn a_parameter_may_wait_for_a_probe() {
    let files = [
        (
            "web.yaml",
            format!("graph: g\nmodules:\n- {{use: m, as: shop, with: {{old: \"${{probe.flag}}\", n: 2}}}}\nresources:\n{PROBES}"),
        ),
        (
            "m/m.yaml",
            "module: m\nparams: {old: {type: bool}, n: {type: int, default: 1}}\nresources:\n  noop: [plain, {name: a, when: params.old}]\n  test: [{name: t, bool: \"${params.old}\", int: \"${params.n}\"}]\nmodules: [{use: ../n, as: inner, with: {deep: \"${params.old}\"}}]\n".to_owned(),
        ),
        (
            "n/n.yaml",
            "module: n\nparams: {deep: {type: bool}}\nresources:\n  noop: [{name: b, when: params.deep}]\n".to_owned(),
        ),
    ];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let loaded = accepted(&files);
    let inactive: Vec<String> =
        loaded.inactive.iter().map(|it| format!("{}: {it}", it.identity)).collect();
    let waiting = ["shop/inner/noop[b]", "shop/noop[a]", "shop/test[t]"];
    assert_eq!(inactive, waiting.map(|it| format!("{it}: unknown until probe[flag]")));
    assert!(has_edge(&loaded, "probe[flag]", "shop/noop[plain]"));
    let loaded = Tree::new(&files).load(&options(true)).unwrap();
    assert!(loaded.inactive.is_empty());
    for to in ["shop/noop[a]", "shop/test[t]", "shop/inner/noop[b]"] {
        assert!(has_edge(&loaded, "probe[flag]", to), "{to}: {:?}", edges(&loaded));
    }
    // Static fields use no such parameter, also after the answer.
    let wrong = "module: m\nparams: {old: {type: bool}, n: {type: int, default: 1}}\nresources:\n  noop: [{name: \"x-${params.old}\"}]\n";
    let files = [files[0], ("m/m.yaml", wrong)];
    for options in [with_facts(), options(true)] {
        let problems = Tree::new(&files).problems(&options);
        assert!(problems.contains("an identity must be known at load"), "{problems}");
    }
}

/// A cycle through an expression with a probe is found before the probe has answered.
#[test]
fn cycles_through_probes_are_found_at_load() {
    let graph = |probe: &str, file: &str| {
        format!(
            "graph: g\nvars: {{w: \"${{probe.p}}\"}}\nresources:\n  probe:\n  - {{name: p, cmd: [/bin/true], type: text, {probe}}}\n  noop:\n  - {{name: mid, after: [\"test[t]\"]}}\n  test:\n  - {{name: t, {file}}}\n"
        )
    };
    for (probe, file, count) in [
        ("after: [\"test[t]\"]", "text: \"${probe.p}\"", 2),
        ("after: [\"test[t]\"]", "text: \"${vars.w}\"", 2),
        ("after: [\"noop[mid]\"]", "when: probe.p != \"\"", 3),
        ("after: [\"noop[*]\"]", "text: \"${probe.p}\"", 3),
    ] {
        let problems = Tree::new(&[("web.yaml", &graph(probe, file))]).problems(&with_facts());
        let expected = format!("dependency cycle of {count} resources");
        assert!(problems.contains(&expected), "{probe} {file}: {problems}");
        assert_eq!(problems.matches("dependency cycle").count(), 1, "{problems}");
        assert!(problems.contains("test[t] waits for probe[p]"), "{problems}");
    }
    for (probe, file) in [
        ("poll: 1h", "text: \"${probe.p}\""),
        ("after: [\"test[t]\"]", "when: false, text: \"${probe.p}\""),
    ] {
        accepted(&[("web.yaml", &graph(probe, file))]);
    }
}

/// Rule 11: a probe that a module exports has a name in expressions outside; another one has none.
#[test]
fn an_exported_probe_is_used_outside_of_its_module() {
    let web = |name: &str| {
        format!(
            "graph: g\nmodules: [{{use: m, as: shop.v1}}]\nresources:\n  test:\n  - {{name: t, when: 'probe[\"shop.v1/{name}\"] > 3', int: '${{probe[\"shop.v1/{name}\"]}}'}}\n"
        )
    };
    let module = "module: m\nresources:\n  probe:\n  - {name: load, cmd: [/bin/true], type: int}\n  - {name: own, cmd: [/bin/true], type: int}\nexports: {load: \"probe[load]\"}\n";
    let files = [("web.yaml", web("load")), ("m/m.yaml", module.to_owned())];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let loaded = accepted(&files);
    assert_eq!(loaded.inactive[0].to_string(), "unknown until shop.v1/probe[load]");
    assert_eq!(loaded.used.probes.iter().map(String::as_str).collect::<Vec<_>>(), ["shop.v1/load"]);
    let answers = |value: i64| {
        let probes = BTreeMap::from([("shop.v1/load".to_owned(), Value::Int(value))]);
        Options { probes: Some(Arc::new(probes)), ..with_facts() }
    };
    let loaded = Tree::new(&files).load(&answers(4)).unwrap();
    assert!(has_edge(&loaded, "shop.v1/probe[load]", "test[t]"), "{:?}", edges(&loaded));
    assert_eq!(Tree::new(&files).load(&answers(1)).unwrap().inactive.len(), 1);
    for (name, message) in [
        ("own", "`own` is not exported by module `m`"),
        ("lod", "the graph has no resource `shop.v1/probe[lod]`"),
    ] {
        let text = web(name);
        let problems =
            Tree::new(&[("web.yaml", &text), ("m/m.yaml", module)]).problems(&with_facts());
        assert!(problems.contains(message), "{problems}");
    }
}

/// The known fields of a resource that waits for a probe are checked before the answer.
#[test]
fn fields_are_checked_before_a_probe_answers() {
    let graph = |fields: &str| {
        format!(
            "graph: g\nresources:\n  test:\n  - {{name: t, text: \"${{probe.flag}}\", {fields}}}\n{PROBES}"
        )
    };
    for (fields, message) in [
        ("int: abc", "`int`"),
        ("txet: a", "unknown key `txet`"),
        ("meta: {retry: abc}", "`retry`"),
        ("labels: [1]", "`labels`"),
    ] {
        let problems = Tree::new(&[("web.yaml", &graph(fields))]).problems(&with_facts());
        assert!(problems.contains(message), "{fields}: {problems}");
    }
    let kinds = Options { kinds: steadfast::config::KindSet::of_this_build(), ..with_facts() };
    let file = |fields: &str| {
        format!(
            "graph: g\nresources:\n  file:\n  - {{name: /srv/a, template: {{text: \"{{{{ x }}}}\"}}, with: {{x: \"${{probe.p}}\"}}, {fields}}}\n  probe:\n  - {{name: p, cmd: [/bin/true]}}\n"
        )
    };
    let problems = Tree::new(&[("web.yaml", &file("mode: \"09\""))]).problems(&kinds);
    assert!(problems.contains("mode"), "{problems}");
    let right = file("mode: \"0640\", validate: \"/bin/true %s\"");
    Tree::new(&[("web.yaml", &right)]).load(&kinds).unwrap();
}

/// Rule 11: a probe in the condition of a use or an include comes before its resources.
#[test]
fn a_probe_in_a_condition_of_many_resources_comes_first() {
    let text = format!(
        "graph: g\ninclude: [{{file: more.yaml, when: probe.flag}}]\nmodules: [{{use: m, as: shop, when: probe.flag}}]\nresources:\n{PROBES}"
    );
    let files = [
        ("web.yaml", text.as_str()),
        ("more.yaml", "resources: {noop: [one, {name: two}]}\nmodules: [{use: m, as: blog}]\n"),
        ("m/m.yaml", "module: m\nresources: {noop: [a, {name: b}]}\n"),
    ];
    let loaded = Tree::new(&files).load(&options(true)).unwrap();
    for to in ["noop[one]", "noop[two]", "shop/noop[a]", "shop/noop[b]", "blog/noop[a]"] {
        assert!(has_edge(&loaded, "probe[flag]", to), "{to}: {:?}", edges(&loaded));
    }
}

/// Rule 7: the metaparameters of a use hold for an entry that is only a name.
#[test]
fn a_bare_name_takes_the_metaparameters_of_a_use() {
    let loaded = accepted(&[
        ("web.yaml", "graph: g\nmodules: [{use: m, as: x, meta: {retry: 3}}]\n"),
        ("m/m.yaml", "module: m\nresources: {noop: [a, {name: b}]}\n"),
    ]);
    assert_eq!(loaded.vertices.len(), 2);
    assert!(loaded.vertices.iter().all(|it| it.meta == loaded.vertices[1].meta));
}

/// `lines: true` is a list of strings, with the type string and without one.
#[test]
fn the_lines_of_a_probe_are_a_list_of_strings() {
    let kinds = steadfast::config::KindSet::of_this_build();
    let graph = |value: &str, fields: &str| {
        format!(
            "graph: g\nresources:\n  exec: [{{name: e, {fields}}}]\n  probe: [{{name: l, cmd: [/bin/true], value: {{lines: true{value}}}}}]\n"
        )
    };
    for value in ["", ", type: string", ", type: json"] {
        let text = graph(value, "args: \"${probe.l}\", when: '\"a\" in probe.l'");
        let tree = Tree::new(&[("web.yaml", &text)]);
        for (answer, active) in [(None, 1), (Some(vec!["a", "b"]), 2), (Some(vec![]), 1)] {
            let probes = answer.map(|lines| {
                let sent = vec![(
                    "json",
                    steadfast_resources::SentValue::Shown(steadfast_resources::Value::Text(
                        serde_json::Value::from(lines).to_string(),
                    )),
                )];
                let answer = steadfast::config::probe_answer("probe[l]", &sent).unwrap();
                Arc::new(BTreeMap::from([answer]))
            });
            let options = Options { probes, kinds: kinds.clone(), ..with_facts() };
            let loaded = tree.load(&options).unwrap_or_else(|it| panic!("{}", it.with_source()));
            assert_eq!(loaded.vertices.len(), active, "{value}");
        }
        let text = graph(value, "args: [a], when: probe.l == \"a\"");
        let options = Options { kinds: kinds.clone(), ..with_facts() };
        let problems = Tree::new(&[("web.yaml", &text)]).problems(&options);
        assert!(problems.contains("compares list of string with string"), "{problems}");
    }
    let text = graph(", type: int", "args: [a]");
    let options = Options { kinds, ..with_facts() };
    let problems = Tree::new(&[("web.yaml", &text)]).problems(&options);
    assert!(problems.contains("`lines: true` gives a list of strings"), "{problems}");
}
