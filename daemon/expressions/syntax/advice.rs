//! Advice for messages: dotted names as an expression writes them, and the functions of other languages.

use crate::expressions::functions::table::function_names;
use crate::expressions::syntax::node::{Node, NodeKind};
use crate::expressions::syntax::parse::shortened;
use crate::nearest_name::nearest;

/// Writes a dotted name as an expression does: a key that is no name stands in brackets.
fn written_name(path: &[impl AsRef<str>]) -> String {
    let is_name = |key: &str| {
        key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut text = String::new();
    for key in path.iter().map(AsRef::as_ref) {
        match (text.is_empty(), is_name(key)) {
            (true, _) => text.push_str(key),
            (false, true) => text.push_str(&format!(".{key}")),
            (false, false) => text.push_str(&format!("[\"{key}\"]")),
        }
    }
    text
}

/// Writes a dotted name for a message.
pub(in crate::expressions) fn shown_name(path: &[impl AsRef<str>]) -> String {
    shortened(&written_name(path)).replace("\\\"", "\"")
}

/// The functions of other languages, each with the one here, as it is written; `{}` is the value.
pub(super) const FOREIGN_FUNCTIONS: &[(&str, &str)] = &[
    ("len", "{} | length"),
    ("count", "{} | length"),
    ("size", "{} | length"),
    ("upcase", "{} | upper"),
    ("downcase", "{} | lower"),
    ("strip", "{} | trim"),
    ("contains", "\"part\" in {}"),
    ("includes", "\"part\" in {}"),
    ("has_key", "\"key\" in {}"),
    ("defined", "\"key\" in {}, or {} | default(VALUE)"),
    ("d", "{} | default(VALUE)"),
    ("tojson", "{} | to_json"),
    ("match", "{} | matches(\"pattern\")"),
    ("search", "{} | matches(\"pattern\")"),
    ("regex_match", "{} | matches(\"pattern\")"),
    ("regex_search", "{} | matches(\"pattern\")"),
    ("regex_replace", "{} | replace(\"old\", \"new\")"),
    ("version", "{} | version_ge(\"1.2\")"),
    ("version_compare", "{} | version_ge(\"1.2\")"),
    ("versioncmp", "{} | version_ge(\"1.2\")"),
    ("ipaddr", "{} | ip_in(\"10.0.0.0/8\")"),
    ("selectattr", "{} | select(\"key\", VALUE)"),
    ("range", "[\"1\", \"2\", \"3\"]"),
    ("float", "{} * 1.0"),
    ("str", "{} | string"),
];

/// Returns the advice about an unknown function.
pub(super) fn hint_for_function(name: &str, arguments: &[Node]) -> String {
    if let Some((_, here)) = FOREIGN_FUNCTIONS.iter().find(|(foreign, _)| *foreign == name) {
        let value = match arguments.first().map(|node| &node.kind) {
            Some(NodeKind::Path(path)) => shown_name(path),
            _ => "x".to_owned(),
        };
        return format!("write `{}`", here.replace("{}", &value));
    }
    if ["lookup", "env", "getenv", "file", "readfile", "pipe", "query"].contains(&name) {
        let here = "an expression reads no file, command or environment";
        return format!("{here}: use vars_files, --var NAME=VALUE, or a probe");
    }
    if ["now", "date", "time", "strftime", "random", "uuid", "timestamp"].contains(&name) {
        return "an expression has no time and no chance: use a probe".to_owned();
    }
    match nearest(name, function_names()) {
        Some(near) => format!("nearest: `{near}`"),
        None => "`steadfast explain expressions` lists all".to_owned(),
    }
}
