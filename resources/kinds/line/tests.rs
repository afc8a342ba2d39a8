//! Tests of the kind `line`.

use super::SPEC;
use crate::parts::edit_support::{edit, problem, remove, text_edit};
use proptest::prelude::*;

const ROOT: (&str, &str) = ("line", "PermitRootLogin no");
const MATCH: (&str, &str) = ("match", "^#?PermitRootLogin\\s");

#[test]
fn a_line_is_added_at_its_place() {
    assert_eq!(edit(&SPEC, &[("line", "b")], ""), "b\n");
    assert_eq!(edit(&SPEC, &[("line", "b")], "a\n"), "a\nb\n");
    assert_eq!(edit(&SPEC, &[("line", "b")], "a"), "a\nb", "no final line end");
    assert_eq!(edit(&SPEC, &[("line", "b")], "a\r\n"), "a\r\nb\r\n");
    assert_eq!(edit(&SPEC, &[("line", "b"), ("insert_after", "^a")], "a\na\nc\n"), "a\na\nb\nc\n");
    assert_eq!(edit(&SPEC, &[("line", "b"), ("insert_before", "^c")], "a\nc\n"), "a\nb\nc\n");
    assert_eq!(
        edit(&SPEC, &[("line", "b"), ("insert_before", "BOF")], "\u{feff}a\n"),
        "\u{feff}b\na\n"
    );
    assert_eq!(edit(&SPEC, &[("line", "b"), ("insert_after", "^x")], "a\n"), "a\nb\n");
    assert_eq!(edit(&SPEC, &[("content", "b")], "b"), "b");
}

#[test]
fn the_last_matching_line_is_replaced() {
    let text = "#PermitRootLogin yes\nPermitRootLogin yes\nUsePAM yes\n";
    let expected = "#PermitRootLogin yes\nPermitRootLogin no\nUsePAM yes\n";
    assert_eq!(edit(&SPEC, &[ROOT, MATCH], text), expected);
    // The pattern does not match the line: the existing line is enough.
    let given = [ROOT, ("match", "^#PermitRootLogin")];
    assert_eq!(
        edit(&SPEC, &given, "#PermitRootLogin a\n#PermitRootLogin b\n"),
        "#PermitRootLogin a\nPermitRootLogin no\n"
    );
}

#[test]
fn absent_lines_are_removed() {
    let absent = ("state", "absent");
    assert_eq!(edit(&SPEC, &[("line", "b"), absent], "a\nb\nb\nc"), "a\nc");
    assert_eq!(edit(&SPEC, &[("match", "^b"), absent], "a\nbc\nb"), "a");
    assert_eq!(
        remove(&SPEC, &[ROOT, MATCH], "#PermitRootLogin x\nPermitRootLogin no\n"),
        "#PermitRootLogin x\n"
    );
}

#[test]
fn wrong_fields_are_rejected() {
    assert_eq!(problem(&SPEC, &[]), "expected `line`, found none");
    assert_eq!(problem(&SPEC, &[("state", "absent")]), "expected `line` or `match`, found none");
    assert_eq!(problem(&SPEC, &[("line", "a\nb")]), "expected one line that is not empty");
    assert!(problem(&SPEC, &[ROOT, ("match", "(")]).starts_with("expected a regular expression"));
    assert!(
        problem(&SPEC, &[ROOT, ("match", "(a{1000}){1000}")]).starts_with("expected a regular")
    );
    assert!(problem(&SPEC, &[ROOT, ("validate", "true")]).starts_with("validate needs %s"));
    assert!(
        problem(&SPEC, &[ROOT, ("insert_after", "a"), ("insert_before", "b")])
            .contains("exclude each other")
    );
    assert!(problem(&SPEC, &[ROOT, ("path", "etc")]).starts_with("expected an absolute path"));
}

/// A secret is neither shown nor recorded: it stands in no part, no removal and no Debug output.
#[test]
fn a_secret_line_is_hidden() {
    for more in [&[("match", "^password=")][..], &[]] {
        let given: Vec<_> =
            [("line", "secret:password=hunter2")].into_iter().chain(more.to_vec()).collect();
        let resource = crate::parts::edit_support::build(&SPEC, &given).expect("valid");
        let edit = text_edit(&resource);
        assert!(edit.editor.is_secret() && edit.create.is_none());
        let all = format!("{resource:?} {:?}", resource.footprint());
        assert!(!all.contains("hunter2"), "{all}");
        assert_eq!(resource.footprint().removal.is_some(), !more.is_empty());
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
    #[test]
    fn other_bytes_stay(
        text in "(\u{feff})?(([ab#]|\u{fff80}){0,3}(\r?\n)?){0,6}",
        place in prop_oneof![Just(("insert_after", "EOF")), Just(("insert_after", "^a")), Just(("insert_before", "^b")), Just(("insert_before", "BOF"))],
    ) {
        let given = [("line", "new=1"), place];
        let longer = edit(&SPEC, &given, &text);
        if !text.trim_start_matches('\u{feff}').is_empty() {
            prop_assert_eq!(remove(&SPEC, &given, &longer), text.as_str());
        }
        prop_assert_eq!(longer.replace(['\r', '\n'], "").replacen("new=1", "", 1), text.replace(['\r', '\n'], ""));
    }

    #[test]
    fn one_line_changes(lines in prop::collection::vec("[ab]|key=[0-9]", 1..8)) {
        let text = lines.iter().flat_map(|it| [it.as_str(), "\r\n"]).collect::<String>();
        let edited = edit(&SPEC, &[("line", "key=x"), ("match", "^key=")], &text);
        let changed = edited.split("\r\n").zip(text.split("\r\n")).filter(|(new, old)| new != old).count();
        prop_assert!(changed == 1 && edited.contains("key=x\r\n"));
    }
}
