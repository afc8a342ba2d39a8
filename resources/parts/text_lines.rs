//! Lines of a text with their line ends: an edit keeps every other byte, the style of the line ends, and a missing
//! final line end.

use crate::failure::Failure;
use crate::fields::field_values::Invalid;
use regex_lite::{Regex, RegexBuilder};
use std::borrow::Cow;

/// The mark that some programs write before a text.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The size limit in bytes of a compiled regular expression.
const PATTERN_LIMIT: usize = 1 << 20;

/// The lines of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextLines<'t> {
    mark: &'t str,
    lines: Vec<Line<'t>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line<'t> {
    text: Cow<'t, str>,
    /// `\n`, `\r\n`, or nothing at the end of the text.
    end: &'t str,
}

/// Separates a byte order mark from the text behind it; the mark is empty if there is none.
pub(crate) fn split_mark(text: &str) -> (&'static str, &str) {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (BYTE_ORDER_MARK, rest),
        None => ("", text),
    }
}

impl<'t> TextLines<'t> {
    /// Splits a text.
    pub(crate) fn new(text: &'t str) -> Self {
        let (mark, text) = split_mark(text);
        let line = |whole: &'t str| {
            let (text, end) = match (whole.strip_suffix("\r\n"), whole.strip_suffix('\n')) {
                (Some(text), _) => (text, "\r\n"),
                (None, Some(text)) => (text, "\n"),
                (None, None) => (whole, ""),
            };
            Line { text: Cow::Borrowed(text), end }
        };
        Self { mark, lines: text.split_inclusive('\n').map(line).collect() }
    }

    /// Returns the number of lines.
    pub(crate) fn count(&self) -> usize {
        self.lines.len()
    }

    /// Returns a line without its end; an empty text behind the last line.
    pub(crate) fn line(&self, at: usize) -> &str {
        self.lines.get(at).map_or("", |line| &line.text)
    }

    /// Returns all lines without their ends.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.lines.iter().map(|line| line.text.as_ref())
    }

    /// Replaces the text of one line; its end stays.
    pub(crate) fn replace(&mut self, at: usize, text: Cow<'t, str>) {
        if let Some(line) = self.lines.get_mut(at) {
            line.text = text;
        }
    }

    /// Inserts lines before the line `at`, with the line end of their neighbours. A missing final line end stays
    /// missing.
    pub(crate) fn insert(&mut self, at: usize, texts: impl IntoIterator<Item = Cow<'t, str>>) {
        let at = at.min(self.lines.len());
        let end = self.end_at(at);
        let new: Vec<Line<'t>> = texts.into_iter().map(|text| Line { text, end }).collect();
        let is_open =
            at == self.lines.len() && self.lines.last().is_some_and(|it| it.end.is_empty());
        if is_open
            && !new.is_empty()
            && let Some(last) = self.lines.last_mut()
        {
            last.end = end;
        }
        self.lines.splice(at..at, new);
        if is_open && let Some(last) = self.lines.last_mut() {
            last.end = "";
        }
    }

    /// Removes lines. A missing final line end stays missing.
    pub(crate) fn remove(&mut self, range: std::ops::Range<usize>) {
        let is_open = self.lines.last().is_some_and(|it| it.end.is_empty());
        let (start, end) = (range.start.min(self.lines.len()), range.end.min(self.lines.len()));
        if start < end {
            self.lines.drain(start..end);
        }
        if is_open && let Some(last) = self.lines.last_mut() {
            last.end = "";
        }
    }

    /// Removes the lines at sorted positions, in one pass.
    pub(crate) fn remove_all(&mut self, positions: &[usize]) {
        let mut next = positions.iter().copied().peekable();
        let mut at = 0;
        self.retain(|_| {
            let is_removed = next.next_if_eq(&at).is_some();
            at += 1;
            !is_removed
        });
    }

    /// Removes every line that a condition selects, and returns true if there was one.
    pub(crate) fn remove_matching(&mut self, is_removed: impl Fn(&str) -> bool) -> bool {
        self.retain(|line| !is_removed(line))
    }

    /// Keeps the lines that a condition selects, and returns true if one was removed.
    fn retain(&mut self, mut is_kept: impl FnMut(&str) -> bool) -> bool {
        let before = self.lines.len();
        let is_open = self.lines.last().is_some_and(|it| it.end.is_empty());
        self.lines.retain(|line| is_kept(&line.text));
        if is_open && let Some(last) = self.lines.last_mut() {
            last.end = "";
        }
        self.lines.len() < before
    }

    /// Returns the line end of new lines at a position: that of the line before, of the line after, or of the first
    /// line that has one.
    fn end_at(&self, at: usize) -> &'t str {
        let near = at.checked_sub(1).into_iter().chain([at]);
        let ends = near.filter_map(|at| self.lines.get(at)).chain(self.lines.first());
        ends.map(|line| line.end).find(|end| !end.is_empty()).unwrap_or("\n")
    }

    /// Returns the whole text.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::from(self.mark);
        for line in &self.lines {
            text.push_str(&line.text);
            text.push_str(line.end);
        }
        text
    }
}

