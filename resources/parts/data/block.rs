//! Edits of maps in block style: YAML on lines.

use super::flow::unit_of;
use super::nodes::{Entry, Node, What};
use super::scalars::{to_yaml, yaml_text};
use super::splice::{
    Splice, indent_of, insert_lines, line_end, line_start, newline_of, remove_lines, starts_line,
};
use super::tree::Tree;

/// Returns the position behind the colon of an entry; none if there is no colon right behind the key.
pub(super) fn colon_end(text: &str, entry: &Entry) -> Option<usize> {
    let rest = text.get(entry.key_span.end..)?;
    let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let at = entry.key_span.end + blank;
    text.get(at..)?.starts_with(':').then_some(at + 1)
}

/// Returns the start of the line behind an entry.
fn lines_end(text: &str, entry: &Entry) -> Option<usize> {
    let end =
        if entry.value.is_unwritten() { colon_end(text, entry)? } else { entry.value.span.end };
    let is_at_start = end > 0 && text.get(..end)?.ends_with('\n');
    Some(if is_at_start { end } else { line_end(text, end) })
}

/// Returns the blanks before the keys of a map; none if the first key stands behind anything but blanks and the
/// dashes of a list.
fn column_of(text: &str, entries: &[Entry]) -> Option<String> {
    let start = entries.first()?.key_span.start;
    let before = text.get(line_start(text, start)..start)?;
    before.chars().all(|it| matches!(it, ' ' | '-')).then(|| " ".repeat(before.len()))
}

/// Writes an entry on lines, each with its line end.
fn entry_lines((key, value): (&str, &Tree), indent: &str, style: (&str, &str)) -> String {
    let (unit, newline) = style;
    let key = yaml_text(key, None);
    match collection_lines(value, &format!("{indent}{unit}"), style) {
        Some(lines) => format!("{indent}{key}:{newline}{lines}"),
        None => format!("{indent}{key}: {}{newline}", to_yaml(value, None)),
    }
}

/// Writes a map or list on lines; none for an empty one and for a scalar.
fn collection_lines(value: &Tree, indent: &str, style: (&str, &str)) -> Option<String> {
    match value {
        Tree::Map(entries) if !entries.is_empty() => {
            let lines = entries.iter().map(|(key, it)| entry_lines((key, it), indent, style));
            Some(lines.collect())
        }
        Tree::List(items) if !items.is_empty() => {
            let item = |it: &Tree| format!("{indent}- {}{}", to_yaml(it, None), style.1);
            Some(items.iter().map(item).collect())
        }
        _ => None,
    }
}

/// Returns the blanks of one level. YAML does not allow tabs.
fn unit(text: &str) -> &str {
    let unit = unit_of(text);
    if unit.contains('\t') { "  " } else { unit }
}

/// Adds an entry behind the last one of a map; none if the map is not on lines of its own.
pub(super) fn insert(text: &str, entries: &[Entry], entry: (&str, &Tree)) -> Option<Vec<Splice>> {
    let indent = column_of(text, entries)?;
    let at = lines_end(text, entries.last()?)?;
    let lines = entry_lines(entry, &indent, (unit(text), newline_of(text)));
    Some(vec![insert_lines(text, at, &lines)])
}

/// Makes the first entries of a text without values.
pub(super) fn begin(text: &str, value: &Tree) -> Option<Vec<Splice>> {
    let lines = collection_lines(value, "", ("  ", newline_of(text)))?;
    Some(vec![insert_lines(text, text.len(), &lines)])
}

/// Replaces the value of an entry of a map in block style.
pub(super) fn replace(
    text: &str,
    entries: &[Entry],
    entry: &Entry,
    value: &Tree,
) -> Option<Vec<Splice>> {
    let colon = colon_end(text, entry)?;
    let style = (unit(text), newline_of(text));
    let old = &entry.value;
    if old.is_inline() && !old.is_unwritten() {
        return Some(vec![replace_inline(text, old, value)]);
    }
    let column = column_of(text, entries)?;
    let old_indent = indent_of(text, old.span.start);
    // The items of a list may stand in the column of the key, and those of a map may not.
    let indent = if old.is_unwritten() || old_indent.len() <= column.len() {
        format!("{column}{}", style.0)
    } else {
        old_indent.to_owned()
    };
    // The line of the key stays, with its comment.
    let line = line_end(text, colon);
    let end = if old.is_unwritten() { line } else { lines_end(text, entry)? };
    if !old.is_unwritten() && old.span.start < line {
        return None;
    }
    match collection_lines(value, &indent, style) {
        Some(lines) if line == text.len() && !text.ends_with('\n') => {
            Some(vec![insert_lines(text, line, &lines)])
        }
        Some(lines) if end == text.len() && !text.ends_with('\n') => {
            let lines = lines.strip_suffix(style.1).unwrap_or(&lines);
            Some(vec![Splice::new(line..end, lines)])
        }
        Some(lines) => Some(vec![Splice::new(line..end, lines)]),
        None => {
            let mut all = vec![Splice::insert(colon, format!(" {}", to_yaml(value, None)))];
            if line < end {
                all.push(remove_lines(text, line..end));
            }
            Some(all)
        }
    }
}

/// Replaces a value that stands on the line of its key or dash.
pub(super) fn replace_inline(text: &str, old: &Node, value: &Tree) -> Splice {
    let raw = text.get(old.span.clone()).unwrap_or_default();
    let quote = raw
        .chars()
        .next()
        .filter(|it| matches!(it, '"' | '\'') && matches!(old.what, What::Scalar(Tree::Text(_))));
    // A text on lines of its own ends with line ends, which stay.
    let end = raw.get(raw.trim_end().len()..).unwrap_or_default();
    Splice::new(old.span.clone(), format!("{}{end}", to_yaml(value, quote)))
}

/// Removes an entry that is not the only one of its map; none if that is not safe.
pub(super) fn remove(text: &str, entries: &[Entry], at: usize) -> Option<Vec<Splice>> {
    let entry = entries.get(at)?;
    let start = entry.key_span.start;
    let end = lines_end(text, entry)?;
    if starts_line(text, start) {
        return Some(vec![remove_lines(text, line_start(text, start)..end)]);
    }
    // The first entry of a list's item: the next one takes its place behind the dash.
    let next = entries.get(at + 1)?.key_span.start;
    let is_blank = text.get(end..next)?.chars().all(|it| it == ' ');
    is_blank.then(|| vec![Splice::remove(start..next)])
}
