//! Dependence runs one way (docs/development/architecture.md): who may name whom.

use crate::sources::{assert_none, files, has_word, named_after};

/// Where tests put faults into threads: any room may suffer them.
const FAULTS: &str = "fault_injection";

/// The rooms of `daemon/`, and which other rooms and crates each may name. A new room needs a row.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "config",
            "driver",
            "plan",
            "store",
            "events",
            "control",
            "signals",
            "supervisor",
            "workers",
            "history",
            "steadfast_engine",
            "steadfast_resources",
        ],
    ),
    // Compiles a file to the engine's graph and the kinds' definitions; runs nothing.
    ("config", &["steadfast_engine", "steadfast_resources"]),
    // The checked graph is its input, so of `config` it may name what comes out of it: see the test below.
    (
        "driver",
        &[
            "store",
            "events",
            "config",
            "history",
            "watch",
            "steadfast_engine",
            "steadfast_resources",
        ],
    ),
    // Knows the number of a vertex and the sources of resources, and nothing of graphs and runs.
    ("watch", &["steadfast_engine", "steadfast_resources"]),
    // A plan is what a driver has found, and guards another.
    ("plan", &["config", "driver", "steadfast_engine", "steadfast_resources"]),
    ("store", &[]),
    // A database of its own, in the directory of the store and with its key.
    ("history", &["store", "steadfast_resources"]),
    // What is locked is the directory of the store.
    ("lease", &["store"]),
    // Of the resources, how an entry of the journal is written.
    ("events", &["store", "steadfast_resources"]),
    ("signals", &[]),
    // What runs inside a daemon, each with its manifold; it is told by `cli` how.
    (
        "workers",
        &[
            "config",
            "driver",
            "watch",
            "store",
            "events",
            "control",
            "signals",
            "supervisor",
            "lease",
            "history",
            "steadfast_engine",
            "steadfast_resources",
        ],
    ),
    // Knows no worker: each declares its own manifold.
    ("supervisor", &[]),
    (FAULTS, &[]),
    ("control", &["events", "store"]),
    ("world", &[]),
    ("web", &["events", "control"]),
];

#[test]
fn the_rooms_of_the_daemon_name_only_those_below_them() {
    let mut wrong = Vec::new();
    for source in files(&["daemon"], ".rs") {
        let outside = ["daemon/lib.rs", "daemon/main.rs"].contains(&source.path.as_str());
        if outside || source.path.starts_with("daemon/engine/") {
            continue;
        }
        let Some((room, allowed)) =
            ROOMS.iter().find(|(room, _)| source.is_in(&format!("daemon/{room}")))
        else {
            wrong.push(format!("{}: a room without a row in ROOMS", source.path));
            continue;
        };
        let code = source.code();
        let mut named = named_after(&code, "crate::");
        named.extend(
            ["steadfast_engine", "steadfast_resources"]
                .iter()
                .filter(|name| has_word(&code, name))
                .map(ToString::to_string),
        );
        // A program that ships has none of it.
        named.retain(|name| name != FAULTS);
        for name in named.iter().filter(|name| name != room && !allowed.contains(&name.as_str())) {
            wrong.push(format!("{}: `{room}` must not name `{name}`", source.path));
        }
    }
    assert_none("dependence inside daemon/ runs one way:", &wrong);
}

/// The driver takes a checked graph; how a file is read, checked and told is none of its business.
#[test]
fn the_driver_names_of_config_only_what_comes_out_of_it() {
    let mut wrong = Vec::new();
    for source in files(&["daemon/driver"], ".rs") {
        for name in named_after(&source.code(), "crate::config::") {
            if !["LoadedGraph", "Vertex", "Window"].contains(&name.as_str()) {
                wrong.push(format!("{}: config::{name}", source.path));
            }
        }
    }
    assert_none("expected only config::LoadedGraph, Vertex and Window:", &wrong);
}

#[test]
fn engine_and_resources_know_neither_each_other_nor_the_program() {
    let mut wrong = Vec::new();
    for (folder, strangers) in [
        ("daemon/engine", ["steadfast_resources", "steadfast"]),
        ("resources", ["steadfast_engine", "steadfast"]),
    ] {
        for source in files(&[folder], ".rs") {
            for stranger in
                strangers.iter().filter(|name| has_word(&source.code(), &format!("{name}::")))
            {
                wrong.push(format!("{}: {stranger}", source.path));
            }
        }
        for manifest in files(&[folder], "Cargo.toml") {
            let dependencies =
                manifest.text.split_once("dependencies]").map_or("", |(_, rest)| rest);
            for line in dependencies.lines().filter(|line| line.starts_with("steadfast")) {
                wrong.push(format!("{}: {line}", manifest.path));
            }
        }
    }
    assert_none("engine and resources stand alone:", &wrong);
}

/// The store keeps what it is given: identities, numbers, outcomes. It takes no part in what they mean.
#[test]
fn the_store_knows_neither_driver_nor_engine() {
    let wrong: Vec<_> = files(&["daemon/store"], ".rs")
        .iter()
        .filter(|source| {
            let code = source.code();
            has_word(&code, "Engine") || has_word(&code, "driver")
        })
        .map(|source| source.path.clone())
        .collect();
    assert_none("the store names Engine or driver:", &wrong);
}

/// A simulated host stands behind the system calls: what goes past them is not simulated, and not tested with faults.
#[test]
fn files_are_worked_on_through_one_seam() {
    let mut wrong = Vec::new();
    for source in files(&["resources/host/files"], ".rs") {
        let code = source.code();
        for name in named_after(&code, "rustix::fs::") {
            // Types and constants begin with a capital; calls do not.
            if name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                wrong.push(format!("{}: rustix::fs::{name}", source.path));
            }
        }
        for other in ["std::fs::", "rustix::io::pwrite", "SystemTime::now"] {
            // The accounts are the machine's own, of which there is no twin.
            if code.contains(other) && !source.path.ends_with("accounts.rs") {
                wrong.push(format!("{}: {other}", source.path));
            }
        }
    }
    assert_none("calls of resources/host/files go through resources/host/kernel:", &wrong);
}
