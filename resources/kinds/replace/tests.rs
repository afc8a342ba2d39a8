//! Tests of the kind `replace`.

use super::SPEC;
use crate::parts::edit_support::{build, edit, problem, refusal, text_edit};
use proptest::prelude::*;

const GRUB: [(&str, &str); 2] = [("match", "^#?(GRUB_TIMEOUT)=.*$"), ("replacement", "\\1=2")];

#[test]
fn every_match_is_replaced() {
    assert_eq!(
        edit(&SPEC, &GRUB, "#GRUB_TIMEOUT=5\nA=1\nGRUB_TIMEOUT=9\n"),
        "GRUB_TIMEOUT=2\nA=1\nGRUB_TIMEOUT=2\n"
    );
    assert_eq!(edit(&SPEC, &GRUB, "A=1\n"), "A=1\n", "without a match nothing changes");
    assert_eq!(edit(&SPEC, &[("match", "b+")], "abbba"), "aa", "a match is deleted");
    assert_eq!(
        edit(&SPEC, &[("match", "(?s)<.*>\\n"), ("replacement", "x")], "a\n<b\nc>\nd"),
        "a\nxd"
    );
    let given = [("match", "old"), ("replacement", "\\\\1 $1 \\n")];
    assert_eq!(edit(&SPEC, &given, "old"), "\\1 $1 \\n", "only \\1 and \\\\ have a meaning");
    assert_eq!(edit(&SPEC, &[("match", "^a"), ("replacement", "b\\0")], "a\n"), "ba\n");
}

#[test]
fn limits_bound_the_search() {
    let text = "x=1\n[a]\nx=1\n[b]\nx=1\n";
    let given = |limits: &[(&'static str, &'static str)]| {
        let mut all = vec![("match", "x=1"), ("replacement", "y")];
        all.extend(limits);
        edit(&SPEC, &all, text)
    };
    assert_eq!(given(&[("only_after", "^\\[b\\]")]), "x=1\n[a]\nx=1\n[b]\ny\n");
    assert_eq!(given(&[("only_before", "^\\[")]), "y\n[a]\nx=1\n[b]\nx=1\n");
    assert_eq!(
        given(&[("only_after", "^\\[a\\]"), ("only_before", "^\\[")]),
        "x=1\n[a]\ny\n[b]\nx=1\n"
    );
    assert_eq!(given(&[("only_after", "missing")]), text);
    assert_eq!(given(&[("only_before", "missing")]), text);
}

#[test]
fn a_replacement_that_matches_again_is_refused() {
    let given = [("match", "a"), ("replacement", "aa")];
    assert!(refusal(&SPEC, &given, "a").starts_with("`match` matches the replaced text again"));
    let large = "x".repeat(10_000);
    let given = [("match", "b"), ("replacement", large.as_str())];
    assert!(refusal(&SPEC, &given, &"b".repeat(70)).contains("exceed 512 KiB"));
}

/// Each match of this expression reads to the end of the line: another user could write a long one.
#[test]
fn a_search_has_limits_of_size_and_time() {
    let given = [("match", r"user=(\w+)( .*#managed)?"), ("replacement", r"USER=\1")];
    let size = "the file exceeds 512 KiB, the limit of replacements";
    assert_eq!(refusal(&SPEC, &given, &"user=a ".repeat(80_000)), size);
    let time = "the search for `match` takes more than three seconds";
    assert_eq!(refusal(&SPEC, &given, &"user=a ".repeat(70_000)), time);
}

#[test]
fn wrong_fields_are_rejected() {
    assert_eq!(problem(&SPEC, &[("match", "(")]).get(..29), Some("expected a regular expression"));
    assert_eq!(
        problem(&SPEC, &[("match", "a"), ("replacement", "\\2")]),
        "`replacement` names group 2, and `match` has 0"
    );
    assert!(
        problem(&SPEC, &[("match", "a"), ("only_after", "(")]).starts_with("expected a regular")
    );
}

/// A secret is neither shown nor recorded.
#[test]
fn a_secret_replacement_is_hidden() {
    let given = [("match", "^password=.*$"), ("replacement", "secret:password=hunter2")];
    let resource = build(&SPEC, &given).expect("valid");
    let edit = text_edit(&resource);
    assert!(edit.editor.is_secret());
    assert!(!format!("{resource:?} {:?}", resource.footprint()).contains("hunter2"));
    assert_eq!(edit.editor.edit("password=x\n").expect("edited").text, "password=hunter2\n");
    let given = [("match", "^password=.*$"), ("replacement", r"secret:password=\1\\")];
    let edit = text_edit(&build(&SPEC, &given).expect("valid"));
    let text = edit.editor.edit("password=x\n").expect("edited").text;
    assert_eq!(text, "password=\\1\\\\\n", "a secret has no groups");
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
    #[test]
    fn other_bytes_stay(lines in prop::collection::vec("[abc]{0,3}|key=[0-9]", 0..8)) {
        let text = lines.join("\n");
        let edited = edit(&SPEC, &[("match", "^key=.*$"), ("replacement", "key=x")], &text);
        for (old, new) in text.split('\n').zip(edited.split('\n')) {
            prop_assert_eq!(new, if old.starts_with("key=") { "key=x" } else { old });
        }
        prop_assert_eq!(text.split('\n').count(), edited.split('\n').count());
    }
}
