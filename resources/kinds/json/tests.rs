//! Tests of the kind `json`.

use super::SPEC;
use crate::parts::data::scalars::to_json;
use crate::parts::data::tree::Tree;
use crate::parts::edit_support::{build, edit, problem, refusal, remove};
use proptest::prelude::*;

fn set(key: &str, value: &str, text: &str) -> String {
    edit(&SPEC, &[("key", key), ("value", value)], text)
}

const TEXT: &str = "{\n    // the port\n    \"port\": 80, /* default */\n    \"log\": {\"level\": \"info\"}, // one line\n    \"tags\": [1, 2],\n    \"last\": null // end\n}\n";

#[test]
fn values_are_changed_in_place() {
    assert_eq!(set("port", "8080", TEXT), TEXT.replace("80", "8080"));
    assert_eq!(set("port", "80", TEXT), TEXT);
    assert_eq!(set("log.level", "warn", TEXT), TEXT.replace("info", "warn"));
    assert_eq!(set("tags.1", "3", TEXT), TEXT.replace("[1, 2]", "[1, 3]"));
    assert_eq!(set("last", "[]", TEXT), TEXT.replace("null", "[]"));
    let string = [("key", "port"), ("value", "80"), ("type", "string")];
    assert_eq!(edit(&SPEC, &string, TEXT), TEXT.replace("80", "\"80\""));
}

/// A version number in quotes stays a string; a declared type replaces it.
#[test]
fn a_string_stays_a_string() {
    let text = "{\"version\": \"1.9\", \"on\": \"false\"}";
    assert_eq!(set("version", "1.10", text), text.replace("1.9", "1.10"));
    assert_eq!(set("version", "1.9", text), text);
    assert_eq!(set("on", "true", text), text.replace("false", "true"));
    assert_eq!(set("version", "[1]", text), text.replace("\"1.9\"", "[1]"));
    let tree = [("key", "on"), ("value", "true"), ("type", "tree")];
    assert_eq!(edit(&SPEC, &tree, text), text.replace("\"false\"", "true"));
}

#[test]
fn keys_are_added_behind_the_last_one() {
    assert_eq!(
        set("new", "true", TEXT),
        TEXT.replace("null // end\n", "null, // end\n    \"new\": true\n")
    );
    assert_eq!(set("log.file", "x", TEXT), TEXT.replace("\"info\"}", "\"info\", \"file\": \"x\"}"));
    assert_eq!(set("a.b", "1", "{}"), "{\"a\": {\"b\": 1}}");
    assert_eq!(set("a.b", "1", ""), "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n");
    assert_eq!(set("b", "2", "{\r\n\t\"a\": 1,\r\n}"), "{\r\n\t\"a\": 1,\r\n\t\"b\": 2,\r\n}");
    assert_eq!(set("b", "2", "{\"a\": 1}"), "{\"a\": 1, \"b\": 2}");
    assert_eq!(
        set("c", "{\"d\": [1]}", "{\n \"a\": 1\n}"),
        "{\n \"a\": 1,\n \"c\": {\n  \"d\": [\n   1\n  ]\n }\n}"
    );
    assert_eq!(set("a.b", "1", "{\n  \"a\": {}\n}"), "{\n  \"a\": {\n    \"b\": 1\n  }\n}");
    assert_eq!(set("a", "1", "\u{feff}{ }"), "\u{feff}{\"a\": 1}");
    assert_eq!(set("\"a.b\"", "1", "{}"), "{\"a.b\": 1}");
}

#[test]
fn keys_are_removed_with_their_line() {
    let gone = |key, text| remove(&SPEC, &[("key", key), ("value", "1")], text);
    assert_eq!(gone("port", TEXT), TEXT.replace("    \"port\": 80, /* default */\n", ""));
    assert_eq!(
        gone("last", TEXT),
        TEXT.replace("[1, 2],\n    \"last\": null // end\n", "[1, 2]\n")
    );
    assert_eq!(gone("log.level", TEXT), TEXT.replace("\"level\": \"info\"", ""));
    assert_eq!(gone("a", "{\"a\": 1, \"b\": 2}"), "{\"b\": 2}");
    assert_eq!(gone("b", "{\"a\": 1, \"b\": 2}"), "{\"a\": 1}");
    assert_eq!(gone("x.y", TEXT), TEXT);
    assert_eq!(gone("port.y", TEXT), TEXT);
}

