//! Tests of the kind `yaml`.

use super::SPEC;
use crate::parts::edit_support::{build, edit, problem, refusal, remove, try_edit};
use proptest::prelude::*;

fn set(key: &str, value: &str, text: &str) -> String {
    edit(&SPEC, &[("key", key), ("value", value)], text)
}

const TEXT: &str = "---\n# top\nserver: # the server\n  port: 80   # http\n  host: 'a'\nlist:\n  - name: x\n    on: 1\n  - {name: y}\nempty:\ntext: |\n  one\n  two\nlast: \"q\" # end\n";

#[test]
fn values_are_changed_in_place() {
    assert_eq!(set("server.port", "8080", TEXT), TEXT.replace("80 ", "8080 "));
    assert_eq!(set("server.port", "80", TEXT), TEXT);
    assert_eq!(set("server.host", "b c", TEXT), TEXT.replace("'a'", "'b c'"));
    assert_eq!(set("last", "yes", TEXT), TEXT.replace("\"q\"", "\"yes\""));
    assert_eq!(set("server.port", "yes", TEXT), TEXT.replace("80", "'yes'"));
    assert_eq!(set("list.0.name", "z", TEXT), TEXT.replace("name: x", "name: z"));
    assert_eq!(set("list.1.name", "z", TEXT), TEXT.replace("name: y", "name: z"));
    assert_eq!(set("empty", "1", TEXT), TEXT.replace("empty:", "empty: 1"));
    assert_eq!(set("text", "one line", TEXT), TEXT.replace("|\n  one\n  two", "one line"));
    assert_eq!(
        set("server", "[1, a]", TEXT),
        TEXT.replace("  port: 80   # http\n  host: 'a'\n", "  - 1\n  - a\n")
    );
    assert_eq!(
        set("server", "off", TEXT),
        TEXT.replace(
            "server: # the server\n  port: 80   # http\n  host: 'a'\n",
            "server: 'off' # the server\n"
        )
    );
    assert_eq!(
        set("list", "[2]", TEXT),
        TEXT.replace("  - name: x\n    on: 1\n  - {name: y}\n", "  - 2\n")
    );
    assert_eq!(set("a", "2", "a: 1"), "a: 2");
}

#[test]
fn keys_are_added_behind_the_last_one() {
    assert_eq!(set("new", "1", TEXT), format!("{TEXT}new: 1\n"));
    assert_eq!(
        set("server.tls.min", "1.3", TEXT),
        TEXT.replace("host: 'a'\n", "host: 'a'\n  tls:\n    min: 1.3\n")
    );
    assert_eq!(set("empty.x", "1", TEXT), TEXT.replace("empty:\n", "empty:\n  x: 1\n"));
    assert_eq!(set("list.0.b", "2", TEXT), TEXT.replace("    on: 1\n", "    on: 1\n    b: 2\n"));
    assert_eq!(set("list.1.b", "2", TEXT), TEXT.replace("{name: y}", "{name: y, b: 2}"));
    assert_eq!(set("a.b", "1", ""), "a:\n  b: 1\n");
    assert_eq!(set("a.b", "1", "# only\n"), "# only\na:\n  b: 1\n");
    assert_eq!(set("b", "1", "a: 1"), "a: 1\nb: 1");
    assert_eq!(set("b", "1", "a: |\r\n  x\r\n"), "a: |\r\n  x\r\nb: 1\r\n");
    assert_eq!(set("b", "1", "a: >-\n  x"), "a: >-\n  x\nb: 1");
    assert_eq!(set("b.c", "1", "b:"), "b:\n  c: 1");
    assert_eq!(set("b", "1", "{}\n"), "{b: 1}\n");
    assert_eq!(set("b", "1", "a: [1,\n  2]\n# end\n"), "a: [1,\n  2]\nb: 1\n# end\n");
}

#[test]
fn keys_are_removed_with_their_lines() {
    let gone = |key, text| remove(&SPEC, &[("key", key), ("value", "1")], text);
    assert_eq!(
        gone("server", TEXT),
        TEXT.replace("server: # the server\n  port: 80   # http\n  host: 'a'\n", "")
    );
    assert_eq!(gone("server.port", TEXT), TEXT.replace("  port: 80   # http\n", ""));
    assert_eq!(gone("list.0.name", TEXT), TEXT.replace("name: x\n    on: 1", "on: 1"));
    assert_eq!(gone("list.1.name", TEXT), TEXT.replace("{name: y}", "{}"));
    assert_eq!(gone("text", TEXT), TEXT.replace("text: |\n  one\n  two\n", ""));
    assert_eq!(gone("empty", TEXT), TEXT.replace("empty:\n", ""));
    assert_eq!(gone("a.b", "a: # c\n  b: 1\nd: 1\n"), "a: {} # c\nd: 1\n");
    assert_eq!(gone("a", "# c\na: 1\n"), "# c\n");
    assert_eq!(gone("b", "a: 1\nb: 2"), "a: 1");
}

