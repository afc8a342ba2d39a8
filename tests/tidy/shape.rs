//! The shape of the sources: places, lengths and beginnings of files.

use crate::sources::{assert_none, files};
use std::path::Path;

/// The longest file, in lines.
const LONGEST: usize = 500;

#[test]
fn every_file_says_first_what_it_is_for() {
    let wrong: Vec<_> = files(&[""], ".rs")
        .into_iter()
        .filter(|source| {
            let first = source.text.lines().next().unwrap_or_default();
            first.strip_prefix("//! ").is_none_or(|sentence| sentence.len() <= 10)
        })
        .map(|source| source.path)
        .collect();
    assert_none("expected a `//!` sentence in the first line of:", &wrong);
}

#[test]
fn no_file_is_too_long_to_have_one_purpose() {
    let wrong: Vec<_> = files(&[""], ".rs")
        .into_iter()
        .map(|source| (source.text.lines().count(), source.path))
        .filter(|(lines, _)| *lines > LONGEST)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    assert_none(&format!("expected at most {LONGEST} lines:"), &wrong);
}

#[test]
fn a_folder_opens_on_its_files() {
    let wrong: Vec<_> = files(&[""], ".rs")
        .into_iter()
        .filter(|source| Path::new(&source.path).iter().any(|part| part == "src"))
        .map(|source| source.path)
        .collect();
    assert_none("expected no src/ folder:", &wrong);
}

/// A file `x.rs` beside a folder `x/` hides that they are one module; the folder's own file is `mod.rs`.
#[test]
fn a_room_is_a_file_or_a_folder_and_not_both() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let wrong: Vec<_> = files(&["daemon", "resources"], ".rs")
        .into_iter()
        .filter(|source| !source.path.contains("/tests/"))
        .map(|source| source.path)
        .filter(|path| top.join(path.trim_end_matches(".rs")).is_dir())
        .collect();
    assert_none("expected mod.rs within the folder instead of:", &wrong);
}

/// A random test writes its finds below target/ or nowhere, never into the working tree.
#[test]
fn random_tests_write_nothing_into_the_tree() {
    let wrong: Vec<_> = files(&[""], ".rs")
        .into_iter()
        .filter(|source| !source.is_in("tests/tidy"))
        .filter(|source| {
            let code = source.code();
            code.matches("proptest! {").count() > code.matches("failure_persistence: None").count()
        })
        .map(|source| source.path)
        .collect();
    assert_none("expected `failure_persistence: None` for each `proptest!` of:", &wrong);
}

/// S-17: one audited module, which names the page of its decision, contains `unsafe`; the other crates forbid it.
#[test]
fn unsafe_code_has_one_room_with_a_page() {
    let mut places = Vec::new();
    for source in files(&["daemon", "resources"], ".rs") {
        if source.code().contains("unsafe {") || source.code().contains("unsafe fn") {
            let page = source.text.split("docs/decisions/").nth(1);
            let page = page.and_then(|rest| rest.split_once(".md")).map(|(name, _)| name);
            let page = page.map(|name| format!("docs/decisions/{name}.md")).unwrap_or_default();
            let there = Path::new(env!("CARGO_MANIFEST_DIR")).join(&page).is_file();
            assert!(there, "{}: names no page below docs/decisions/ that exists", source.path);
            places.push(source.path);
        }
    }
    assert!(places.len() <= 1, "more than one module is unsafe: {places:?}");
    for crate_file in ["daemon/engine/lib.rs", "resources/lib.rs"] {
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(top.join(crate_file)).expect(crate_file);
        assert!(text.contains("#![forbid(unsafe_code)]"), "{crate_file} does not forbid unsafe");
    }
}

/// S-17: CI checks licences, bans, sources and lints.
#[test]
fn ci_gates_what_comes_in() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = std::fs::read_to_string(top.join(".ci/run")).expect(".ci/run");
    for gate in ["check licenses bans sources", "clippy --workspace", "tests/purity/run"] {
        assert!(script.contains(gate), ".ci/run does not run `{gate}`");
    }
    let policy = std::fs::read_to_string(top.join(".deny.toml")).expect(".deny.toml");
    let tokio = policy.lines().find(|line| line.contains("crate = \"tokio\"")).expect("a ban");
    assert!(!tokio.contains("steadfast-engine"), "the engine may depend on tokio: {tokio}");
}
