//! Texts of values: a declared text becomes a value, and a value becomes JSON or YAML on one line.

use super::tree::{Tree, is_json_number};

/// Returns the value of a plain scalar of YAML. A scalar that readers of YAML 1.1 and 1.2 read in different ways
/// is [`Tree::Other`].
pub(crate) fn resolve_plain(text: &str) -> Tree {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Tree::Null,
        "true" | "True" | "TRUE" => return Tree::Bool(true),
        "false" | "False" | "FALSE" => return Tree::Bool(false),
        _ => {}
    }
    if is_json_number(text) {
        return Tree::Number(text.to_owned());
    }
    let lower = text.to_ascii_lowercase();
    let is_word = matches!(lower.as_str(), "yes" | "no" | "on" | "off" | "y" | "n" | "=" | "<<");
    if is_word || is_number(&lower) || is_date(&lower) {
        return Tree::Other(text.to_owned());
    }
    Tree::Text(text.to_owned())
}

/// Returns true for a number of YAML 1.1 or 1.2, in lower case: hexadecimal, octal, with signs, `_` or `:`.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(text, ".inf" | ".nan") {
        return true;
    }
    let all = |text: &str, is: fn(u8) -> bool| {
        !text.is_empty() && text.bytes().all(|it| it == b'_' || is(it))
    };
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return !digits.is_empty() && digits.chars().all(|it| it == '_' || it.is_digit(radix));
        }
    }
    let mut parts = text.split(':');
    let is_sexagesimal = text.contains(':')
        && parts.next().is_some_and(|it| all(it, |it| it.is_ascii_digit()))
        && parts.all(|it| it.len() <= 2 && all(it, |it| it.is_ascii_digit()));
    let number = text.split_once('e').map_or(text, |(number, exponent)| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if all(digits, |it| it.is_ascii_digit()) { number } else { "" }
    });
    let mut parts = number.splitn(2, '.');
    let (whole, fraction) = (parts.next().unwrap_or_default(), parts.next());
    let is_part = |it: &str| it.is_empty() || all(it, |it| it.is_ascii_digit());
    let has_digit = number.bytes().any(|it| it.is_ascii_digit());
    is_sexagesimal || (has_digit && is_part(whole) && fraction.is_none_or(is_part))
}

/// Returns true for a text that starts like a date of YAML 1.1.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let is_number = |it: Option<&str>, length: std::ops::RangeInclusive<usize>| {
        it.is_some_and(|it| length.contains(&it.len()) && it.bytes().all(|it| it.is_ascii_digit()))
    };
    is_number(parts.next(), 4..=4)
        && is_number(parts.next(), 1..=2)
        && parts.next().is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()))
}

/// Returns the value that a declared text stands for: null, true, false, a number, or JSON in brackets or quotes.
/// Any other text is itself.
///
/// # Errors
///
/// Fails if the text starts like a list, a map or a quoted text, and is none.
pub(crate) fn parse_value(text: &str) -> Result<Tree, String> {
    let trimmed = text.trim();
    match trimmed {
        "null" => return Ok(Tree::Null),
        "true" => return Ok(Tree::Bool(true)),
        "false" => return Ok(Tree::Bool(false)),
        _ if is_json_number(trimmed) => return Ok(Tree::Number(trimmed.to_owned())),
        _ if !trimmed.starts_with(['{', '[', '"']) => return Ok(Tree::Text(text.to_owned())),
        _ => {}
    }
    parse_tree(trimmed)
}

/// Returns the value of a YAML document, which may be JSON.
///
/// # Errors
///
/// Fails if the text is no YAML, or has values without a meaning in other formats.
pub(crate) fn parse_tree(text: &str) -> Result<Tree, String> {
    let node = super::read_yaml::read(text)?.ok_or("expected a value, found none")?;
    let tree = node.to_tree();
    if has_other(&tree) {
        return Err("write dates, hexadecimal numbers, yes and no in quotes; no aliases".into());
    }
    Ok(tree)
}

fn has_other(tree: &Tree) -> bool {
    match tree {
        Tree::Other(_) => true,
        Tree::List(items) => items.iter().any(has_other),
        Tree::Map(entries) => entries.iter().any(|(_, value)| has_other(value)),
        _ => false,
    }
}

/// Returns a text in double quotes, as JSON and YAML read it.
pub(crate) fn quoted(text: &str) -> String {
    let mut all = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => all.push_str("\\\""),
            '\\' => all.push_str("\\\\"),
            '\n' => all.push_str("\\n"),
            '\r' => all.push_str("\\r"),
            '\t' => all.push_str("\\t"),
            letter
                if letter.is_control()
                    || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}') =>
            {
                all.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => all.push(letter),
        }
    }
    all.push('"');
    all
}

/// The lines of a JSON value that takes several of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout<'a> {
    pub(crate) newline: &'a str,
    /// The blanks of one level.
    pub(crate) unit: &'a str,
    /// The blanks of the line in which the value starts.
    pub(crate) indent: &'a str,
}

