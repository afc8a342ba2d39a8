//! Changes of a text at byte positions.

use std::ops::Range;

/// The replacement of some bytes by a text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) at: Range<usize>,
    pub(crate) text: String,
}

impl Splice {
    /// Makes the replacement of a range.
    pub(crate) fn new(at: Range<usize>, text: impl Into<String>) -> Self {
        Self { at, text: text.into() }
    }

    /// Makes an insertion.
    pub(crate) fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::new(at..at, text)
    }

    /// Makes a removal.
    pub(crate) fn remove(at: Range<usize>) -> Self {
        Self::new(at, "")
    }
}

/// Applies changes that do not overlap; none if a position is wrong.
pub(crate) fn apply(text: &str, mut splices: Vec<Splice>) -> Option<String> {
    splices.sort_by_key(|splice| (splice.at.start, splice.at.end));
    let (mut all, mut done) = (String::with_capacity(text.len() + 64), 0);
    for splice in splices {
        all.push_str(text.get(done..splice.at.start)?);
        all.push_str(&splice.text);
        done = splice.at.end;
    }
    all.push_str(text.get(done..)?);
    Some(all)
}

/// Returns the start of the line that contains a position.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// Returns the start of the next line, or the end of the text.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| at + newline + 1)
}

/// Returns the line end that the text uses.
pub(crate) fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text.get(..at).is_some_and(|line| line.ends_with('\r')) => "\r\n",
        _ => "\n",
    }
}

/// Returns the blanks at the start of the line that contains a position.
pub(crate) fn indent_of(text: &str, at: usize) -> &str {
    let line = text.get(line_start(text, at)..).unwrap_or_default();
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..blanks).unwrap_or_default()
}

/// Returns true if nothing but blanks stands before a position in its line.
pub(crate) fn starts_line(text: &str, at: usize) -> bool {
    text.get(line_start(text, at)..at)
        .is_some_and(|before| before.chars().all(|it| matches!(it, ' ' | '\t')))
}

/// Makes the insertion of whole lines, each with its line end. The text before a line of the end without a line end
/// gets one, and the new last line then has none.
pub(crate) fn insert_lines(text: &str, at: usize, lines: &str) -> Splice {
    let is_open = at == text.len() && !text.is_empty() && !text.ends_with('\n');
    if !is_open {
        return Splice::insert(at, lines);
    }
    let newline = newline_of(text);
    let lines = lines.strip_suffix(newline).unwrap_or(lines);
    Splice::insert(at, format!("{newline}{lines}"))
}

/// Makes the removal of whole lines. A missing line end of the last line stays missing.
pub(crate) fn remove_lines(text: &str, range: Range<usize>) -> Splice {
    let is_open = range.end == text.len() && !text.ends_with('\n');
    let before = text.get(..range.start).unwrap_or_default();
    if !is_open || before.is_empty() {
        return Splice::remove(range);
    }
    let before = before.strip_suffix('\n').unwrap_or(before);
    Splice::remove(before.strip_suffix('\r').unwrap_or(before).len()..range.end)
}
