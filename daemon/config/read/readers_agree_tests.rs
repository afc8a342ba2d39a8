//! Tests that compare the two readers on generated, mutated and random documents.

#[path = "../../../tests/config/kinds.rs"]
mod test_kinds;

use super::{prescan, typed};
use crate::config::problem::Problems;
use crate::config::source_file::SourceFile;
use crate::config::{Options, ast, load, read};
use proptest::prelude::*;
use std::path::PathBuf;
use steadfast_resources::KindSet;

fn kinds() -> KindSet {
    KindSet::new(test_kinds::KINDS.to_vec(), vec!["pkg"])
}

fn source(text: &str) -> SourceFile {
    SourceFile::new("graph.yaml", PathBuf::from("/g.yaml"), PathBuf::from("/"), text.to_owned())
}

/// Returns the file without positions, if the slow reader reports nothing.
fn slow(text: &str) -> Result<ast::GraphFile, Problems> {
    let mut problems = Problems::default();
    let source = source(text);
    match read::read(&source, &kinds(), &mut problems) {
        Some(mut file) if problems.is_empty() => {
            file.spots = None;
            Ok(file)
        }
        _ => Err(problems),
    }
}

/// Checks that the slow reader accepts every text of the fast reader, with the same result.
fn agree(text: &str) -> Result<(), TestCaseError> {
    let scan = prescan::scan(text);
    if scan.careful || !scan.bad.is_empty() {
        return Ok(());
    }
    let quick = typed::read(&source(text), &kinds());
    match (quick, slow(text)) {
        (Some(quick), Ok(slow)) => prop_assert_eq!(quick, slow, "{}", text),
        (Some(_), Err(problems)) => {
            prop_assert!(false, "only the slow reader refuses:\n{}\n{:?}", text, problems.list);
        }
        (None, _) => {}
    }
    Ok(())
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,6}",
        "(0644|644|1\\.10|yes|NO|true|false|null|~|-1|0|\\.inf|1e3|12:30|)",
        "\"[a-z é€:#\\\\n]{0,8}\"",
        "'[a-z é€:#\"]{0,8}'",
        "[a-zé€][a-z é€.:/]{0,12}",
        "\\|\n {12}[a-z#: é€]{1,9}\n {12,13}[a-z]{1,5}",
        ">-\n {12}[a-z]{1,9}\n\n {12}[a-z]{1,5}",
    ]
}

fn entry() -> impl Strategy<Value = String> {
    let key = "(path|content|state|mode|owner|force|size|ratio|cmd|args|env|meta|after|notify)";
    prop_oneof![
        6 => (key, scalar()).prop_map(|(key, value)| format!("{key}: {value}")),
        1 => (key, scalar(), scalar()).prop_map(|(key, a, b)| format!("{key}: [{a}, {b}]")),
        1 => (key, scalar(), scalar()).prop_map(|(key, a, b)| format!("{key}:\n      - {a}\n      - {b}")),
        1 => (key, scalar()).prop_map(|(key, a)| format!("{key}:\n      retry: {a}\n      sema: [{a}]")),
        1 => (key, scalar()).prop_map(|(key, a)| format!("{key}: {{A: {a}, B: x}}")),
    ]
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
    (document(), prop::collection::vec(change, 0..4)).prop_map(|(text, changes)| {
        let mut text: Vec<char> = text.chars().collect();
        for (at, put, remove) in changes {
            let at = at.index(text.len() + 1);
            let end = (at + remove).min(text.len());
            text.splice(at..end, put.chars());
        }
        text.into_iter().collect()
    })
}

/// Returns the configuration; `PROPTEST_CASES` raises the number of cases. Past failures are tests of their own below.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(1000), failure_persistence: None, ..usual }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn made_documents_are_read_alike(text in document()) {
        agree(&text)?;
    }

    #[test]
    fn mutated_documents_are_read_alike(text in mutated()) {
        agree(&text)?;
    }

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

/// Documents that were once, or could easily be, read in two ways.
#[test]
fn known_documents_are_read_alike() {
    for text in [
        "graph: g\r\nresources:\r\n  file:\r\n  - name: a\r\n    content: |\r\n      x\r\n",
        "graph: g\nresources: {file: [{name: \"a\\u00e9\", content: 'it''s'}]}\n",
        "{\"graph\":\"g\",\"resources\":{\"noop\":[{\"name\":\"a\"}]}}",
        "graph: é\ncomment: ~\nresources:\n  file:\n  - name: é\n    owner: 0\n    content: \"\"\n",
        "graph: |\n  #\n  a",
        "# c\n---\ngraph: g # c\nresources:\n  file:\n    # c\n    - # c\n      name: a\n...\n",
        "graph: g\nresources:\n  exec:\n  - name: >-\n      a\n      b\n    args: [x, 'y', \"z\"]\n",
    ] {
        agree(text).unwrap();
        assert!(
            typed::read(&source(text), &kinds()).is_some(),
            "the fast reader declines {text:?}"
        );
        assert!(slow(text).is_ok(), "the slow reader refuses {text:?}");
    }
}
