//! Bounds: input that is too large or too deep is rejected quickly, with little memory and without recursion.

use crate::processor_time::ProcessorTime;
use crate::{Files, load, words};
use std::fmt::Write as _;
use std::time::Duration;
use steadfast::config::Options;

/// The time limit of a rejection: far above the promised second, since the program is not optimized.
const SOON: Duration = Duration::from_secs(20);

#[track_caller]
fn refused_soon(text: &str, expected: &str) {
    let start = ProcessorTime::start();
    let said = load(text).unwrap_err().to_string();
    assert!(start.used() < SOON, "took {:?}", start.used());
    assert!(said.contains(expected), "{said}");
}

/// S-10: exponential aliases ("billion laughs") are rejected, as text and as maps.
#[test]
fn alias_bombs_are_refused() {
    let mut text = String::from("graph: g\ncomment: &a0 lol\n");
    let mut lists = String::from("graph: g\nresources:\n  exec:\n  - &a0 {name: x}\n");
    for level in 1..12 {
        let of = format!("*a{}, ", level - 1).repeat(9);
        writeln!(text, "x{level}: &a{level} [{of}]").unwrap();
        writeln!(lists, "  - &a{level} [{of}]").unwrap();
    }
    refused_soon(&text, "aliases expand to more than");
    refused_soon(&lists, "aliases expand to more than");
    let long = "x".repeat(1 << 20);
    let aliases = "- {name: b, content: *c}\n  ".repeat(9);
    let text =
        format!("graph: g\nresources:\n  file:\n  - {{name: a, content: &c {long}}}\n  {aliases}");
    refused_soon(&text, "aliases expand to more than");
    refused_soon("graph: g\nresources: &a\n  noop: [*a]\n", "the alias is recursive");
}

/// S-10: a nesting of 100 000 levels is rejected, in each notation.
#[test]
fn deep_nesting_is_refused() {
    let deep = 100_000;
    refused_soon(&format!("graph: {}", "[".repeat(deep)), "nested deeper than 64");
    refused_soon(&format!("graph: {}", "{a: ".repeat(deep)), "nested deeper than 64");
    refused_soon(&format!("graph: g\nx:\n  {}a", "- ".repeat(deep)), "nested deeper than 64");
    refused_soon(&format!("graph: g\nx:\n  {}a", "? ".repeat(deep)), "nested deeper than 64");
    let hidden = format!("graph: g\nx: {}", "[ # ]\n ".repeat(deep));
    refused_soon(&hidden, "nested deeper than 64");
}

/// S-10: a file of 1 GiB is rejected without being read whole (the file is sparse).
#[test]
fn a_huge_file_is_refused() {
    let files = Files::new().with("graph.yaml", "");
    let file = std::fs::File::options().write(true).open(files.path("graph.yaml")).unwrap();
    file.set_len(1 << 30).unwrap();
    assert_eq!(
        files.words(&["graph.yaml"]),
        "graph.yaml: the file is larger than 64 MiB [C003]\n  hint: split the file into several files in one \
         directory\n\nthe graph was rejected: 1 problem (more: steadfast explain C003)\n"
    );
}

#[test]
fn unreadable_graphs_are_reported() {
    let files = Files::new().with("graph.yaml", "graph: g\n");
    std::fs::create_dir(files.path("empty")).unwrap();
    let expected = "\
no.yaml: no such file or directory [C001]

empty: the directory has no graph: expected at least one file named *.yaml or *.yml [C002]

the graph was rejected: 2 problems (more: steadfast explain C001)
";
    assert_eq!(files.words(&["no.yaml", "graph.yaml", "empty"]), expected);
    assert!(files.words(&[]).contains("no graph was given"));
    std::os::unix::fs::symlink("nowhere", files.path("empty/a.yaml")).unwrap();
    assert!(files.words(&["empty"]).contains("no such file"), "a link to nowhere");
}

fn chain(length: usize) -> String {
    let mut text = String::from("graph: g\nresources:\n  noop:\n");
    for number in 0..length {
        writeln!(text, "  - {{name: v{number}, before: \"noop[v{}]\"}}", number + 1).unwrap();
    }
    text
}

/// F-13: a chain of a million resources loads without a stack overflow on a test thread. (For a cycle of that size,
/// see `cycles.rs`.)
#[test]
fn a_chain_of_a_million() {
    let length = 1_000_000;
    let loaded = load(&format!("{}  - {{name: v{length}}}\n", chain(length))).unwrap();
    assert_eq!((loaded.vertices.len(), loaded.edges.len()), (length + 1, length));
}

/// F-13: a long cycle is rejected as one problem.
#[test]
fn a_ring_of_ten_thousand() {
    let text = format!("{}  - {{name: v10000, before: \"noop[v0]\"}}\n", chain(10_000));
    let refused = load(&text).unwrap_err();
    assert_eq!(refused.problems.len(), 1);
    assert!(refused.to_string().contains("dependency cycle of 10001 resources"));
    let skip = vec!["noop[v0]".to_owned()];
    let options = Options { skip, ..crate::options() };
    assert!(crate::load_under(&text, &options).is_err(), "the whole graph must be valid");
}

/// A graph with thousands of problems lists the first thousand and counts the others, in bounded time.
#[test]
fn very_many_problems() {
    let mut text = String::from("graph: g\nresources:\n  noop:\n");
    for number in 0..5000 {
        writeln!(text, "  - {{name: v{number}, after: \"noop[w{number}]\", nmae: x}}").unwrap();
    }
    let start = ProcessorTime::start();
    let rejected = load(&text).unwrap_err();
    assert!(start.used() < SOON);
    assert_eq!((rejected.problems.len(), rejected.more), (1000, 9000));
}

/// S-13: control characters of a graph are escaped in messages.
#[test]
fn control_characters_are_shown_escaped() {
    let said =
        words("graph: g\nresources:\n  noop:\n  - name: \"\\e[31m\\u202e\"\n    \"\\e]0;x\": 1\n");
    assert!(
        !said.chars().any(|c| c.is_control() && c != '\n') && !said.contains('\u{202e}'),
        "{said:?}"
    );
    assert!(said.contains("\\u{1b}]0;x"), "{said}");
}
