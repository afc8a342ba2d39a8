//! Dependencies run one way (docs/development/architecture.md): the modules that each module may name.

use crate::sources::{assert_none, files, has_word, named_after};

/// The module of fault injection; every module may name it.
const FAULTS: &str = "fault_injection";

/// The modules of `daemon/` with the modules and crates that each may name. A new module needs a row.
const ROOMS: &[(&str, &[&str])] = &[
    // Plain data: requests, replies, status, plans and events.
    ("api", &[]),
    (
        "cli",
        &[
            "api",
            "config",
            "driver",
            "expressions",
            "facts",
            "plan",
            "store",
            "events",
            "control",
            "signals",
            "supervisor",
            "workers",
            "world",
            "history",
            "selection",
            // The lease of a daemon is chosen by its command.
            "lease",
            "nearest_name",
            "steadfast_engine",
            "steadfast_resources",
        ],
    ),
    // Compiles a file to the engine's graph and the definitions of the kinds; runs nothing.
    (
        "config",
        &[
            "expressions",
            "facts",
            "selection",
            "nearest_name",
            "world",
            "steadfast_engine",
            "steadfast_resources",
        ],
    ),
    // Pure: values, types, checks and evaluation.
    ("expressions", &["nearest_name"]),
    // Pure: texts that select resources.
    ("selection", &[]),
    // Similar names.
    ("nearest_name", &[]),
    // Packed bytes.
    ("compression", &[]),
    // A file that is still at its path.
    ("file_identity", &[]),
    // Reads the host; knows no graph. Needs the trust in paths from the resources.
    ("facts", &["expressions", "steadfast_resources"]),
    // The driver takes a checked graph, so it may name the results of `config` only: see the test below.
    (
        "driver",
        &[
            "api",
            "store",
            "events",
            "config",
            "history",
            "metrics",
            "selection",
            "watch",
            "steadfast_engine",
            "steadfast_resources",
        ],
    ),
    // Knows vertex numbers and watch sources, and neither graphs nor runs.
    ("watch", &["metrics", "steadfast_engine", "steadfast_resources"]),
    // A plan is the result of a driver and guards another driver.
    ("plan", &["api", "config", "driver", "steadfast_engine", "steadfast_resources"]),
    ("store", &["metrics", "file_identity"]),
    // A database of its own, in the store's directory and with the store's key.
    ("history", &["compression", "store", "file_identity", "steadfast_resources"]),
    // The right to act; knows neither the store nor its lock.
    ("lease", &[]),
    // Values, texts and connections; its callers fill in the values.
    ("metrics", &[]),
    // Needs the format of journal entries from the resources.
    ("events", &["api", "store", "file_identity", "steadfast_resources"]),
    // Sets options before the first allocation.
    ("allocator", &[]),
    ("signals", &[]),
    // The parts of a daemon, each with its manifold; `cli` configures them.
    (
        "workers",
        &[
            "compression",
            "api",
            "config",
            "expressions",
            "facts",
            "driver",
            "watch",
            "world",
            "store",
            "events",
            "control",
            "signals",
            "supervisor",
            "lease",
            "history",
            "metrics",
            "selection",
            "nearest_name",
            "steadfast_engine",
            "steadfast_resources",
        ],
    ),
    // Knows no worker: each worker declares its own manifold.
    ("supervisor", &["api"]),
    (FAULTS, &[]),
    ("control", &["api", "store"]),
    ("world", &["file_identity"]),
    ("web", &["api", "events", "control"]),
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
        // A released program has no fault injection.
        named.retain(|name| name != FAULTS);
        for name in named.iter().filter(|name| name != room && !allowed.contains(&name.as_str())) {
            wrong.push(format!("{}: `{room}` must not name `{name}`", source.path));
        }
    }
    assert_none("dependence inside daemon/ runs one way:", &wrong);
}

/// The driver takes a checked graph and names nothing of its reading, checks and messages.
#[test]
fn the_driver_names_of_config_only_what_comes_out_of_it() {
    let mut wrong = Vec::new();
    for source in files(&["daemon/driver"], ".rs") {
        for name in named_after(&source.code(), "crate::config::") {
            if !["Gate", "LoadedGraph", "Vertex", "Window"].contains(&name.as_str()) {
                wrong.push(format!("{}: config::{name}", source.path));
            }
        }
    }
    assert_none("expected only config::Gate, LoadedGraph, Vertex and Window:", &wrong);
}

/// Both know the traits of a resource, which are plain data.
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
            let is_ours = |line: &&str| {
                line.starts_with("steadfast") && !line.starts_with("steadfast-traits.")
            };
            for line in dependencies.lines().filter(is_ours) {
                wrong.push(format!("{}: {line}", manifest.path));
            }
        }
    }
    assert_none("engine and resources stand alone:", &wrong);
}

/// A plug-in can bring kinds, so a part of the daemon gets its kinds from its caller.
#[test]
fn only_commands_name_the_kinds_of_this_build() {
    let wrong: Vec<_> = files(&["daemon"], ".rs")
        .iter()
        .filter(|source| !source.is_in("daemon/cli"))
        .filter(|source| {
            let shipped = source.text.split("#[cfg(test)]").next().unwrap_or_default();
            shipped.contains("of_this_build()")
        })
        .map(|source| source.path.clone())
        .collect();
    assert_none("the set of kinds is passed, except in commands and tests:", &wrong);
}

/// The store holds identities, numbers and outcomes, and does not depend on their meaning.
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

/// The simulated host replaces system calls: a call around them is neither simulated nor tested with fault injection.
#[test]
fn files_are_worked_on_through_one_seam() {
    let mut wrong = Vec::new();
    for source in files(&["resources/host/files"], ".rs") {
        let code = source.code();
        for name in named_after(&code, "rustix::fs::") {
            // Types and constants begin with a capital letter, calls do not.
            if name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                wrong.push(format!("{}: rustix::fs::{name}", source.path));
            }
        }
        for other in ["std::fs::", "rustix::io::pwrite", "SystemTime::now"] {
            // The accounts are always those of the real host.
            if code.contains(other) && !source.path.ends_with("accounts.rs") {
                wrong.push(format!("{}: {other}", source.path));
            }
        }
    }
    assert_none("calls of resources/host/files go through resources/host/kernel:", &wrong);
}
