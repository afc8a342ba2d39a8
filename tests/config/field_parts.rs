//! Fields in their map form.

use crate::language::{Tree, with_facts};
use steadfast::config::{self, Options};

/// A validation in its map form; its arguments are a list.
#[test]
fn a_validation_may_be_a_map() {
    let kinds = || Options { kinds: config::KindSet::of_this_build(), ..with_facts() };
    let graph = |validate: &str| {
        format!(
            "graph: g\nvars: {{word: \"-t\", on: true}}\nresources:\n  file:\n  - {{name: /etc/a, content: a, {validate}}}\n  line:\n  - {{name: l, path: /etc/b, line: x, {validate}}}\n"
        )
    };
    let load = |validate: &str| Tree::new(&[("web.yaml", &graph(validate))]).load(&kinds());
    let plain = load("validate: [/bin/true, \"-t\"], in_place: true").unwrap();
    for validate in [
        "validate: {args: [/bin/true, \"-t\"], in_place: true}",
        "validate: {args: [/bin/true, \"${vars.word}\"], in_place: \"${vars.on}\"}",
    ] {
        let loaded = load(validate).unwrap_or_else(|why| panic!("{validate}: {why}"));
        for (one, other) in loaded.vertices.iter().zip(&plain.vertices) {
            assert_eq!(one.definition, other.definition, "{validate}: {}", one.identity);
        }
    }
    for (validate, message) in [
        ("validate: {args: [/bin/true], in_palce: true}", "unknown key `in_palce`"),
        ("validate: {args: /bin/true -t}", "should be a list"),
        ("validate: {args: [/bin/true], in_place: true}, in_place: true", "is given twice"),
        ("validate: {in_place: true}", "there is no `validate` to run in place"),
        ("validate: {args: [/bin/true, \"${vars.none}\"]}", "no variable `none`"),
    ] {
        let why = load(validate).expect_err(validate).to_string();
        assert!(why.contains(message), "{validate}: {why}");
    }
}
