//! Rejected graphs with their exact messages: `wrong/NAME.yaml` gives `wrong/NAME.txt`.
//!
//! `BLESS=1 cargo test --test config` writes the messages anew; read them before you commit them.

use crate::{Files, load, words};
use std::fmt::Write as _;
use std::path::PathBuf;
use steadfast::config::{self, Code, Options};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/config/wrong")
}

/// S-10, W-11, F-13, F-14 and issue 2, point 4: each wrong graph gives exactly its stored messages.
#[test]
fn wrong_graphs_are_answered_in_these_words() {
    let mut differences = String::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        count += 1;
        let said = words(std::fs::read(&path).unwrap());
        let answer = path.with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&answer, &said).unwrap();
        }
        let expected = std::fs::read_to_string(&answer).unwrap_or_default();
        if said != expected {
            let name = path.file_stem().unwrap().display();
            writeln!(differences, "== {name}: expected\n{expected}== found\n{said}").unwrap();
        }
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(count >= 20);
}

/// Each problem code occurs in a wrong graph, or in the test named here.
#[test]
fn every_code_is_shown() {
    let mut answers = String::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            answers += &std::fs::read_to_string(path).unwrap();
        }
    }
    let elsewhere = [
        Code::Unreadable,  // bounds::unreadable_graphs_are_reported
        Code::EmptyFolder, // bounds::unreadable_graphs_are_reported
        Code::TooLarge,    // bounds::a_huge_file_is_refused
        Code::Empty,       // refused::an_empty_graph_is_refused_where_it_is_to_be
        Code::Selection,   // selection::a_selection_of_nothing_is_refused
        Code::Ignored,     // accepted::old_keys_warn_once
        Code::Doubt,       // accepted::likely_mistakes_give_warnings
        Code::Receive,     // values::wrong_receivers_are_rejected_at_once
        Code::Secret,      // values::wrong_receivers_are_rejected_at_once
        Code::Automatic,   // accepted::an_automatic_edge_never_makes_a_cycle
        Code::Untrusted,   // settings::root_reads_only_what_nobody_else_can_change
        Code::Setting,     // settings::wrong_settings_are_refused
        Code::Export,      // language_messages::wrong_modules_are_explained
        Code::Include,     // language_messages::wrong_modules_are_explained
        Code::Param,       // language_messages::wrong_modules_are_explained
        Code::Literal,     // language_messages::fields_refuse_what_they_cannot_take
        Code::Budget,      // language::an_expansion_has_a_limit
    ];
    for code in Code::ALL {
        let shown = answers.contains(&format!("[{code}]"));
        assert!(shown != elsewhere.contains(code), "{code} {}", code.about());
    }
    let mut ids: Vec<&str> = Code::ALL.iter().map(|code| code.id()).collect();
    ids.dedup();
    assert!(ids.is_sorted() && ids.len() == Code::ALL.len());
}

