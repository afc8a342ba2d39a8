//! The shape of the sources: places, lengths and beginnings of files.

use crate::sources::{assert_none, files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The longest file, in lines.
const LONGEST: usize = 500;

/// The largest number of fields of `Driver`: one for each component.
const DRIVER_FIELDS: usize = 15;

/// The longest event loop of the driver, in lines.
const LONGEST_LOOP: usize = 250;

/// The largest number of source files directly in a folder.
const FOLDER_FILES: usize = 20;

/// Folders with more source files, and their present numbers. A number may only shrink.
const LARGE_FOLDERS: [(&str, usize); 5] = [
    ("daemon/cli", 22),
    ("daemon/engine/tests", 30),
    ("resources/parts", 26),
    ("tests/config", 37),
    ("tests/daemon", 97),
];

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
fn no_folder_gets_too_many_files() {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for source in files(&[""], ".rs") {
        let folder = Path::new(&source.path).parent().map(Path::display);
        let folder = folder.map(|folder| folder.to_string()).unwrap_or_default();
        *folders.entry(folder).or_default() += 1;
    }
    let limit = |folder: &str| {
        let known = LARGE_FOLDERS.iter().find(|(name, _)| *name == folder);
        known.map_or(FOLDER_FILES, |(_, count)| *count)
    };
    let wrong: Vec<_> = folders
        .iter()
        .filter(|(folder, count)| **count > limit(folder))
        .map(|(folder, count)| format!("{folder}: {count} files, not {}", limit(folder)))
        .collect();
    assert_none("expected smaller folders:", &wrong);
    let loose: Vec<_> = LARGE_FOLDERS
        .iter()
        .filter(|(folder, count)| folders.get(*folder).is_none_or(|found| found < count))
        .map(|(folder, _)| format!("{folder}: {:?}", folders.get(*folder)))
        .collect();
    assert_none("lower the numbers of LARGE_FOLDERS:", &loose);
}

/// The driver stays a set of components, and its loop only wires them.
#[test]
fn the_driver_is_made_of_few_components() {
    let all = files(&["daemon/driver"], ".rs");
    let text = |path: &str| all.iter().find(|source| source.path == path).expect("there").code();
    let module = text("daemon/driver/mod.rs");
    let body = module.split_once("pub struct Driver {").and_then(|(_, rest)| rest.split_once('}'));
    let fields = body.expect("the fields of the driver").0.matches(": ").count();
    assert!(fields > 0 && fields <= DRIVER_FIELDS, "`Driver` has {fields} fields");
    let lines = text("daemon/driver/event_loop.rs").lines().count();
    assert!(lines <= LONGEST_LOOP, "the event loop has {lines} lines");
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

/// Returns the modules and folders beside a `mod.rs` or `lib.rs`, without tests: each as a name or a name with `/`.
fn parts_of(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let names = entries.filter_map(|entry| {
        let (path, name) = (entry.path(), entry.file_name().into_string().ok()?);
        match name.strip_suffix(".rs") {
            Some("mod" | "lib" | "main" | "build") => None,
            Some(name) => Some(name.to_owned()),
            None => path.join("mod.rs").is_file().then(|| format!("{name}/")),
        }
    });
    names.filter(|name| !name.contains("test") || name == "module_test").collect()
}

/// A newcomer finds each file of a folder in the reading order of the folder.
#[test]
fn a_reading_order_names_each_part_of_its_folder() {
    let mut wrong = Vec::new();
    for source in files(&["daemon", "resources"], ".rs") {
        let path = Path::new(&source.path);
        let is_module = ["mod.rs", "lib.rs"].iter().any(|name| path.ends_with(name));
        if !is_module || source.path.contains("/tests/") {
            continue;
        }
        let doc = source.text.lines().take_while(|line| line.starts_with("//!"));
        let doc: Vec<_> = doc.map(|line| line.trim_start_matches("//!").trim()).collect();
        let doc = doc.join(" ");
        let folder = path.parent().expect("a folder");
        let parts = parts_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
        let Some((_, order)) = doc.split_once("Reading order") else {
            if parts.len() > 1 {
                wrong.push(format!("{}: no reading order", source.path));
            }
            continue;
        };
        let is_named = |part: &String| {
            let name = part.trim_end_matches('/');
            let ends = ["`", ".rs`", "/`", "()`"];
            ends.iter().any(|end| {
                order.contains(&format!("`{name}{end}")) || order.contains(&format!("/{name}{end}"))
            })
        };
        let missing: Vec<_> = parts.into_iter().filter(|part| !is_named(part)).collect();
        if !missing.is_empty() {
            wrong.push(format!("{}: {}", source.path, missing.join(", ")));
        }
    }
    assert_none("expected in the reading order of:", &wrong);
}

/// The page of the architecture names each folder that has files of its own; one line stands for the folders of kinds.
#[test]
fn the_architecture_names_each_folder() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(top.join("docs/development/architecture.md"));
    let page = page.expect("the page of the architecture");
    let words = page.split(|letter: char| !letter.is_alphanumeric() && !"_/".contains(letter));
    let folders = words.filter_map(|word| word.rsplit_once('/'));
    let named: BTreeSet<&str> = folders.flat_map(|(folders, _)| folders.split('/')).collect();
    let wrong: Vec<_> = files(&["daemon", "resources"], ".rs")
        .into_iter()
        .filter(|source| source.path.ends_with("/mod.rs") && !source.path.contains("/tests/"))
        .filter_map(|source| source.path.strip_suffix("/mod.rs").map(str::to_owned))
        .filter(|path| {
            let is_kind = Path::new(path).parent() == Some(Path::new("resources/kinds"));
            !is_kind && !path.rsplit('/').next().is_some_and(|folder| named.contains(folder))
        })
        .collect();
    assert_none("expected in docs/development/architecture.md:", &wrong);
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
