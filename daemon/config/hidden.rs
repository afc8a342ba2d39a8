//! Values of a file that are never shown because they may be secret. They are found in the text itself, which may not
//! be valid YAML.

use crate::nearest_name::nearest;
use std::ops::Range;

/// Keys whose values may be secret, in graphs and in settings. A misspelt key hides its value too.
const SECRET: [&str; 8] =
    ["content", "env", "stdin", "debconf", "headers", "url", "secret", "secrets"];

/// Returns true if the value at this key may be secret.
pub(super) fn is_secret_key(key: &str) -> bool {
    key != "comment" && nearest(key, SECRET).is_some()
}

/// Returns the ranges of the values of such keys, in order. Unclear text is hidden: an unclosed quote hides the rest.
pub(super) fn hidden(text: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let (mut line_start, mut seen) = (0, 0);
    for (colon, _) in text.match_indices(':') {
        let newline = text.get(seen..colon).unwrap_or_default().rfind('\n');
        line_start = newline.map_or(line_start, |at| seen + at + 1);
        seen = colon;
        if ranges.last().is_some_and(|range| colon < range.end) {
            continue;
        }
        let line = text.get(line_start..colon).unwrap_or_default();
        let Some(key) = key_at_end(line) else { continue };
        let rest = text.get(colon + 1..).unwrap_or_default();
        if is_secret_key(key.name) && (key.is_quoted || ends_token(rest)) {
            let skipped = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            let start = colon + 1 + skipped;
            ranges.push(start..value_end(text, start, &key));
        }
    }
    ranges
}

/// The key of an entry.
#[derive(Debug)]
struct Key<'t> {
    name: &'t str,
    is_quoted: bool,
    /// The column, if only blanks and dashes precede the key: the entry is then part of a block.
    column: Option<usize>,
}

/// Returns the key at the end of a line's beginning.
fn key_at_end(line: &str) -> Option<Key<'_>> {
    let line = line.trim_end();
    let quote = line.chars().last().filter(|last| matches!(last, '"' | '\''));
    let inner = quote.map_or(line, |_| line.get(..line.len() - 1).unwrap_or_default());
    let starts = |c: char| match quote {
        Some(quote) => c == quote,
        None => c.is_whitespace() || "{[,\"'".contains(c),
    };
    let at = inner.rfind(starts).map_or(0, |at| at + 1);
    let name = inner.get(at..)?;
    let lead = line.get(..at)?.trim_end_matches(['"', '\'']);
    let is_first = lead.bytes().all(|byte| b" \t-?".contains(&byte));
    let column = is_first.then_some(lead.len());
    (!name.is_empty()).then_some(Key { name, is_quoted: quote.is_some(), column })
}

fn ends_token(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r'])
}

/// Returns the end of a value: the end of its quotes or brackets and of the rest of their line, or the last line that
/// is indented deeper than the key.
fn value_end(text: &str, start: usize, key: &Key<'_>) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    if rest.starts_with(['"', '\'', '{', '[']) {
        let end = start + closed(rest);
        return end + rest_of_line(text.get(end..).unwrap_or_default(), key.column.is_none());
    }
    match key.column {
        None => start + rest.find([',', '}', ']']).unwrap_or(rest.len()),
        Some(column) => start + block(rest, column),
    }
}

/// Returns the length of a quoted text, or of a text in brackets.
fn closed(text: &str) -> usize {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices() {
        match quote {
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => continue,
            None => match c {
                '"' | '\'' => quote = Some(c),
                '{' | '[' => depth += 1,
                '}' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            },
        }
        if quote.is_none() && depth == 0 {
            return at + c.len_utf8();
        }
    }
    text.len()
}

fn rest_of_line(text: &str, in_flow: bool) -> usize {
    let ends = |c: char| c == '\n' || (in_flow && matches!(c, ',' | '}' | ']'));
    text.find(ends).unwrap_or(text.len())
}

/// Returns the length of the rest of the line and of all following lines that belong to the entry of a block at a
/// column.
fn block(rest: &str, column: usize) -> usize {
    let mut end = rest.find('\n').unwrap_or(rest.len());
    let is_empty = rest.get(..end).unwrap_or_default().trim().is_empty();
    while let Some(line) = rest.get(end + 1..).filter(|rest| !rest.is_empty()) {
        let length = line.find('\n').unwrap_or(line.len());
        let line = line.get(..length).unwrap_or_default();
        let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
        let is_item = is_empty && indentation == column && line.trim_start().starts_with("- ");
        if !(line.trim().is_empty() || indentation > column || is_item) {
            break;
        }
        end += 1 + length;
    }
    end.min(rest.len())
}

/// Parts of names whose values are secrets.
const SECRET_NAMES: [&str; 7] =
    ["password", "passwd", "secret", "token", "api_key", "apikey", "private_key"];

/// Returns true if a variable or field of this name probably holds a secret.
pub(in crate::config) fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name == *part || name.ends_with(&format!("_{part}")))
}

#[cfg(test)]
mod tests {
    use super::hidden;

    fn shown(text: &str) -> String {
        let mut out = text.to_owned();
        for range in hidden(text).into_iter().rev() {
            out.replace_range(range, "***");
        }
        out
    }

    /// M4: a value is hidden in each way of writing it, and its neighbours are not.
    #[test]
    fn values_are_hidden_in_each_form() {
        for (text, expected) in [
            ("- {content: \"S, }\", mod: 1}", "- {content: ***, mod: 1}"),
            ("- {env: {A: S, B: 'it''s'}, x: 1}", "- {env: ***, x: 1}"),
            ("- {name: a, stdin: S, x: 1}", "- {name: a, stdin: ***, x: 1}"),
            ("{\"content\":\"S\", \"x\": 1}", "{\"content\":***, \"x\": 1}"),
            ("{content: \"S\nS\",\nx: 1}", "{content: ***,\nx: 1}"),
            ("- content: S: # S\n  mod: 1\n", "- content: ***\n  mod: 1\n"),
            ("  content: |\n    S\n\n    S\n  mod: 1\n", "  content: ***\n  mod: 1\n"),
            ("  env:\n    A: S\n  mod: 1\n", "  env:***\n  mod: 1\n"),
            ("  debconf:\n  - S\n  mod: 1\n", "  debconf:***\n  mod: 1\n"),
            ("  contnet: S\n", "  contnet: ***\n"),
            ("  content: \"S\" S\n  mod: 1\n", "  content: ***\n  mod: 1\n"),
            ("  content: \"S\n  mod: 1\n", "  content: ***"),
            ("comment: x\n", "comment: x\n"),
            ("  path: /x:y\n  mode: 0600\n", "  path: /x:y\n  mode: 0600\n"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
