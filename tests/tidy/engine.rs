//! The engine is pure, and only the driver calls it.

use crate::sources::{assert_none, files, has_word, named_after};

/// The parts of the standard library that the engine may name: plain data. All others wait, read a clock, draw random
/// numbers or touch the host.
const PURE: &[(&str, &[&str])] = &[
    (
        "std::",
        &[
            "borrow",
            "cell",
            "cmp",
            "collections",
            "convert",
            "error",
            "fmt",
            "hash",
            "iter",
            "marker",
            "mem",
            "num",
            "ops",
            "slice",
            "str",
            "string",
            "sync",
            "time",
            "vec",
        ],
    ),
    ("std::cell::", &["Cell"]),
    ("std::collections::", &["BTreeMap", "BTreeSet", "BinaryHeap", "VecDeque", "btree_map"]),
    ("std::hash::", &["Hash", "Hasher"]),
    ("std::sync::", &["Arc"]),
    ("std::time::", &["Duration"]),
];

/// Names that are impure in any crate, such as the clocks of `governor`.
const IMPURE: &[&str] = &[
    "SystemTime",
    "HashMap",
    "HashSet",
    "RandomState",
    "DefaultHasher",
    "DefaultClock",
    "MonotonicClock",
    "SystemClock",
    "QuantaClock",
    "Jitter",
    "Mutex",
    "RwLock",
    "thread_local",
    "async",
    "await",
    "unsafe",
    "extern",
    "static",
    "println",
    "eprintln",
];

/// Invariant 1: the engine never waits, reads a clock or touches the host (together with tests/purity/run and
/// clippy's bans).
#[test]
fn the_engine_names_nothing_of_the_machine() {
    let mut wrong = Vec::new();
    for source in files(&["daemon/engine"], ".rs") {
        let inside = source.path.trim_start_matches("daemon/engine/");
        if ["tests/", "benches/", "examples/"].iter().any(|folder| inside.starts_with(folder)) {
            continue;
        }
        let code = source.code();
        for (path, allowed) in PURE {
            let named = named_after(&code, path);
            for name in named.iter().filter(|name| !allowed.contains(&name.as_str())) {
                wrong.push(format!("{}: {path}{name}", source.path));
            }
        }
        for name in IMPURE.iter().filter(|name| has_word(&code, name)) {
            wrong.push(format!("{}: {name}", source.path));
        }
    }
    assert_none("the engine is a value; it must not name:", &wrong);
}

/// Invariant 1: a model checker can copy, compare and hash the engine.
#[test]
fn the_engine_is_a_value() {
    fn value<T: Clone + Eq + std::hash::Hash>() {}
    value::<steadfast_engine::Engine>();
}

/// Invariant 3: only the driver calls the engine.
#[test]
fn only_the_driver_calls_the_engine() {
    let mut wrong = Vec::new();
    for source in files(&["daemon", "resources"], ".rs") {
        if source.path.starts_with("daemon/engine/") {
            continue;
        }
        let code = source.code();
        if has_word(&code, "Engine") && !source.is_in("daemon/driver") {
            wrong.push(format!("{}: names the engine and is not the driver", source.path));
        }
        for lock in ["Mutex<", "RwLock<", "RefCell<", "Arc<", "Rc<", "OnceLock<"] {
            let shared = ["Engine", "steadfast_engine::Engine"];
            if shared.iter().any(|engine| code.contains(&format!("{lock}{engine}>"))) {
                wrong.push(format!("{}: a shared engine ({lock}…>)", source.path));
            }
        }
    }
    assert_none("expected one owner of the engine, the driver:", &wrong);
}

/// Invariant 3: the driver passes events to the engine at one place.
#[test]
fn the_driver_has_one_way_into_the_engine() {
    let calls: usize = files(&["daemon/driver"], ".rs")
        .iter()
        .map(|source| source.code().matches("engine.handle(").count())
        .sum();
    assert_eq!(calls, 1, "calls of Engine::handle in daemon/driver");
}