#[test]
fn unsafe_places_are_refused() {
    let given = [("key", "a.b"), ("value", "2")];
    for (text, why) in [
        ("a: &x\n  b: 1\nc: *x\n", "an anchor"),
        ("c: &x {b: 1}\na: *x\n", "an alias"),
        ("a: !t\n  b: 1\n", "a tag"),
        ("a:\n  b: &x 1\nc: *x\n", "an anchor"),
        ("x: &x {b: 1}\na:\n  <<: *x\n  c: 1\n", "a merge key"),
        ("a: 1\n---\na: 2\n", "one YAML document"),
        ("a:\n\tb: 1\n", "valid YAML"),
        ("a: 1\n", "expected a map"),
        ("a: {b: 1, b: 1}\n", "YAML|twice"),
        ("? [1]\n: 2\n", "cannot be read"),
        ("- 1\n", "the list has"),
    ] {
        let message = refusal(&SPEC, &given, text);
        assert!(why.split('|').any(|why| message.contains(why)), "{text:?}: {message}");
    }
}

#[test]
fn other_anchors_do_not_disturb() {
    let text = "x: &x\n  y: 1\nz: *x\na:\n  b: 1\n";
    assert_eq!(set("a.b", "2", text), text.replace("b: 1", "b: 2"));
    assert_eq!(set("new", "2", text), format!("{text}new: 2\n"));
}

#[test]
fn wrong_fields_are_rejected() {
    assert_eq!(problem(&SPEC, &[("value", "1")]), "expected `key`, found none");
    assert_eq!(problem(&SPEC, &[("key", "a")]), "expected `value`, found none");
    assert!(
        problem(&SPEC, &[("key", "a"), ("value", "a: b: c"), ("type", "tree")])
            .starts_with("expected a value: ")
    );
}

#[test]
fn trees_are_written_on_lines() {
    let given = [("key", "a"), ("value", "b:\n  - 1\n  - c: x\nd: {}\n"), ("type", "tree")];
    assert_eq!(edit(&SPEC, &given, "x: 1\n"), "x: 1\na:\n  b:\n    - 1\n    - {c: x}\n  d: {}\n");
}

#[test]
fn a_secret_value_is_hidden() {
    let given = [("key", "password"), ("value", "secret:12345")];
    let resource = build(&SPEC, &given).expect("valid");
    assert!(!format!("{resource:?} {:?}", resource.footprint()).contains("12345"));
    assert_eq!(edit(&SPEC, &given, ""), "password: '12345'\n");
}

/// Returns files of nested maps and lists with comments, in various styles.
fn any_file() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(" 1".to_owned()),
        Just(" 'a: b'".to_owned()),
        Just(" \"x\" # c".to_owned()),
        Just(" [1, {a: 2}]".to_owned()),
        Just(String::new()),
        Just(" |\n    t\n\n    u".to_owned()),
        Just(" {a: 1, b: [x]} # }".to_owned()),
        Just(" word \u{fff80}".to_owned()),
        Just("\n  a: 1\n  b: # d\n    c: 2".to_owned()),
        Just("\n  - a: 1\n    b: 2\n  - x".to_owned()),
        Just(" >-\n  folded\n  text".to_owned()),
        Just("\n- 1\n- 2".to_owned()),
    ];
    let lines = prop::collection::btree_map("[a-d]", (leaf, any::<bool>()), 0..4);
    (lines, any::<bool>(), any::<bool>()).prop_map(|(entries, is_windows, is_closed)| {
        let entry = |(key, (value, has_comment)): (String, (String, bool))| {
            format!("{}{key}:{value}", if has_comment { "# about\n\n" } else { "" })
        };
        let text = entries.into_iter().map(entry).collect::<Vec<_>>().join("\n");
        let text = if is_closed && !text.is_empty() { format!("{text}\n") } else { text };
        if is_windows { text.replace('\n', "\r\n") } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn other_bytes_stay(text in any_file(), key in "[a-e](\\.[a-e0]){0,2}", value in "[0-9]|x|\\[1\\]|\\{\"y\": 1\\}") {
        let given = [("key", key.as_str()), ("value", value.as_str())];
        let edited = match try_edit(&SPEC, &given, &text) {
            Ok(edited) => edited,
            Err(why) => {
                prop_assert!(!why.what.contains("cannot be edited"), "{:?} {:?}: {:?}", text, given, why);
                return Ok(());
            }
        };
        prop_assert_eq!(&edit(&SPEC, &given, &edited.text), &edited.text);
        prop_assert_eq!(edited.text.matches("# about").count(), text.matches("# about").count());
        if !edited.text.is_empty() && !text.is_empty() && !text.ends_with('\n') {
            prop_assert!(!edited.text.ends_with('\n'), "{:?} {:?}", text, edited.text);
        }
        if edited.from.is_empty() && !key.contains('.') && !text.is_empty() {
            prop_assert_eq!(remove(&SPEC, &given, &edited.text), text);
        }
    }

    #[test]
    fn a_removal_is_as_small_as_its_value(text in any_file(), key in "[a-d](\\.[a-c]){0,1}") {
        let given = [("key", key.as_str()), ("state", "absent")];
        let edited = match try_edit(&SPEC, &given, &text) {
            Ok(edited) => edited,
            Err(why) => return Err(TestCaseError::fail(format!("{text:?} {given:?}: {why:?}"))),
        };
        prop_assert_eq!(edited.text.matches("# about").count(), text.matches("# about").count());
        prop_assert!(edited.text.len() <= text.len() + 3);
    }

    #[test]
    fn no_text_panics(text in "[a-b:\\-#&*|>?!%@{}\\[\\]\"' \n\t,]{0,24}") {
        drop(try_edit(&SPEC, &[("key", "a.b"), ("value", "1")], &text));
        drop(try_edit(&SPEC, &[("key", "a"), ("state", "absent")], &text));
    }
}
