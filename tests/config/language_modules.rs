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
