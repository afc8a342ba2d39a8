//! Breakages of the engine, one for each rule and race: each still applies to the sources, and each is caught by a test.
//!
//! That they apply is checked by every run of the tests. That they are caught takes half an hour:
//! `cargo test -p steadfast-engine --test mutations -- --ignored --nocapture` copies the engine to a folder of its own, breaks
//! the copy, runs its tests, and prints who caught what; it fails if one survives. `STEADFAST_MUTATIONS=e09,planted` takes those
//! whose names begin so. The suites are asked from the cheapest on until one catches it; with `STEADFAST_MUTATIONS_ALL=1` all are
//! asked. The table it printed last stands in docs/mutations.md.

use std::path::{Path, PathBuf};

mod asking;
mod data;
mod fights;
mod groups;
mod holding;
mod order;
mod plans;
mod planted;
mod rest;
mod reviewed;
mod workshop;

/// One deliberate breakage: in that file these words, which stand there once, are replaced by others.
struct Breakage {
    name: &'static str,
    /// The rules and races that it breaks.
    rules: &'static str,
    what: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

/// A breakage as a line of a table.
const fn broken(
    (name, rules, what): (&'static str, &'static str, &'static str),
    file: &'static str,
    old: &'static str,
    new: &'static str,
) -> Breakage {
    Breakage { name, rules, what, file, old, new }
}

fn all() -> impl Iterator<Item = &'static Breakage> {
    let rules = [order::ALL, data::ALL, rest::ALL, fights::ALL, holding::ALL, groups::ALL];
    rules.into_iter().chain([asking::ALL, plans::ALL, planted::ALL, reviewed::ALL]).flatten()
}

fn engine() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn page() -> String {
    let page = engine().join("../../docs/mutations.md");
    std::fs::read_to_string(page).expect("docs/mutations.md is there")
}

/// A breakage that does not apply any more is no test of anything.
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

/// No rule and no race of the engine is without a breakage, and the page names each with who caught it.
#[test]
fn every_rule_has_its_breakage_and_its_line() {
    let rules: Vec<&str> = all().flat_map(|b| b.rules.split(", ")).collect();
    // R-14 is the driver's; have their parts here, and R-18 is R-4's and R-2's.
    let wanted = (1..=20).map(|n| format!("E-{n}")).chain((1..=13).map(|n| format!("R-{n}")));
    let without: Vec<String> = wanted.filter(|rule| !rules.contains(&rule.as_str())).collect();
    assert!(without.is_empty(), "without a breakage: {without:?}");
    let planted = all().filter(|b| b.name.starts_with("planted-")).count();
    assert!(planted >= 5 && all().count() >= 35, "{planted} planted");
    let page = page();
    let caught = |name: &&str| {
        let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
        // Not by one that does not end: that looks like a busy machine.
        row.is_some_and(|row| row.contains(" `"))
    };
    let missing: Vec<&str> = all().map(|b| b.name).filter(|name| !caught(name)).collect();
    assert!(missing.is_empty(), "docs/mutations.md does not say who catches {missing:?}");
}

/// The proof names no check and no breakage that is not there.
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

/// Each is caught. Those who survive are told last.
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
