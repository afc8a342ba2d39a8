//! Tests of generated, mutated and random texts.

#[path = "../../../tests/config/kinds.rs"]
mod test_kinds;

#[path = "../../../tests/config/generators.rs"]
mod generators;

use crate::config::{Options, load};
use generators::{edited, entry, scalar};
use proptest::prelude::*;
use steadfast_resources::KindSet;

fn kinds() -> KindSet {
    KindSet::new(test_kinds::KINDS.to_vec(), vec!["pkg"])
}

fn resource() -> impl Strategy<Value = String> {
    (scalar(), prop::collection::vec(entry(), 0..4)).prop_map(|(name, entries)| {
        entries
            .iter()
            .fold(format!("  - name: {name}\n"), |text, entry| format!("{text}    {entry}\n"))
    })
}

fn document() -> impl Strategy<Value = String> {
    let kind = "(file|exec|noop)";
    let list = prop::collection::vec(resource(), 0..4);
    (scalar(), prop::collection::vec((kind, list), 0..3)).prop_map(|(name, kinds)| {
        let mut text = format!("graph: {name}\nresources:\n");
        for (kind, resources) in kinds {
            text.extend(["  ", &kind, ":\n", &resources.concat()]);
        }
        text
    })
}

/// Returns documents with a few characters replaced, removed or inserted.
fn mutated() -> impl Strategy<Value = String> {
    let change = (
        any::<prop::sample::Index>(),
        "[\\[\\]{}:,#&*!|>'\"%@`?\\- \n\ta0é\r\\\\]{0,2}",
        0..3_usize,
    );
    (document(), prop::collection::vec(change, 0..4))
        .prop_map(|(text, changes)| edited(&text, changes))
}

/// Returns the configuration; `PROPTEST_CASES` raises the number of cases. Past failures are tests of their own below.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(1000), failure_persistence: None, ..usual }
}

proptest! {
    #![proptest_config(config())]

    /// F-14: any bytes are loaded or rejected with at least one problem; the engine accepts every loaded graph.
    #[test]
    fn nothing_panics(text in prop_oneof![
        mutated().prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..200),
        "[\\[\\]{}:,#&*!|>'\"%@`?\\- \na]{0,80}".prop_map(String::into_bytes),
    ]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.yaml");
        std::fs::write(&path, &text).unwrap();
        match load(&[path], &Options::new(kinds())) {
            Ok(loaded) => prop_assert!(loaded.edges.iter().all(|edge| edge.from != edge.to)),
            Err(rejected) => {
                prop_assert!(!rejected.problems.is_empty());
                let said = rejected.to_string();
                prop_assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{:?}", said);
            }
        }
    }
}

/// Plain documents in several styles of YAML.
#[test]
fn styles_of_yaml_are_read() {
    for text in [
        "graph: g\r\nresources:\r\n  file:\r\n  - name: a\r\n    path: /a\r\n    content: |\r\n      x\r\n",
        "graph: g\nresources: {file: [{name: \"a\\u00e9\", path: /a, content: 'it''s'}]}\n",
        "{\"graph\":\"g\",\"resources\":{\"noop\":[{\"name\":\"a\"}]}}",
        "graph: |\n  #\n  a",
        "# c\n---\ngraph: g # c\nresources:\n  noop:\n    # c\n    - # c\n      name: a\n...\n",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.yaml");
        std::fs::write(&path, text).unwrap();
        let loaded = load(&[path], &Options::new(kinds()));
        assert!(loaded.is_ok(), "{text:?}: {}", loaded.unwrap_err());
    }
}
