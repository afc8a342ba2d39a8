//! The graph language: the modes of fields, and the test cases of modules.

use crate::language::{Tree, accepted, edges, with_facts};
use steadfast::config::{self, KindSet};

/// Rule 3: each field of each kind that takes text has an expression mode.
#[test]
fn each_text_field_has_a_mode() {
    use steadfast_resources::{FieldMode, FieldType, Interpreter, KindSet};
    let mut missing = Vec::new();
    for spec in KindSet::of_this_build().specs() {
        for field in spec.fields.iter().filter(|it| !it.later && it.ignored.is_none()) {
            let is_text = matches!(
                field.takes,
                FieldType::Text | FieldType::Texts | FieldType::TextMap | FieldType::Anything
            );
            if is_text && field.mode.is_none() {
                missing.push(format!("{}.{}", spec.kind, field.name));
            }
        }
    }
    assert!(missing.is_empty(), "fields without a decision about expressions: {missing:?}");
    let mode = |kind: &str, name: &str| {
        let spec = KindSet::of_this_build().find(kind).unwrap();
        spec.fields.iter().find(|field| field.name == name).unwrap().mode.unwrap()
    };
    assert_eq!(mode("file", "content"), FieldMode::Literal(Interpreter::None));
    assert_eq!(mode("cron", "job"), FieldMode::Literal(Interpreter::Cron));
    assert_eq!(mode("firewall", "content"), FieldMode::Literal(Interpreter::Nft));
    assert_eq!(mode("ssh:authorized_key", "options"), FieldMode::Literal(Interpreter::Sshd));
    assert_eq!(mode("unit", "content"), FieldMode::Literal(Interpreter::Systemd));
    assert_eq!(mode("exec", "ifcmd"), FieldMode::Argv("ifshell"));
    assert_eq!(mode("exec", "shell"), FieldMode::Static);
    assert_eq!(mode("file", "path"), FieldMode::Static);
}

/// Issue 17, point 6: the cases of a module run without a host.
#[test]
fn the_cases_of_a_module_run() {
    let case = "params: {n: 2}\nfacts: {os: {codename: trixie}}\nresources:\n  noop[a2]: {}\n  test[t]: {int: 4, text: trixie}\ninactive: [\"noop[b]\"]\n";
    let tree = Tree::new(&[
        (
            "m/m.yaml",
            "module: m\nparams: {n: {type: int, max: 5}}\nresources:\n  noop: [{name: \"a${params.n}\"}, {name: b, when: params.n > 3}]\n  test: [{name: t, int: \"${params.n * 2}\", text: \"${facts.os.codename}\"}]\n",
        ),
        ("m/cases/1.yaml", case),
        ("m/cases/2.yaml", "params: {n: 9}\nerror: wants at most 5\n"),
        (
            "m/cases/3.yaml",
            "params: {n: 1}\nfacts: {os: {codename: x}}\nresources: {\"noop[a2]\": {}, \"test[t]\": {int: 3}}\n",
        ),
    ]);
    let results = config::test_module(&tree.path("m"), &KindSet::of_this_build()).unwrap();
    let differences: Vec<&[String]> = results.iter().map(|it| it.differences.as_slice()).collect();
    assert!(differences[0].is_empty(), "{differences:?}");
    assert!(differences[1].is_empty(), "{differences:?}");
    assert_eq!(
        differences[2],
        [
            "resources: noop[a2] is missing",
            "resources: noop[a1] is not expected",
            "test[t]: `int` is 2, expected 3",
        ]
    );
}

/// Runs the only case of a module; returns its differences.
fn differences(module: &str, case: &str) -> String {
    let tree = Tree::new(&[("m/m.yaml", module), ("m/cases/1.yaml", case)]);
    let results = config::test_module(&tree.path("m"), &KindSet::of_this_build()).unwrap();
    results[0].differences.join("\n")
}

/// Facts of a case that no host can have fail the case, with the nearest name.
#[test]
fn the_facts_of_a_case_are_checked() {
    let module =
        "module: m\nresources:\n  noop:\n  - {name: a, when: 'facts.os.codename == \"trixie\"'}\n";
    let case = |facts: &str| {
        differences(module, &format!("facts: {facts}\nresources: {{}}\ninactive: [\"noop[a]\"]\n"))
    };
    assert_eq!(case("{os: {codename: bookworm}}"), "");
    let wrong = case("{os: {codename: 3}}");
    assert!(wrong.contains("fact os.codename: expected string, found int"), "{wrong}");
    let misspelt = case("{os: {codename: bookworm}, fqnd: db.example.org}");
    assert!(misspelt.contains("no fact `fqnd`; nearest: `fqdn`"), "{misspelt}");
    assert!(misspelt.contains("m/cases/1.yaml:1:1: "), "{misspelt}");
    let absent = case("{hostname: web}");
    assert!(absent.contains("the host has no value of `facts.os.codename`"), "{absent}");
    assert!(absent.contains("hint: add it to `facts:` of the case"), "{absent}");
}

