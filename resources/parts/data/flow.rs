//! Edits of entries in braces: JSON, and maps of YAML in flow style.

use super::editor::Format;
use super::nodes::{Entry, Node};
use super::scalars::Layout;
use super::splice::{Splice, indent_of, line_end, line_start, newline_of, starts_line};
use super::tree::Tree;

/// The blanks of one level where the text shows no other.
const UNIT: &str = "  ";

/// Adds an entry behind the last one of a map.
pub(super) fn insert(
    format: Format,
    text: &str,
    (map, entries): (&Node, &[Entry]),
    (key, value): (&str, &Tree),
) -> Vec<Splice> {
    let key = format.key(key);
    let newline = newline_of(text);
    let close = map.span.end.saturating_sub(1);
    let Some(last) = entries.last() else {
        let inner = map.span.start + 1..close;
        let is_blank = text.get(inner.clone()).is_some_and(|it| it.trim().is_empty());
        let indent = indent_of(text, map.span.start);
        let unit = unit_of(text);
        if format == Format::Json && is_blank && text.trim().contains('\n') {
            let layout = Layout { newline, unit, indent: &format!("{indent}{unit}") };
            let value = format.value(value, Some(layout));
            let entry = format!("{newline}{indent}{unit}{key}: {value}{newline}{indent}");
            return vec![Splice::new(inner, entry)];
        }
        let entry = format!("{key}: {}", format.value(value, None));
        return vec![if is_blank {
            Splice::new(inner, entry)
        } else {
            Splice::insert(close, entry)
        }];
    };
    let end = end_of(last);
    let line = line_end(text, end);
    let is_on_lines = starts_line(text, last.key_span.start)
        && line_start(text, last.key_span.start) > map.span.start
        && close >= line;
    if !is_on_lines {
        return vec![Splice::insert(end, format!(", {key}: {}", format.value(value, None)))];
    }
    let indent = indent_of(text, last.key_span.start);
    let layout = Layout { newline, unit: unit_of(text), indent };
    let value = format.value(value, Some(layout));
    let has_comma = comma_after(format, text, end).is_some();
    let comma = if has_comma { "," } else { "" };
    let mut all = vec![Splice::insert(line, format!("{indent}{key}: {value}{comma}{newline}"))];
    if !has_comma {
        all.push(Splice::insert(end, ","));
    }
    all
}

/// Removes an entry of a map; none if a comment stands in the way.
pub(crate) fn remove(
    format: Format,
    text: &str,
    (map, entries): (&Node, &[Entry]),
    at: usize,
) -> Option<Vec<Splice>> {
    let entry = entries.get(at)?;
    let (start, end) = (entry.key_span.start, end_of(entry));
    let close = map.span.end.saturating_sub(1);
    let line = line_end(text, end);
    let rest = text.get(end..line)?.trim_start();
    let (has_comma, rest) = match rest.strip_prefix(',') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, rest),
    };
    let previous = at.checked_sub(1).and_then(|at| entries.get(at));
    let next = entries.get(at + 1);
    let is_on_lines = starts_line(text, start)
        && line_start(text, start) > map.span.start
        && close >= line
        && (rest.is_empty() || format.comments().iter().any(|mark| rest.starts_with(mark)));
    if is_on_lines && (has_comma || next.is_none()) {
        let mut all = vec![Splice::remove(line_start(text, start)..line)];
        if !has_comma && let Some(previous) = previous {
            let comma = comma_after(format, text, end_of(previous))?;
            all.push(Splice::remove(comma..comma + 1));
        }
        return Some(all);
    }
    let is_comma =
        |range: std::ops::Range<usize>| text.get(range).is_some_and(|it| it.trim() == ",");
    let range = match (previous, next) {
        (_, Some(next)) if is_comma(end..next.key_span.start) => start..next.key_span.start,
        (Some(previous), _) if is_comma(end_of(previous)..start) => end_of(previous)..end,
        (None, None) if !has_comma => start..end,
        _ => return None,
    };
    Some(vec![Splice::remove(range)])
}

/// Returns the end of an entry.
fn end_of(entry: &Entry) -> usize {
    entry.value.span.end.max(entry.key_span.end)
}

/// Returns the position of the comma behind a value, with blanks and comments between them.
fn comma_after(format: Format, text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = text.get(at..)?;
        let blank = rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        at += blank;
        if rest.starts_with("/*") && format == Format::Json {
            at += rest.find("*/")? + 2;
        } else if format.comments().iter().any(|mark| rest.starts_with(mark)) {
            at = line_end(text, at);
        } else {
            return rest.starts_with(',').then_some(at);
        }
    }
}

/// Returns the blanks of one level: those of the first line with any.
pub(super) fn unit_of(text: &str) -> &str {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .find_map(|line| {
            let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
            let is_comment = line.trim_start().starts_with('*');
            line.get(..blanks).filter(|it| !it.is_empty() && it.len() <= 8 && !is_comment)
        })
        .unwrap_or(UNIT)
}
