//! Breakages of the engine, one for each rule and race: each still applies to the sources, and each is caught by a
//! test.
//!
//! Every run of the tests checks that the breakages apply. The check that they are caught takes half an hour: `cargo
//! test -p steadfast-engine --test mutations -- --ignored --nocapture` copies the engine to a folder of its own, breaks
//! the copy, runs its tests, and prints the test that caught each breakage; it fails if one survives.
//! `STEADFAST_MUTATIONS=e09,planted` selects breakages by the beginning of their names. The suites run from the
//! cheapest on until one catches the breakage; with `STEADFAST_MUTATIONS_ALL=1` all suites run. The last printed table
//! is in docs/mutations.md.

use std::path::{Path, PathBuf};

mod asking;
mod contention;
mod data;
mod groups;
mod holding;
mod order;
mod plans;
mod planted;
mod rest;
mod reviewed;
mod workshop;

/// One deliberate breakage: a text that occurs once in a file is replaced by another.
struct Breakage {
    name: &'static str,
    /// The rules and races that it breaks.
    rules: &'static str,
    what: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

/// Returns a breakage, in the form of a table line.
const fn broken(
    (name, rules, what): (&'static str, &'static str, &'static str),
    file: &'static str,
    old: &'static str,
    new: &'static str,
) -> Breakage {
    Breakage { name, rules, what, file, old, new }
}

fn all() -> impl Iterator<Item = &'static Breakage> {
    let rules = [order::ALL, data::ALL, rest::ALL, contention::ALL, holding::ALL, groups::ALL];
    rules.into_iter().chain([asking::ALL, plans::ALL, planted::ALL, reviewed::ALL]).flatten()
}

fn engine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn page() -> String {
    let page = engine().join("../../docs/mutations.md");
    std::fs::read_to_string(page).expect("docs/mutations.md is there")
}

/// A breakage that no longer applies tests nothing.
#[test]
fn every_breakage_still_applies() {
    let mut wrong = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for breakage in all() {
        let text = std::fs::read_to_string(engine().join(breakage.file)).expect(breakage.file);
        let found = text.matches(breakage.old).count();
        if found != 1 {
            wrong.push(format!("{}: {found} places in {}", breakage.name, breakage.file));
        }
        if breakage.old == breakage.new || !names.insert(breakage.name) {
            wrong.push(format!("{}: changes nothing, or has its name twice", breakage.name));
        }
    }
    assert!(wrong.is_empty(), "expected one place for each:\n{}", wrong.join("\n"));
}

/// Every rule and every race of the engine has a breakage, and the page names the test that caught it.
#[test]
fn every_rule_has_its_breakage_and_its_line() {
    let rules: Vec<&str> = all().flat_map(|b| b.rules.split(", ")).collect();
    // R-14 is tested by the driver; have their parts here, and R-18 is covered by.
    let wanted = (1..=20).map(|n| format!("E-{n}")).chain((1..=13).map(|n| format!("R-{n}")));
    let without: Vec<String> = wanted.filter(|rule| !rules.contains(&rule.as_str())).collect();
    assert!(without.is_empty(), "without a breakage: {without:?}");
    let planted = all().filter(|b| b.name.starts_with("planted-")).count();
    assert!(planted >= 5 && all().count() >= 35, "{planted} planted");
    let page = page();
    let caught = |name: &&str| {
        let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
        // A test that did not end does not count: a busy machine has the same effect.
        row.is_some_and(|row| row.contains(" `"))
    };
    let missing: Vec<&str> = all().map(|b| b.name).filter(|name| !caught(name)).collect();
    assert!(missing.is_empty(), "docs/mutations.md does not say who catches {missing:?}");
}

/// Every check and breakage named in the proof exists.
#[test]
fn every_check_of_the_semaphore_proof_exists() {
    let page =
        std::fs::read_to_string(engine().join("../../docs/semaphores.md")).expect("it is there");
    let mut sources = String::new();
    read_all(&engine().join("tests"), &mut sources);
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    let steps = ["T1", "T2", "T3", "T4", "T5, T6", "T7", "C1", "C2", "C3"];
    let named = |step: &&str| rows.iter().any(|row| row.starts_with(&format!("| {step} |")));
    let mut missing: Vec<&str> = steps.into_iter().filter(|step| !named(step)).collect();
    for row in rows {
        let is_check = |name: &&str| name.contains('_') && !name.contains(['/', '.', ':']);
        for name in row.split('`').skip(1).step_by(2).filter(is_check) {
            if !sources.contains(&format!("fn {name}(")) {
                missing.push(name);
            }
        }
        let breakages = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let is_breakage = |name: &&str| name.starts_with('e') && name.contains('-');
        for name in breakages.split(", ").filter(is_breakage) {
            if !all().any(|breakage| breakage.name == name) {
                missing.push(name);
            }
        }
    }
    assert!(missing.is_empty(), "docs/semaphores.md: not there: {missing:?}");
}

fn read_all(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_all(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&std::fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// Each breakage is caught. Survivors are reported last.
#[test]
#[ignore = "takes half an hour: cargo test -p steadfast-engine --test mutations -- --ignored --nocapture"]
fn every_breakage_is_caught() {
    let wanted = std::env::var_os("STEADFAST_MUTATIONS").unwrap_or_default();
    let wanted = wanted.into_string().expect("names in UTF-8");
    let chosen: Vec<&Breakage> =
        all().filter(|b| wanted.split(',').any(|begin| b.name.starts_with(begin))).collect();
    let thorough = std::env::var_os("STEADFAST_MUTATIONS_ALL").is_some();
    let mut workshop = workshop::Workshop::new(&engine(), thorough);
    assert_eq!(workshop.test(), Ok(Vec::new()), "the whole engine passes its tests");
    let survivors: Vec<&str> =
        chosen.into_iter().filter(|b| !workshop.catches(b)).map(|b| b.name).collect();
    assert!(survivors.is_empty(), "nobody caught {survivors:?}");
}