/// Wrong parameters are reported at their place in the case.
#[test]
fn wrong_parameters_of_a_case_are_reported_there() {
    let module =
        "module: m\nparams: {n: {type: int}, z: {type: int, default: 1}}\nresources: {noop: [a]}\n";
    let wrong = differences(module, "resources: {}\nparams:\n  z: 2\n  n: many\n");
    assert!(wrong.contains("m/cases/1.yaml:4:6: "), "{wrong}");
    assert!(wrong.contains("`n` of module `m` (case) wants int"), "{wrong}");
    let unknown = differences(module, "resources: {}\nparams: {n: 1, zz: 2}\n");
    assert!(unknown.contains("m/cases/1.yaml:2:16: "), "{unknown}");
    let missing = differences(module, "resources: {}\nparams: {z: 1}\n");
    assert!(missing.contains("m/cases/1.yaml:2:10: "), "{missing}");
    assert!(!missing.contains("/dev/null"), "{missing}");
}

/// A secret parameter in an expression or a template: the message names the form that takes secrets.
#[test]
fn secret_parameters_in_expressions_are_explained() {
    let module = |field: &str| {
        format!(
            "module: m\nparams: {{k: {{type: secret}}, n: {{type: int, default: 3}}}}\nresources:\n  file:\n  - {{name: /a, {field}}}\n"
        )
    };
    for field in ["owner: \"${params.k}\"", "template: {text: \"{{ params.k }}\"}"] {
        let wrong = differences(&module(field), "params: {k: {secret: s}}\nresources: {}\n");
        let expected = "`params.k` is a secret: no expression can use it";
        let hint = "hint: a field takes {from: params.k}, a template values: {k: {from: params.k}}";
        assert!(wrong.contains(expected) && wrong.contains(hint), "{wrong}");
        assert!(!wrong.contains("no parameter"), "{wrong}");
    }
}

/// A star for the instance names an exported resource of every use of a module, without the modules within.
#[test]
fn a_set_names_one_resource_of_every_instance() {
    let graph = |target: &str| {
        format!(
            "graph: g\nresources:\n  noop: [{{name: web, subscribe: [\"{target}\"]}}, {{name: vhost}}]\nmodules: [{{use: m, for_each: [a, b], as: \"${{item}}\"}}]\n"
        )
    };
    let module = "module: m\nresources: {noop: [vhost, hidden]}\nmodules: [{use: ../inner, as: in}]\nexports: [\"noop[vhost]\"]\n";
    let inner = "module: inner\nresources: {noop: [vhost]}\nexports: [\"noop[vhost]\"]\n";
    let files =
        |graph: &'static str| [("web.yaml", graph), ("m/m.yaml", module), ("inner/m.yaml", inner)];
    let from = |target: &str| {
        let loaded = accepted(&files(graph(target).leak()));
        let mut froms: Vec<String> = edges(&loaded)
            .into_iter()
            .filter(|(_, to, notify)| to == "noop[web]" && *notify)
            .map(|(from, ..)| from)
            .collect();
        froms.sort();
        froms
    };
    assert_eq!(from("*/noop[vhost]"), ["a/noop[vhost]", "b/noop[vhost]"]);
    assert_eq!(from("a*/noop[vhost]"), ["a/noop[vhost]"]);
    for (target, hidden) in [("*/noop[hidden]", "hidden"), ("a/*/noop[vhost]", "vhost")] {
        let problems = Tree::new(&files(graph(target).leak())).problems(&with_facts());
        let expected = format!("`{hidden}` is not exported by module `m`");
        assert!(problems.contains(&expected), "{problems}");
        assert!(!problems.contains("names no resource"), "{problems}");
    }
}

/// Issue 17, point 6: the modules of the examples have cases, and pass them.
#[test]
fn the_example_modules_pass_their_cases() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/modules");
    let mut count = 0;
    for module in std::fs::read_dir(folder).expect("a folder") {
        let module = module.expect("a module").path();
        let kinds = KindSet::of_this_build();
        let results = config::test_module(&module, &kinds).expect("a module with cases");
        for result in results {
            assert!(result.differences.is_empty(), "{}: {result:?}", module.display());
            count += 1;
        }
    }
    assert!(count >= 5, "{count}");
}
