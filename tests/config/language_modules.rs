//! The graph language: the modes of fields, and the test cases of modules.

use crate::language::Tree;
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
