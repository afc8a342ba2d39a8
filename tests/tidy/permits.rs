//! A dry run cannot write (invariant 4): who may touch the host, and who may mint the right to.

use crate::sources::{assert_none, files, has_word};

/// What changes or runs something and must go through `resources/host/`, which asks for a permit.
const DIRECT: &[&str] = &[
    "std::fs",
    "std::process",
    "std::net",
    "std::env",
    "tokio::fs",
    "tokio::process",
    "tokio::net",
    "nix",
    "rustix",
    "libc",
    "MintKey",
    "unsafe",
];

/// Exceptions: a file or folder below `resources/kinds/`, what it names, and why that is harmless.
const EXCEPTIONS: &[(&str, &str, &str)] =
    &[("file", "rustix", "only the type `rustix::fs::FileType`, see the test below")];

#[test]
fn kinds_reach_the_machine_only_through_the_host() {
    let mut wrong = Vec::new();
    for source in files(&["resources/kinds"], ".rs") {
        let code = source.code();
        for name in DIRECT.iter().filter(|name| has_word(&code, name)) {
            let excused = EXCEPTIONS.iter().any(|(place, what, _)| {
                source.is_in(&format!("resources/kinds/{place}")) && what == name
            });
            if !excused {
                wrong.push(format!("{}: {name}", source.path));
            }
        }
    }
    assert_none("kinds go through resources/host/; they must not name:", &wrong);
}

#[test]
fn the_file_kind_takes_only_types_from_rustix() {
    let mut wrong = Vec::new();
    for source in files(&["resources/kinds/file"], ".rs") {
        let code = source.code();
        let all = code.matches("rustix::").count();
        if all != code.matches("rustix::fs::FileType;").count() {
            wrong.push(source.path);
        }
    }
    assert_none("expected only `rustix::fs::FileType`:", &wrong);
}

/// Nobody else has the key: it is taken once, in `main`, and only the driver mints.
#[test]
fn the_key_is_taken_in_main_and_used_by_the_driver() {
    let mut taken = Vec::new();
    let mut wrong = Vec::new();
    for source in files(&["daemon", "resources"], ".rs") {
        // Tests and benches mint for themselves, in processes of their own.
        if source.path.contains("/tests/") || source.path.contains("/benches/") {
            continue;
        }
        let code = source.code();
        let takes = code.matches("MintKey::take()").count();
        taken.extend(std::iter::repeat_n(source.path.clone(), takes));
        if code.contains(".mint(") && !source.is_in("daemon/driver") {
            wrong.push(format!("{}: mints", source.path));
        }
    }
    assert_none("only the driver mints:", &wrong);
    assert_eq!(taken, ["daemon/main.rs"], "where MintKey::take() is called");
}