/// Writes a value as JSON, on several lines if there is a layout.
pub(crate) fn to_json(tree: &Tree, layout: Option<Layout<'_>>) -> String {
    let indent = layout.map(|it| format!("{}{}", it.indent, it.unit)).unwrap_or_default();
    let inner = layout.map(|it| Layout { indent: &indent, ..it });
    let joined = |items: Vec<String>, (open, close): (char, char)| match layout {
        _ if items.is_empty() => format!("{open}{close}"),
        None => format!("{open}{}{close}", items.join(", ")),
        Some(Layout { newline, indent: outer, .. }) => {
            let items = items.join(&format!(",{newline}{indent}"));
            format!("{open}{newline}{indent}{items}{newline}{outer}{close}")
        }
    };
    match tree {
        Tree::Null => "null".to_owned(),
        Tree::Bool(truth) => truth.to_string(),
        Tree::Number(text) | Tree::Other(text) => text.clone(),
        Tree::Text(text) => quoted(text),
        Tree::List(items) => {
            joined(items.iter().map(|it| to_json(it, inner)).collect(), ('[', ']'))
        }
        Tree::Map(entries) => {
            let entry =
                |(key, it): &(String, Tree)| format!("{}: {}", quoted(key), to_json(it, inner));
            joined(entries.iter().map(entry).collect(), ('{', '}'))
        }
    }
}

/// Writes a value as YAML on one line; a text gets the quote of the text before, if it has one.
pub(crate) fn to_yaml(tree: &Tree, quote: Option<char>) -> String {
    match tree {
        Tree::Text(text) => yaml_text(text, quote),
        Tree::List(items) => {
            let items: Vec<String> = items.iter().map(|it| to_yaml(it, None)).collect();
            format!("[{}]", items.join(", "))
        }
        Tree::Map(entries) => {
            let entry = |(key, it): &(String, Tree)| {
                format!("{}: {}", yaml_text(key, None), to_yaml(it, None))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        other => to_json(other, None),
    }
}

/// Writes a text as YAML: plain where every reader reads the same text, else in quotes.
pub(crate) fn yaml_text(text: &str, quote: Option<char>) -> String {
    let is_safe = |it: char| {
        it.is_alphanumeric()
            || matches!(
                it,
                '_' | '-'
                    | '.'
                    | '/'
                    | '+'
                    | ' '
                    | '@'
                    | '('
                    | ')'
                    | '='
                    | '~'
                    | '$'
                    | ';'
                    | '<'
                    | '>'
                    | '^'
                    | '\''
                    | '"'
                    | '\\'
            )
    };
    let is_plain = text.chars().all(is_safe)
        && text.starts_with(|it: char| it.is_alphanumeric() || matches!(it, '/' | '_' | '.' | '$'))
        && text.trim() == text
        && matches!(resolve_plain(text), Tree::Text(_));
    let has_control = text
        .chars()
        .any(|it| it.is_control() || matches!(it, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{85}'));
    match quote {
        Some('"') => quoted(text),
        _ if has_control => quoted(text),
        None if is_plain => text.to_owned(),
        _ => format!("'{}'", text.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_tree, parse_value, resolve_plain, to_json, to_yaml};
    use crate::parts::data::tree::Tree;
    use proptest::prelude::*;

    fn any_tree() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![
            Just(Tree::Null),
            any::<bool>().prop_map(Tree::Bool),
            any::<i32>().prop_map(|it| Tree::Number(it.to_string())),
            "[ -~äö\n\t\u{85}\u{2028}]{0,12}".prop_map(Tree::Text),
            prop_oneof![Just("yes"), Just("1:30"), Just("2024-01-02"), Just("0x1f"), Just("~")]
                .prop_map(|it| Tree::Text(it.to_owned())),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            let key = "[a-z:# ]{1,5}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::List),
                prop::collection::btree_map(key, inner, 0..4)
                    .prop_map(|map| Tree::Map(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn written_values_are_read_again(tree in any_tree()) {
            for text in [to_json(&tree, None), to_yaml(&tree, None)] {
                let again = parse_tree(&text);
                prop_assert!(again.as_ref().is_ok_and(|it| it.is_same(&tree)), "{}", text);
            }
        }
    }

    #[test]
    fn declared_texts_are_values() {
        assert_eq!(parse_value("8080"), Ok(Tree::Number("8080".into())));
        assert_eq!(parse_value("\"8080\""), Ok(Tree::Text("8080".into())));
        assert_eq!(parse_value("hello: world"), Ok(Tree::Text("hello: world".into())));
        assert_eq!(parse_value("[1, a]").map(|it| to_json(&it, None)), Ok("[1, \"a\"]".into()));
        assert!(parse_value("{broken").is_err());
        assert!(parse_value("[yes]").is_err());
    }

    #[test]
    fn plain_scalars_have_one_meaning_or_none() {
        assert!(matches!(resolve_plain("10.0.0.1"), Tree::Text(_)));
        assert!(matches!(resolve_plain("1.2.3-rc1"), Tree::Text(_)));
        for other in ["yes", "Off", "0x1F", "1_000", "12:30:45", "2024-01-02", "+1", ".5", ".inf"] {
            assert!(matches!(resolve_plain(other), Tree::Other(_)), "{other}");
        }
    }
}
