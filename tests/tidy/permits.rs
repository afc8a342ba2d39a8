//! A dry run cannot write (invariant 4): the modules that may touch the host, and the one that may mint permits.

use crate::sources::{assert_none, files, has_word};

/// Modules that change or run something; calls must go through `resources/host/`, which requires a permit.
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
    "zbus",
    "MintKey",
    "unsafe",
];

/// Types that only describe a reply of the host.
const DESCRIPTIONS: &[&str] = &["rustix::fs::FileType", "std::fs::Metadata", "std::net::IpAddr"];

#[test]
fn kinds_reach_the_machine_only_through_the_host() {
    let mut wrong = Vec::new();
    for source in files(&["resources/kinds"], ".rs") {
        let code = source.code();
        let code = DESCRIPTIONS.iter().fold(code, |code, name| code.replace(name, ""));
        for name in DIRECT.iter().filter(|name| has_word(&code, name)) {
            wrong.push(format!("{}: {name}", source.path));
        }
    }
    assert_none("kinds go through resources/host/; they must not name:", &wrong);
}

/// The mint key is taken once, by `main`, and only the driver mints permits.
#[test]
fn the_key_is_taken_once_and_used_by_the_driver() {
    let mut taken = Vec::new();
    let mut wrong = Vec::new();
    for source in files(&["daemon", "resources"], ".rs") {
        // Tests and benches mint permits in processes of their own.
        if source.path.contains("/tests/") || source.path.contains("/benches/") {
            continue;
        }
        let code = source.code();
        let count = code.matches("MintKey::take()").count();
        taken.extend(std::iter::repeat_n(source.path.clone(), count));
        if code.contains(".mint(") && !source.is_in("daemon/driver") {
            wrong.push(format!("{}: mints", source.path));
        }
    }
    assert_none("only the driver mints:", &wrong);
    assert_eq!(taken, ["daemon/cli/mod.rs"], "where MintKey::take() is called");
}

/// System calls and flags that change a file.
const WRITES: &[&str] = &[
    "mkdirat",
    "unlinkat",
    "renameat",
    "renameat_with",
    "linkat",
    "symlinkat",
    "fchmod",
    "chmodat",
    "fchown",
    "chownat",
    "pwrite",
    "ftruncate",
    "fsetxattr",
    "setxattr_of",
    "removexattr",
    "set_identity",
    "CREATE",
    "TRUNC",
    "TMPFILE",
    "WRONLY",
    "RDWR",
    "APPEND",
];

/// The overlay of a plan reaches the host through one file, which only reads.
#[test]
fn the_layer_of_a_plan_only_reads_the_host() {
    let mut wrong = Vec::new();
    let sources = files(&["resources/host/kernel/overlay"], ".rs");
    assert!(sources.iter().any(|source| source.path.ends_with("below.rs")));
    for source in sources {
        let code = source.code();
        if source.path.ends_with("below.rs") {
            let names = WRITES.iter().filter(|name| has_word(&code, name));
            wrong.extend(names.map(|name| format!("{}: {name}", source.path)));
        } else if code.contains("fork::below") || code.matches("rustix::fs::open(").count() > 1 {
            wrong.push(format!("{}: reaches the host", source.path));
        }
    }
    assert_none("an overlay writes nothing:", &wrong);
}
