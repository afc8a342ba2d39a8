//! Tests of the kind `ini`.

use super::SPEC;
use crate::parts::edit_support::{build, edit, problem, refusal, remove};
use proptest::prelude::*;

fn set(section: &str, key: &str, value: &str, text: &str) -> String {
    edit(&SPEC, &[("section", section), ("key", key), ("value", value)], text)
}

#[test]
fn values_are_changed_in_place() {
    let text = "; top\n[a]\n# note\n  one=1\ntwo = 2\r\n[b]\none = 9\n";
    assert_eq!(set("a", "one", "7", text), text.replace("one=1", "one=7"));
    assert_eq!(set("a", "two", "8", text), text.replace("two = 2", "two = 8"));
    assert_eq!(set("b", "one", "9", text), text);
    assert_eq!(set("a", "one", "", "[a]\none=1"), "[a]\none=");
    assert_eq!(set("a", "one", "1", "[a]\none\n"), "[a]\none = 1\n");
    assert_eq!(edit(&SPEC, &[("section", "a"), ("key", "one")], "[a]\none = 1\n"), "[a]\none\n");
    assert_eq!(set("a", "x", "3", "[a]\nx=1\nx=2\n"), "[a]\nx=1\nx=3\n", "the last one counts");
    assert_eq!(set("a", "one", "1", "[a]\nones=2\n"), "[a]\nones=2\none=1\n");
}

#[test]
fn keys_are_added_in_the_style_of_their_section() {
    assert_eq!(set("a", "k", "v", ""), "[a]\nk = v\n");
    assert_eq!(set("a", "k", "v", "[b]\nx=1"), "[b]\nx=1\n[a]\nk=v");
    assert_eq!(set("a", "k", "v", "[a]\nx=1\n\n# of b\n[b]\n"), "[a]\nx=1\nk=v\n\n# of b\n[b]\n");
    assert_eq!(set("a", "k", "v", "[a]\n\tx = 1\n"), "[a]\n\tx = 1\n\tk = v\n");
    assert_eq!(set("a", "k", "v", "[ a ] ; c\n"), "[ a ] ; c\nk = v\n");
    assert_eq!(
        edit(&SPEC, &[("key", "k"), ("value", "v")], "# c\n[a]\nx=1\n"),
        "# c\nk=v\n[a]\nx=1\n"
    );
    let given = [("section", "a"), ("key", "k"), ("value", "v"), ("separator", ": ")];
    assert_eq!(edit(&SPEC, &given, "[a]\nx=1\n"), "[a]\nx=1\nk: v\n");
}

#[test]
fn comments_behind_values_stay_where_declared() {
    let given = |value| [("section", "a"), ("key", "k"), ("value", value), ("comments", ";#")];
    assert_eq!(edit(&SPEC, &given("2"), "[a]\nk = 1 ; one\n"), "[a]\nk = 2 ; one\n");
    assert_eq!(edit(&SPEC, &given("2"), "[a]\nk = 2\t# two\n"), "[a]\nk = 2\t# two\n");
    assert_eq!(edit(&SPEC, &given("2"), "[a]\nk = ; none\n"), "[a]\nk = 2 ; none\n");
    assert_eq!(edit(&SPEC, &given("2"), "[a]\nk = a;b\n"), "[a]\nk = 2\n");
    assert_eq!(set("a", "k", "2", "[a]\nk = 1 ; one\n"), "[a]\nk = 2\n", "part of the value");
}

#[test]
fn keys_are_removed() {
    let given = [("section", "a"), ("key", "k"), ("value", "v")];
    assert_eq!(remove(&SPEC, &given, "[a]\nk=1\nx=2\nk=3\n[b]\nk=4\n"), "[a]\nx=2\n[b]\nk=4\n");
    assert_eq!(remove(&SPEC, &given, "x\n"), "x\n");
}

#[test]
fn continued_values_are_refused() {
    let given = [("section", "a"), ("key", "k"), ("value", "v")];
    for text in ["[a]\nk = 1 \\\n  2\n", "[a]\nk = 1\n  more\n"] {
        let message = refusal(&SPEC, &given, text);
        assert_eq!(message, "line 2: the value of k goes on in the next line");
    }
    assert_eq!(edit(&SPEC, &given, "[a]\nk = 1\n  x = 2\n"), "[a]\nk = v\n  x = 2\n");
}

#[test]
fn wrong_fields_are_rejected() {
    assert_eq!(problem(&SPEC, &[]), "expected `key`, found none");
    assert!(problem(&SPEC, &[("key", "a=b")]).starts_with("expected a name"));
    assert!(problem(&SPEC, &[("key", "a"), ("section", "[x]")]).starts_with("expected a name"));
    assert!(problem(&SPEC, &[("key", "a"), ("value", "x\ny")]).starts_with("expected one line"));
    assert!(problem(&SPEC, &[("key", "a"), ("value", " x")]).starts_with("expected one line"));
    assert!(problem(&SPEC, &[("key", "a"), ("separator", "->")]).starts_with("expected = or :"));
    assert!(
        problem(&SPEC, &[("key", "a"), ("value", "x ; y"), ("comments", ";")])
            .starts_with("the value contains")
    );
}

#[test]
fn a_secret_value_is_hidden() {
    let resource =
        build(&SPEC, &[("key", "password"), ("value", "secret:hunter2")]).expect("valid");
    assert!(!format!("{resource:?} {:?}", resource.footprint()).contains("hunter2"));
}

fn file() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "\\[[ab]\\]",
        "[kx] ?= ?([0-9]|\u{fff81}){0,2}",
        "[#;] [a-z]{0,4}",
        Just(String::new()),
        Just("flag".to_owned()),
    ];
    (prop::collection::vec(line, 0..10), prop::bool::ANY, prop::bool::ANY).prop_map(
        |(lines, is_windows, is_closed)| {
            let end = if is_windows { "\r\n" } else { "\n" };
            lines.join(end) + if is_closed && !lines.is_empty() { end } else { "" }
        },
    )
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
    #[test]
    fn other_lines_stay(text in file(), section in "[abc]") {
        let given = [("section", section.as_str()), ("key", "k"), ("value", "new")];
        let edited = edit(&SPEC, &given, &text);
        let old: Vec<&str> = text.split_inclusive('\n').map(str::trim_end).collect();
        let new: Vec<&str> = edited.split_inclusive('\n').map(str::trim_end).collect();
        // At most one line differs, or at most two lines are new.
        let same_start = old.iter().zip(&new).take_while(|(one, two)| one == two).count();
        let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(one, two)| one == two).count();
        prop_assert!(old.len().saturating_sub(same_start + same_end) <= 1, "{:?} {:?}", text, edited);
        prop_assert!(new.len() - old.len() <= 2);
        prop_assert!(edited.contains("new"));
        prop_assert_eq!(edited.ends_with('\n'), text.is_empty() || text.ends_with('\n'));
        // The value of the other section and key stays.
        let other = edit(&SPEC, &[("section", "a"), ("key", "x"), ("state", "absent")], &edited);
        prop_assert!(other.len() <= edited.len());
    }
}
