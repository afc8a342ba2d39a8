//! Parts of generated graph files, for the tests of the reader and of the language.

use proptest::prelude::*;

/// Returns a scalar of YAML in one of its forms, right or wrong.
pub(crate) fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,6}",
        "(0644|644|1\\.10|yes|NO|true|false|null|~|-1|0|\\.inf|1e3|12:30|)",
        "\"[a-z é€:#\\\\n]{0,8}\"",
        "'[a-z é€:#\"]{0,8}'",
        "[a-zé€][a-z é€.:/]{0,12}",
        "\\|\n {12}[a-z#: é€]{1,9}\n {12,13}[a-z]{1,5}",
        ">-\n {12}[a-z]{1,9}\n\n {12}[a-z]{1,5}",
    ]
}

/// Returns an entry of a resource: a field of the kinds of the tests with values of any form.
pub(crate) fn entry() -> impl Strategy<Value = String> {
    let key = "(path|content|state|mode|owner|force|size|ratio|cmd|args|env|meta|after|notify)";
    prop_oneof![
        6 => (key, scalar()).prop_map(|(key, value)| format!("{key}: {value}")),
        1 => (key, scalar(), scalar()).prop_map(|(key, a, b)| format!("{key}: [{a}, {b}]")),
        1 => (key, scalar(), scalar()).prop_map(|(key, a, b)| format!("{key}:\n      - {a}\n      - {b}")),
        1 => (key, scalar()).prop_map(|(key, a)| format!("{key}:\n      retry: {a}\n      sema: [{a}]")),
        1 => (key, scalar()).prop_map(|(key, a)| format!("{key}: {{A: {a}, B: x}}")),
    ]
}

/// Replaces, removes and inserts characters: each change has a place, a new text and a number of removed characters.
pub(crate) fn edited(text: &str, changes: Vec<(prop::sample::Index, String, usize)>) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for (at, put, remove) in changes {
        let at = at.index(text.len() + 1);
        let end = (at + remove).min(text.len());
        text.splice(at..end, put.chars());
    }
    text.into_iter().collect()
}