#[test]
fn several_files_are_refused_together() {
    let files = Files::new().with("a.yaml", "graph: one\nresources: {noop: [{name: a}]}\n").with(
        "b.yaml",
        "graph: two\nresources:\n  noop:\n  - {name: a}\n  - {name: b, after: \"noop[c]\"}\n",
    );
    let expected = "\
b.yaml:1:8: this file names the graph `two`, another file names the graph `one` [C105]
   1 | graph: two
     |        ^^^
  a.yaml:1:8
   1 | graph: one
     |        ^^^ named here first
  hint: set the name in one file only

b.yaml:4:12: `noop[a]` is declared twice [C206]
   4 |   - {name: a}
     |            ^ again here
  a.yaml:2:27
   2 | resources: {noop: [{name: a}]}
     |                           ^ first declared here
  hint: rename one of the resources

b.yaml:5:22: the graph has no resource `noop[c]` [C401]
   5 |   - {name: b, after: \"noop[c]\"}
     |                      ^^^^^^^^^
  hint: did you mean `noop[a]`?

the graph was rejected: 3 problems (more: steadfast explain C105)
";
    assert_eq!(files.words(&[""]), expected);
    let unread = files.with("c.yaml", "resources: [\n");
    let said = unread.words(&[""]);
    assert!(said.contains("c.yaml:") && !said.contains("C401"), "it may stand in c.yaml: {said}");
}

#[test]
fn problems_are_data_too() {
    let rejected = load("graph: g\nresources: {noop: [{name: a, x: 1}]}\n").unwrap_err();
    let expected = serde_json::json!({
        "omitted": 0,
        "problems": [{
            "code": "C101",
            "severity": "error",
            "what": "unknown key `x` in noop[a]",
            "hint": "valid keys: name, when, for_each, meta, export, aliases, labels, after, before, notify, subscribe",
            "places": [{
                "file": rejected.problems[0].places[0].file,
                "line": 2,
                "column": 30,
                "text": "resources: {noop: [{name: a, x: 1}]}",
                "label": null,
                "chain": [],
            }],
        }],
    });
    assert_eq!(rejected.to_json(), expected);
}

/// The kinds of this build load through the public entry point.
#[test]
fn the_usual_door() {
    let files = Files::new().with("graph.yaml", "graph: g\nresources: {noop: [{name: a}]}\n");
    let loaded = config::load(&[files.path("graph.yaml")], &crate::options()).unwrap();
    assert_eq!(loaded.vertices[0].identity.as_ref(), "noop[a]");
}

/// B-16: a graph without resources loads, but is rejected as a replacement that would drop resources.
#[test]
fn an_empty_graph_is_refused_where_it_is_to_be() {
    let files = Files::new()
        .with("graph.yaml", "graph: g\n")
        .with("one.yaml", "graph: g\nresources: {noop: [{name: a}]}\n");
    let refusing = Options { refuse_empty: true, ..crate::options() };
    assert!(files.load(&["graph.yaml"], &crate::options()).is_ok());
    assert!(files.load(&["one.yaml"], &refusing).is_ok());
    let problems = files.load(&["graph.yaml"], &refusing).unwrap_err().problems;
    assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), [Code::Empty]);
    assert!(problems[0].hint.as_ref().is_some_and(|hint| hint.contains("--allow-empty")));
}

/// Returns the block of a section of docs/problems.md with this mark.
fn block<'t>(section: &'t str, mark: &str) -> Option<&'t str> {
    let (_, rest) = section.split_once(&format!("```yaml {mark}\n"))?;
    rest.split("```").next()
}

/// Each code is documented with a wrong example that gives the code and a right one that loads without a message.
#[test]
fn every_code_is_explained_by_examples_that_are_true() {
    let without = [
        "C001", "C002", "C003", "C004", "C005", "C012", "C014", "C106", "C407", "C501", "C601",
        "C706", "C708",
    ];
    for code in Code::ALL {
        let section = code.explained();
        assert!(
            section.starts_with(&format!("{code}: ")) && section.len() > 60,
            "{code}: {section}"
        );
        let (Some(wrong), Some(right)) = (block(section, "wrong"), block(section, "right")) else {
            assert!(without.contains(&code.id()), "{code} has no examples");
            continue;
        };
        let said = |text: &str| {
            let files = Files::new().with("graph.yaml", text);
            match config::load(&[files.path("graph.yaml")], &crate::options()) {
                Ok(loaded) => loaded.warnings,
                Err(rejected) => rejected.problems,
            }
        };
        let found = said(wrong);
        assert!(found.iter().any(|problem| problem.code == *code), "{code}: {found:?}");
        assert_eq!(said(right), [], "{code}");
    }
}

/// A resource below a regular file is rejected, with both places and the correct form (operator B7); resources below
/// a link or a directory are accepted.
#[test]
fn nothing_lies_below_a_regular_file() {
    let load = |shape: &str| {
        let text = format!(
            "graph: g\nresources:\n  file:\n  - {{name: dir, {shape}}}\n  - {{name: f, path: /srv/a/b/f, content: x}}\n"
        );
        let files = Files::new().with("graph.yaml", &text);
        let loaded = config::load(&[files.path("graph.yaml")], &crate::options());
        loaded.map(drop).map_err(|rejected| rejected.to_string())
    };
    for shape in ["path: /srv/a", "path: /srv/a/b, content: y"] {
        let said = load(shape).unwrap_err();
        assert!(said.contains("`file[dir]` is a file: no path can lie below it"), "{said}");
        assert!(said.contains("graph.yaml:5:") && said.contains("graph.yaml:4:"), "{said}");
        assert!(said.contains("for a directory, write path: /srv/a"), "{said}");
    }
    for shape in [
        "path: /srv/a/",
        "path: /srv/a, symlink: /srv/c",
        "path: /srv/ab",
        "path: /srv/a/b, state: undefined",
    ] {
        load(shape).expect(shape);
    }
}
