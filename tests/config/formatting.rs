//! `steadfast fmt`: formatting twice equals formatting once; values and comments stay.

use proptest::prelude::*;
use steadfast::config::{NotFormatted, format_graph};

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
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
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
    assert!(refused.is_err_and(|why| why.to_string().contains("nested too deeply")));
}
