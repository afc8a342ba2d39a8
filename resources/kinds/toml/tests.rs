//! Tests of the kind `toml`.

use super::SPEC;
use crate::parts::edit_support::{build, edit, problem, refusal, remove, try_edit};
use proptest::prelude::*;

fn set(key: &str, value: &str, text: &str) -> String {
    edit(&SPEC, &[("key", key), ("value", value)], text)
}

const TEXT: &str = "# top\nname = \"x\" # c\n\n[server]\nport = 80\n\"a.b\" = 'q'\ntls = { min = 1.2, on = true }\n\n# about\n[server.log]\n  level = \"info\"\n\n[[item]]\nid = 1\n[[item]]\nid = 2\n";

#[test]
fn values_are_changed_in_place() {
    assert_eq!(set("name", "y", TEXT), TEXT.replace("\"x\"", "\"y\""));
    assert_eq!(set("server.port", "80", TEXT), TEXT);
    assert_eq!(set("server.port", "81", TEXT), TEXT.replace("80", "81"));
    assert_eq!(set("server.\"a.b\"", "q", TEXT), TEXT);
    assert_eq!(set("server.tls.min", "1.3", TEXT), TEXT.replace("1.2", "1.3"));
    assert_eq!(set("item.1.id", "3", TEXT), TEXT.replace("id = 2", "id = 3"));
    assert_eq!(set("name", "2024-01-02", TEXT), TEXT.replace("\"x\"", "\"2024-01-02\""));
    assert_eq!(set("server.port", "2024-01-02", TEXT), TEXT.replace("80", "2024-01-02"));
    assert_eq!(
        set("name", "{\"a\": [1, \"b\"]}", TEXT),
        TEXT.replace("\"x\"", "{ a = [1, \"b\"] }")
    );
    let windows = TEXT.replace('\n', "\r\n");
    assert_eq!(set("server.port", "81", &windows), windows.replace("80", "81"));
}

#[test]
fn keys_are_added_to_their_table() {
    assert_eq!(set("new", "1", TEXT), TEXT.replace("# c\n", "# c\nnew = 1\n"));
    assert_eq!(set("server.new", "1", TEXT), TEXT.replace("true }\n", "true }\nnew = 1\n"));
    assert_eq!(
        set("server.log.file", "f", TEXT),
        TEXT.replace("\"info\"\n", "\"info\"\n  file = \"f\"\n")
    );
    assert_eq!(
        set("server.tls.max", "2", TEXT),
        TEXT.replace("on = true }", "on = true, max = 2 }")
    );
    assert_eq!(set("other.deep.x", "1", TEXT), format!("{TEXT}[other.deep]\nx = 1\n"));
    assert_eq!(set("item.0.a.b", "1", TEXT), TEXT.replace("id = 1\n", "id = 1\na.b = 1\n"));
    assert_eq!(set("a", "1", ""), "a = 1\n");
    assert_eq!(set("a", "1", "[b]\nc = 1"), "a = 1\n[b]\nc = 1");
    assert_eq!(set("b.d", "1", "[b]\nc = 1"), "[b]\nc = 1\nd = 1");
    assert_eq!(set("a.c", "1", "a.b = 1\n[d]\n"), "a.b = 1\na.c = 1\n[d]\n");
    assert_eq!(set("a.x", "1", "[a.b]\nc = 1\n"), "[a.b]\nc = 1\n[a]\nx = 1\n");
    assert_eq!(set("b.x", "1", "[b] # c\n"), "[b] # c\nx = 1\n");
    assert_eq!(set("b.x", "1", "b = {}\n"), "b = { x = 1 }\n");
    assert_eq!(set("a", "1", "\u{feff}b = 1\r\n"), "\u{feff}b = 1\r\na = 1\r\n");
}

#[test]
fn keys_are_removed_with_their_line() {
    let gone = |key, text| remove(&SPEC, &[("key", key), ("value", "1")], text);
    assert_eq!(gone("server.port", TEXT), TEXT.replace("port = 80\n", ""));
    assert_eq!(gone("server.tls.min", TEXT), TEXT.replace("min = 1.2, ", ""));
    assert_eq!(gone("server.tls.on", TEXT), TEXT.replace(", on = true", ""));
    assert_eq!(gone("a.b", "a.b = 1\nc = 2\n"), "c = 2\n");
    assert_eq!(gone("b", "a = 1\nb = \"\"\"\nx\n\"\"\""), "a = 1");
    assert_eq!(gone("x.y", TEXT), TEXT);
}