/// The place of new lines in a text.
#[derive(Clone, Debug, Default)]
pub(crate) enum Insertion {
    /// Behind the last line.
    #[default]
    End,
    /// Before the first line.
    Start,
    /// Behind the last line that matches; behind the last line of the text if none does.
    After(Regex),
    /// Before the last line that matches; behind the last line of the text if none does.
    Before(Regex),
}

impl Insertion {
    /// Returns the number of the line before which new lines belong.
    pub(crate) fn position(&self, lines: &TextLines<'_>) -> usize {
        let last = |pattern: &Regex| lines.iter().rposition(|line| pattern.is_match(line));
        match self {
            Self::End => lines.count(),
            Self::Start => 0,
            Self::After(pattern) => last(pattern).map_or_else(|| lines.count(), |at| at + 1),
            Self::Before(pattern) => last(pattern).unwrap_or_else(|| lines.count()),
        }
    }
}

/// Compiles a regular expression of a field.
///
/// # Errors
///
/// Returns the problem of the expression.
pub(crate) fn compile_pattern(field: &'static str, text: &str) -> Result<Regex, Invalid> {
    compile(field, RegexBuilder::new(text).size_limit(PATTERN_LIMIT))
}

/// Compiles a regular expression for a whole text, in which `^` and `$` match at each line.
///
/// # Errors
///
/// Fails for a text that is no regular expression, or needs too much memory.
pub(crate) fn compile_lines_pattern(field: &'static str, text: &str) -> Result<Regex, Invalid> {
    compile(field, RegexBuilder::new(text).multi_line(true).size_limit(PATTERN_LIMIT))
}

fn compile(field: &'static str, builder: &RegexBuilder) -> Result<Regex, Invalid> {
    builder.build().map_err(|why| {
        let what = format!("expected a regular expression: {why}");
        let what = super::field_reader::bounded(what.replace('\n', " "));
        Invalid::field(field, what).hint("for example ^#?PermitRootLogin; \\. stands for a dot")
    })
}

/// Makes the failure of a text that cannot be edited safely.
pub(crate) fn unsafe_edit(what: impl Into<String>) -> Failure {
    Failure::new(super::field_reader::bounded(what.into()))
        .hint("the file is unchanged: edit it by hand, or declare it whole with `file`")
}

#[cfg(test)]
mod tests {
    use super::TextLines;
    use proptest::prelude::*;
    use std::borrow::Cow;

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn lines_make_the_text_again(text in "(\u{feff})?([a\r\n=;]|\u{fff80}){0,40}") {
            prop_assert_eq!(TextLines::new(&text).to_text(), text);
        }

        #[test]
        fn an_insertion_and_its_removal_leave_every_byte(
            text in "(\u{feff})?[a-c]{1,3}(\r?\n[a-c]{0,3}){0,6}(\r?\n)?",
            at in 0_usize..8,
        ) {
            let mut lines = TextLines::new(&text);
            let at = at.min(lines.count());
            lines.insert(at, [Cow::Borrowed("x"), Cow::Borrowed("y")]);
            let longer = lines.to_text();
            let mut again = TextLines::new(&longer);
            prop_assert_eq!((again.line(at), again.line(at + 1)), ("x", "y"));
            again.remove(at..at + 2);
            prop_assert_eq!(again.to_text(), text);
        }
    }
}
