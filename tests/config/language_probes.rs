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