#[test]
fn unsafe_edits_are_refused() {
    let given = [("key", "a.b"), ("value", "1")];
    assert_eq!(refusal(&SPEC, &given, "x = 1\na = \n"), "line 2: expected valid TOML");
    assert_eq!(
        refusal(&SPEC, &given, "a = 1\n"),
        "expected a map with the key b, found another value"
    );
    let table = refusal(&SPEC, &[("key", "server.log"), ("value", "1")], TEXT);
    assert_eq!(table, "a table is not replaced as a whole: declare its keys");
    let table = refusal(&SPEC, &[("key", "server"), ("state", "absent")], TEXT);
    assert_eq!(table, "a table is not removed as a whole: remove its keys");
}

#[test]
fn wrong_fields_are_rejected() {
    assert_eq!(problem(&SPEC, &[("key", "a"), ("value", "null")]), "TOML has no null");
    assert_eq!(problem(&SPEC, &[("key", "a")]), "expected `value`, found none");
    let resource = build(&SPEC, &[("key", "a"), ("value", "secret:12345")]).expect("valid");
    assert!(!format!("{resource:?} {:?}", resource.footprint()).contains("12345"));
}

fn any_file() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("1"),
        Just("'l'"),
        Just("\"s\" # c"),
        Just("[1,\n 2] # d"),
        Just("{ a = 1, b = 2 }"),
        Just("\"\"\"\nm\n\"\"\""),
        Just("1979-05-27"),
        Just("1.50"),
        Just("\"\u{fff80}\""),
    ];
    let pairs = || prop::collection::btree_map("[a-c]", value.clone(), 0..3);
    let tables = prop::collection::btree_map("[d-f](\\.[a-c])?", pairs(), 0..3);
    (pairs(), tables, any::<bool>(), any::<bool>()).prop_map(
        |(root, tables, is_windows, is_closed)| {
            let lines = |pairs: std::collections::BTreeMap<String, &str>| {
                pairs.iter().fold(String::new(), |text, (key, value)| {
                    text + &format!(
                        "# about
{key} = {value}
"
                    )
                })
            };
            let mut text = lines(root);
            for (name, pairs) in tables {
                text.push_str(&format!("\n# of it\n[{name}]\n{}", lines(pairs)));
            }
            let text = if is_closed { text } else { text.trim_end().to_owned() };
            if is_windows { text.replace('\n', "\r\n") } else { text }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn other_bytes_stay(text in any_file(), key in "[a-f](\\.[a-g]){0,2}", value in "[0-9]|x|\\[1\\]") {
        let given = [("key", key.as_str()), ("value", value.as_str())];
        let edited = match try_edit(&SPEC, &given, &text) {
            Ok(edited) => edited,
            Err(why) => {
                let is_known = !why.what.contains("cannot be edited") && !why.what.contains("valid TOML");
                prop_assert!(is_known || text.parse::<toml_edit::DocumentMut>().is_err(), "{:?} {:?}: {:?}", text, given, why);
                return Ok(());
            }
        };
        prop_assert_eq!(&edit(&SPEC, &given, &edited.text), &edited.text);
        for comment in ["# about", "# of it", "# c", "# d"] {
            let count = |text: &str| text.matches(comment).count();
            prop_assert!(count(&edited.text) == count(&text));
        }
        if !text.is_empty() && !text.ends_with('\n') && edited.text != text {
            prop_assert!(!edited.text.ends_with('\n') || edited.text.ends_with(&text));
        }
        if edited.from.is_empty() && !text.is_empty() {
            let back = remove(&SPEC, &given, &edited.text);
            // The header of a new table stays.
            let is_table = edited.text.matches('[').count() > text.matches('[').count() + usize::from(value == "[1]");
            // So do the braces of a new map between braces.
            let has_braces = key.matches('.').count() == 2;
            prop_assert!(back == text || is_table || has_braces, "{:?} {:?} {:?}", text, edited.text, back);
        }
    }

    #[test]
    fn no_text_panics(text in "[ab=.\\[\\]{}\"'# \n,1]{0,24}") {
        drop(try_edit(&SPEC, &[("key", "a.b"), ("value", "1")], &text));
        drop(try_edit(&SPEC, &[("key", "a"), ("state", "absent")], &text));
    }
}