#[test]
fn unsafe_edits_are_refused() {
    let given = [("key", "a.b"), ("value", "1")];
    assert_eq!(refusal(&SPEC, &given, "{\n\"a\": ]"), "line 2: expected valid JSON");
    assert_eq!(
        refusal(&SPEC, &given, "{\"a\": 1}"),
        "expected a map with the key b, found another value"
    );
    assert_eq!(
        refusal(&SPEC, &given, "{\"a\": {}, \"a\": {}}"),
        "the key a stands twice in its map"
    );
    assert_eq!(
        refusal(&SPEC, &[("key", "a.2"), ("value", "1")], "{\"a\": [1]}"),
        "the list has 1 items, and no item 2"
    );
    assert_eq!(refusal(&SPEC, &given, "{\"a\": {}} x"), "line 1: expected valid JSON");
    let deep = "[".repeat(100_000);
    assert!(refusal(&SPEC, &given, &deep).contains("expected valid JSON"));
}

#[test]
fn wrong_fields_are_rejected() {
    assert_eq!(problem(&SPEC, &[("value", "1")]), "expected `key`, found none");
    assert_eq!(problem(&SPEC, &[("key", "a")]), "expected `value`, found none");
    assert!(problem(&SPEC, &[("key", "a..b"), ("value", "1")]).starts_with("expected keys"));
    assert!(problem(&SPEC, &[("key", "a"), ("value", "{x")]).starts_with("expected a value: "));
}

/// A secret is a string, and is neither shown nor recorded.
#[test]
fn a_secret_value_is_hidden() {
    let given = [("key", "password"), ("value", "secret:12345")];
    let resource = build(&SPEC, &given).expect("valid");
    assert!(!format!("{resource:?} {:?}", resource.footprint()).contains("12345"));
    assert_eq!(edit(&SPEC, &given, "{}"), "{\"password\": \"12345\"}");
}

fn any_tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<i8>().prop_map(|it| Tree::Number(it.to_string())),
        "[a-z\"\\\\\n]{0,4}".prop_map(Tree::Text),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Tree::List),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|map| Tree::Map(map.into_iter().collect())),
        ]
    })
}

fn any_file() -> impl Strategy<Value = String> {
    use crate::parts::data::scalars::Layout;
    let map = prop::collection::btree_map("[a-d]", any_tree(), 0..4)
        .prop_map(|map| Tree::Map(map.into_iter().collect()));
    (map, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(tree, is_long, is_windows, has_comments)| {
            let newline = match (is_windows, has_comments) {
                (true, false) => "\r\n",
                (true, true) => " // \u{fff80}\r\n",
                (false, true) => " // }\n",
                (false, false) => "\n",
            };
            let layout = Layout { newline, unit: "\t", indent: "" };
            to_json(&tree, is_long.then_some(layout))
        },
    )
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
    /// Every comment survives, and an addition with its removal leaves every byte of a file without that key.
    #[test]
    fn other_bytes_stay(text in any_file(), key in "[a-e](\\.[a-e]){0,2}", value in "[0-9]|x|\\[\\]|\\{\"y\": 1\\}") {
        let given = [("key", key.as_str()), ("value", value.as_str())];
        let Ok(edited) = crate::parts::edit_support::try_edit(&SPEC, &given, &text) else { return Ok(()) };
        let again = edit(&SPEC, &given, &edited.text);
        prop_assert_eq!(&again, &edited.text);
        prop_assert_eq!(edited.text.contains("\r\n"), text.contains("\r\n"));
        if edited.from.is_empty() && !key.contains('.') {
            let comments = |text: &str| text.matches("//").count();
            prop_assert_eq!(comments(&edited.text), comments(&text));
            let back = remove(&SPEC, &given, &edited.text);
            let is_empty = text.trim_start().starts_with("{}");
            prop_assert!(back == text || is_empty, "{:?} {:?} {:?}", text, edited.text, back);
        }
    }

    #[test]
    fn no_text_panics(text in "[\\{\\}\\[\\]\",:a /*\n]{0,24}") {
        drop(crate::parts::edit_support::try_edit(&SPEC, &[("key", "a.b"), ("value", "1")], &text));
    }
}
