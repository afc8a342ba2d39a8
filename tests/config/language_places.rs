//! Problems of modules, loops, templates and sets: all in one run, each at its own place, with a hint.

use crate::language::{Tree, accepted, with_facts};

#[track_caller]
fn problems(files: &[(&str, &str)]) -> String {
    Tree::new(files).problems(&with_facts())
}

#[track_caller]
fn contains_all(said: &str, messages: &[&str]) {
    for message in messages {
        assert!(said.contains(message), "expected {message}\nfound {said}");
    }
}

/// An export names a resource that the module declares.
#[test]
fn exports_name_declared_resources() {
    let web = "graph: g\nmodules: [{use: m, as: a}, {use: m, as: b}]\n";
    let module = |resources: &str, export: &str| {
        format!("module: m\nexports: {{one: \"{export}\"}}\nresources: {resources}\n")
    };
    let wrong = module("{noop: [motd]}", "noop[modt]");
    let said = problems(&[("web.yaml", web), ("m/m.yaml", &wrong)]);
    contains_all(
        &said,
        &[
            "m/m.yaml:2:16: module `m` exports `noop[modt]`, and does not declare it",
            "did you mean `noop[motd]`?",
            "rejected: 1 problem",
        ],
    );
    for right in [
        module("{noop: [motd]}", "noop[motd]"),
        module("{noop: [{name: motd, when: false}]}", "noop[motd]"),
        module("{noop: [{for_each: [], name: \"x${item}\"}]}", "noop[xa]"),
        "module: m\nexports: [\"noop[a]\"]\ninclude: [x/a.yml]\n".to_owned(),
    ] {
        let included = ("m/x/a.yml", "resources: {noop: [a]}\n");
        accepted(&[("web.yaml", web), ("m/m.yaml", &right), included]);
    }
}

/// A file above the graph has the path in messages that leads to it.
#[test]
fn paths_to_folders_above_exist() {
    let tree = Tree::new(&[
        ("a/web.yaml", "graph: g\ninclude: [../b/c.yaml]\nmodules: [{use: ../m, as: m}]\n"),
        ("b/c.yaml", "resources: {fiel: [a]}\n"),
        ("m/m.yaml", "module: m\nresources: {fiel: [b]}\n"),
    ]);
    let above = std::process::Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .args(["check", "web.yaml"])
        .current_dir(tree.path("a"))
        .output()
        .unwrap();
    let said = String::from_utf8(above.stderr).unwrap();
    contains_all(&said, &["../b/c.yaml:1:13: ", "../m/m.yaml:2:13: "]);
}

/// Each problem of the declarations of a module, of the values of a use and of the items of a loop.
#[test]
fn declarations_and_values_report_all_problems() {
    let web = r"graph: g
vars:
  sites:
    shop: { port: x, tsl: true }
    blog: { tls: 1 }
  users:
  - { name: ada }
  - { id: 1 }
  - { id: 2 }
modules:
- use: m
  as: a
  with:
    a: text
    b: 9
- { use: n, as: b }
resources:
  noop:
  - for_each: { in: vars.sites, item: { port: { type: int }, tls: { type: bool, default: false } } }
  - for_each: { in: vars.users, key: name }
";
    let module = "module: m\nparams: {a: {type: int}, b: {type: int, max: 5}}\nresources: {}\n";
    let wrong = r"module: n
params:
  a: { type: nit, requird: true }
  b: int
  c: { type: int, min: x, default: z }
resources: {}
";
    let said = problems(&[("web.yaml", web), ("m/m.yaml", module), ("n/n.yaml", wrong)]);
    contains_all(
        &said,
        &[
            "web.yaml:14:8: `a` of module `m` (a) wants int",
            "web.yaml:15:8: `b` of module `m` (a) wants at most 5",
            "web.yaml:4:19: `port` of item `shop` wants int",
            "web.yaml:4:22: item `shop` has no `tsl`",
            "web.yaml:5:11: item `blog` lacks `port`",
            "web.yaml:5:18: `tls` of item `blog` wants bool",
            "in the loop at web.yaml:19:21",
            "in the loop at web.yaml:20:21",
            "web.yaml:8:5: an item of the loop has no key `name`",
            "web.yaml:9:5: an item of the loop has no key `name`",
            "n/n.yaml:3:14: `nit` is no type of a parameter",
            "n/n.yaml:3:19: unknown key `requird`",
            "n/n.yaml:4:3: `b` needs a type",
            "write b: {type: int}",
            "n/n.yaml:5:24: `min` of `c` should be a number",
        ],
    );
}

/// The keys of a template, and the maps beside it.
#[test]
fn wrong_forms_of_templates_are_explained() {
    for (fields, expected) in [
        ("template: {text: a, file: b}", ["`template` has no key `file`", "template: FILE"]),
        ("template: {txt: a}", ["unknown key `txt` in `template`", "{text: \"…\"}"]),
        ("template: [a]", ["found a list", "write template: FILE"]),
        ("template: {}", ["`template` is empty", "write template: FILE"]),
        ("template: {text: a}, with: [a]", ["`with` of a template should be a map", "{{ port }}"]),
        ("template: {text: a}, values: x", ["`values` of a template should", "{secret: NAME}"]),
    ] {
        let graph = format!("graph: g\nresources: {{file: [{{name: /a, {fields}}}]}}\n");
        contains_all(&problems(&[("web.yaml", &graph)]), &expected);
    }
}

/// A set of an unknown kind or instance is an error; a set that a condition or a loop may empty is a warning.
#[test]
fn sets_of_unknown_kinds_and_instances_are_errors() {
    let module = ("m/m.yaml", "module: m\nresources: {noop: [{name: a, when: false}]}\n");
    let graph = |target: &str, uses: &str| {
        format!(
            "graph: g\nresources: {{test: [{{name: t, after: [\"{target}\"]}}]}}\nmodules: [{uses}]\n"
        )
    };
    let one = "{use: m, as: shop}";
    for (target, expected) in [
        ("usr[*]", ["unknown kind `usr` in `usr[*]`", "did you mean `user`?"]),
        ("shop/nop[*]", ["unknown kind `nop` in `shop/nop[*]`", "did you mean `noop`?"]),
        ("shpo/*", ["`shpo/*`: no use of a module is named `shpo`", "did you mean `shop`?"]),
        ("shpo/noop[*]", ["no use of a module is named `shpo`", "did you mean `shop`?"]),
    ] {
        let text = graph(target, one);
        contains_all(&problems(&[("web.yaml", &text), module]), &expected);
    }
    let looped = "{use: m, for_each: [shop]}";
    for (target, uses) in [("user[*]", one), ("shpo/*", looped), ("shop/noop[b*]", one)] {
        let text = graph(target, uses);
        let loaded = accepted(&[("web.yaml", &text), module]);
        assert_eq!(loaded.warnings.len(), 1, "{target}: {:?}", loaded.warnings);
    }
}
