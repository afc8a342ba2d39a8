//! Tests of the kind `block`.

use super::SPEC;
use crate::parts::edit_support::{build, edit, problem, refusal, remove};
use proptest::prelude::*;

const BLOCK: &str = "# BEGIN steadfast: /etc/f\nx\ny\n# END steadfast: /etc/f\n";

#[test]
fn a_block_is_added_changed_and_removed() {
    let given = [("content", "x\ny\n")];
    assert_eq!(edit(&SPEC, &given, ""), BLOCK);
    assert_eq!(edit(&SPEC, &given, "a\n"), format!("a\n{BLOCK}"));
    assert_eq!(edit(&SPEC, &[given[0], ("insert_before", "BOF")], "a\n"), format!("{BLOCK}a\n"));
    let old = "a\n# BEGIN steadfast: /etc/f\nold\n# END steadfast: /etc/f\nb";
    assert_eq!(edit(&SPEC, &given, old), format!("a\n{BLOCK}b"));
    assert_eq!(remove(&SPEC, &given, old), "a\nb");
    let windows = old.replace('\n', "\r\n");
    assert_eq!(edit(&SPEC, &given, &windows), format!("a\r\n{}b", BLOCK.replace('\n', "\r\n")));
    assert_eq!(
        edit(&SPEC, &[("content", ""), ("marker", "; {mark}")], "a\n"),
        "a\n; BEGIN\n; END\n"
    );
}

#[test]
fn broken_markers_are_refused() {
    let given = [("content", "x")];
    for text in [
        "# BEGIN steadfast: /etc/f\n",
        "# END steadfast: /etc/f\n# BEGIN steadfast: /etc/f\n",
        "# BEGIN steadfast: /etc/f\n# BEGIN steadfast: /etc/f\n# END steadfast: /etc/f\n",
    ] {
        let message = refusal(&SPEC, &given, text);
        assert!(message.starts_with("expected one BEGIN and one END marker"), "{message}");
    }
}

#[test]
fn wrong_fields_are_rejected() {
    assert_eq!(problem(&SPEC, &[]), "expected `content`, found none");
    assert_eq!(
        problem(&SPEC, &[("content", "a"), ("marker", "# x")]),
        "expected one line with {mark} once"
    );
    assert_eq!(
        problem(&SPEC, &[("content", "a\n# END b"), ("marker", "# {mark} b")]),
        "the content contains a marker line"
    );
}

#[test]
fn a_secret_block_is_hidden() {
    let resource = build(&SPEC, &[("content", "secret:hunter2")]).expect("valid");
    assert!(!format!("{resource:?} {:?}", resource.footprint()).contains("hunter2"));
    assert!(resource.footprint().removal.is_some());
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
    #[test]
    fn other_bytes_stay(
        text in "(\u{feff})?[ab#]{1,3}(\r?\n([ab]|\u{fff80}){0,3}){0,6}(\r?\n)?",
        first in "([a-c]{0,3}\n){0,4}",
        second in "([a-c]{0,3}\n){0,4}",
    ) {
        let with = edit(&SPEC, &[("content", &first)], &text);
        let changed = edit(&SPEC, &[("content", &second)], &with);
        prop_assert_eq!(&edit(&SPEC, &[("content", &second)], &text), &changed);
        prop_assert_eq!(remove(&SPEC, &[("content", &second)], &changed), text);
    }
}
