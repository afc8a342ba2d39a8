//! `steadfast fmt`: formatting twice equals formatting once; values and comments stay.

use proptest::prelude::*;
use std::path::Path;
use steadfast::config::{NotFormatted, format_graph, read_text_to_format};

#[test]
fn files_get_two_spaces_for_each_level() {
    for (text, wanted) in [
        ("graph: a  \n\n\n\nresources:\n", "graph: a\n\nresources:\n"),
        (
            "resources:\n    file:\n    - name: a\n      mode: 0644 # the mode\n    # next\n    - name: b\n",
            "resources:\n  file:\n    - name: a\n      mode: 0644 # the mode\n    # next\n    - name: b\n",
        ),
        (
            "resources:\n file:\n  -   name: a\n      content: |\n         x\n           y\n\n      mode: 0644\n",
            "resources:\n  file:\n    - name: a\n      content: |\n         x\n           y\n\n      mode: 0644\n",
        ),
        ("a: {b: 1,\n    c: 2}\nd: [1,\n 2]\n", "a: {b: 1,\n    c: 2}\nd: [1,\n 2]\n"),
        ("a: 'x\n  y # no comment'\nb: 1\r\n", "a: 'x\n  y # no comment'\nb: 1\n"),
        ("# only\n# comments\n\n", "# only\n# comments\n"),
        ("", ""),
        ("a: 1", "a: 1\n"),
    ] {
        let formatted = format_graph(text);
        assert_eq!(formatted.as_deref(), Ok(wanted), "{text}");
        assert_eq!(format_graph(wanted).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn a_text_that_is_no_yaml_is_refused() {
    assert!(matches!(format_graph("a: [1"), Err(NotFormatted::Invalid(_))));
}

#[test]
fn all_examples_can_be_formatted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut folders = vec![folder];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                let text = std::fs::read_to_string(&path).expect("a text");
                let formatted = format_graph(&text);
                assert!(formatted.is_ok(), "{}: {formatted:?}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 30, "{count}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The law, for texts with the parts that make YAML difficult. The formatter may decline, but must not change.
    #[test]
    fn formatting_keeps_values_and_comments(lines in proptest::collection::vec(
        "( {0,5})(- |-   )?(a|bc|'d e'|\"f\")?(: |:)?(1|x y|\\|\\-?|>|'q # r'|\\[1, 2\\]|\\{a: 1|\\}|\\[|\\]|\"s|)?( # c)?",
        0..12,
    )) {
        let text = lines.join("\n");
        if let Ok(formatted) = format_graph(&text) {
            let again = format_graph(&formatted);
            prop_assert_eq!(again.as_deref(), Ok(formatted.as_str()));
        }
    }
}

/// A text with a million brackets is refused at once.
#[test]
fn deep_brackets_are_refused() {
    let text = format!("graph: x\nresources:\n  file: {}", "[".repeat(1_000_000));
    let refused = format_graph(&text);
    assert!(refused.is_err_and(|why| why.to_string().contains("nested deeper than 64 levels")));
}

/// Returns variables that each merge the one before twice: expanded, they would have 2^count values.
fn doubled(count: usize) -> String {
    let line = |n: usize| format!("  a{n}:   &a{n} {{<<: [*a{}, *a{}], k{n}: 1}}\n", n - 1, n - 1);
    let lines: String = (1..count).map(line).collect();
    format!("graph: g\nvars:\n  a0: &a0 {{x: 1}}\n{lines}")
}

/// Aliases are never expanded; more than `check` takes are refused with its message and the line.
#[test]
fn aliases_are_not_expanded() {
    let formatted = format_graph(&doubled(13)).unwrap();
    assert!(formatted.contains("{<<: [*a11, *a11], k12: 1}"), "{formatted}");
    let refused = format_graph(&doubled(3000)).unwrap_err().to_string();
    assert!(refused.contains("aliases expand to more than 100 000 values"), "{refused}");
    for (text, message) in [
        ("a: &a [*a]\n", "1:8: the alias is recursive"),
        ("a: 1\nb: {<<: 3}\n", "2:5: a merge key"),
        ("a: 1\n---\nb: 1\n", "2:1: a second YAML document starts here"),
        ("a: \u{1}\n", "1:4: the character U+0001 is not allowed here"),
    ] {
        let refused = format_graph(text).unwrap_err().to_string();
        assert!(refused.starts_with(message), "{refused}");
    }
    // A tag and a key that is given twice are no matter of the formatter.
    assert_eq!(format_graph("a: !x 1 \na: 2\n").as_deref(), Ok("a: !x 1\na: 2\n"));
}

/// A text is read as `check` reads it: its byte order mark is left out, and a pipe or a large file is refused.
#[test]
fn files_are_read_with_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.yaml");
    std::fs::write(&path, "\u{feff}graph: g\n").unwrap();
    let text = read_text_to_format(&path).unwrap();
    assert_eq!(text, "\u{feff}graph: g\n");
    assert_eq!(format_graph(&text).as_deref(), Ok("graph: g\n"));
    std::fs::write(&path, b"graph: \xff\n").unwrap();
    assert!(read_text_to_format(&path).unwrap_err().contains("expected UTF-8"));
    let refused = read_text_to_format(Path::new("/dev/zero")).unwrap_err();
    assert_eq!(refused, "the file is larger than 8 MiB, the limit of fmt; split the file");
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    assert!(read_text_to_format(&pipe).unwrap_err().contains("is a pipe, not a file"));
    let line = "# a comment of a long file\n";
    assert!(format_graph(&line.repeat((8 << 20) / line.len() + 1)).is_err());
}
