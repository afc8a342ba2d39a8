//! The examples of the kinds, and the tables of their fields.

use super::Files;
use steadfast::config::load;
use steadfast_resources::{FieldType, KindSet, Receives};

#[test]
fn the_example_of_each_kind_is_a_valid_graph() {
    for spec in KindSet::of_this_build().specs() {
        assert!(!spec.example.is_empty(), "{}: expected an example, found none", spec.kind);
        let resources: String = spec.example.lines().flat_map(|line| ["  ", line, "\n"]).collect();
        let files =
            Files::new().with("graph.yaml", format!("graph: example\nresources:\n{resources}"));
        let loaded = load(&[files.path("graph.yaml")], &crate::options());
        let loaded = loaded.unwrap_or_else(|rejected| panic!("{}: {rejected}", spec.kind));
        let prefix = format!("{}[", spec.kind);
        assert!(loaded.vertices.iter().any(|it| it.identity.starts_with(&prefix)), "{}", spec.kind);
    }
}

/// Several drop-ins of one unit stand beside each other, after the file or the package of the unit; one file of two
/// resources is refused.
#[test]
fn drop_ins_come_after_their_unit() {
    let drop_in = |name: &str, unit: &str, drop_in: &str| {
        format!(
            "  - {{name: {name}, unit: {unit}, drop_in: {drop_in}, content: \"[Service]\\n\"}}\n"
        )
    };
    let load = |items: &[String]| {
        let own = "  - {name: own.service, content: \"[Service]\\n\"}\n";
        let items = items.concat();
        let text = format!("graph: g\nresources:\n  unit:\n{items}{own}  pkg: [tinyweb]\n");
        let files = Files::new().with("graph.yaml", text);
        load(&[files.path("graph.yaml")], &crate::options()).map_err(|it| it.to_string())
    };
    let items = [
        drop_in("limits", "tinyweb.service", "limits"),
        drop_in("nice", "tinyweb.service", "nice"),
        drop_in("more", "own.service", "more"),
    ];
    let mut edges = crate::edges(&load(&items).unwrap());
    edges.sort_unstable();
    let expected = [
        "pkg[tinyweb] -> unit[limits]",
        "pkg[tinyweb] -> unit[nice]",
        "unit[own.service] -> unit[more]",
    ];
    assert_eq!(edges, expected);
    let said =
        load(&[items[0].clone(), drop_in("again", "tinyweb.service", "limits")]).unwrap_err();
    assert!(said.contains("limits.conf is claimed twice"), "{said}");
}

#[test]
fn a_receiving_text_field_has_a_valid_placeholder() {
    for spec in KindSet::of_this_build().specs() {
        for field in spec.fields {
            let is_text = field.takes == FieldType::Text && field.receives > Receives::Nothing;
            let is_free = ["content", "body", "msg", "text", "stdin"].contains(&field.name);
            assert!(
                !is_text || is_free || field.example.is_some(),
                "{}.{}: expected an example, because a placeholder is built before the value arrives",
                spec.kind,
                field.name
            );
        }
    }
}

#[test]
fn no_field_has_the_name_of_a_key_of_every_resource() {
    let keys = ["name", "aliases", "meta", "recv", "after", "before", "notify", "subscribe"];
    for spec in KindSet::of_this_build().specs() {
        for field in spec.fields {
            assert!(
                !keys.contains(&field.name),
                "{}.{} can never be declared",
                spec.kind,
                field.name
            );
        }
    }
}

/// The list in the README is the registry, without the kind of the tests and the one that the expansion makes.
#[test]
fn the_readme_names_each_kind() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
    let readme = readme.expect("the README");
    let (_, list) = readme.split_once("The kinds are").expect("a list of the kinds");
    let list = list.split("\n\n").next().unwrap_or_default();
    let listed: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    for spec in KindSet::of_this_build().specs() {
        let is_own = matches!(spec.kind, "test" | "export");
        assert_ne!(listed.contains(&spec.kind), is_own, "{} in the list of the README", spec.kind);
    }
    for kind in listed {
        assert!(KindSet::of_this_build().find(kind).is_some(), "{kind} of the README is no kind");
    }
}
