//! The formatter of graph files (`steadfast fmt`): two spaces for each level, no trailing spaces, no double empty
//! lines.
//!
//! The formatter must never change a value or a comment: the result is read again and compared, and a difference is an
//! error. It refuses what `check` refuses, and it must never follow an alias. It works on lines, so that everything
//! within a line stays as it is. Reading order: this file, `lines` (the lines that belong to a value), `comments`.

mod comments;
mod lines;

use super::document::parse::parse;
use super::problem::code::Code;
use super::problem::{Problem, Problems};
use super::read::files;
use super::read::refused_characters::check_characters;
use super::source_file::SourceFile;
use comments::has_same_comments;
use lines::{LineKind, classify_lines};
use std::path::Path;

/// The reason for which a file is not formatted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFormatted {
    /// The text is too large, or `check` refuses it.
    #[error("{0}")]
    Invalid(String),
    /// The formatted text would mean something else: a defect of the formatter.
    #[error("the formatted text would differ in its {0}; the file stays as it is")]
    Different(&'static str),
}

/// Returns the formatted text of a graph file.
///
/// ```
/// let formatted = steadfast::config::format_graph("graph: a   \nresources:\n file:\n - name: b\n");
/// assert_eq!(formatted.as_deref(), Ok("graph: a\nresources:\n  file:\n    - name: b\n"));
/// ```
///
/// # Errors
/// [`NotFormatted`] for a text that is not YAML, and for one that the formatter would change in meaning.
pub fn format_graph(text: &str) -> Result<String, NotFormatted> {
    if text.len() as u64 > LARGEST_FORMATTED {
        return Err(NotFormatted::Invalid(too_large()));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_text(text)?;
    let formatted = format_lines(text)?;
    if !has_same_values(text, &formatted) {
        return Err(NotFormatted::Different("values"));
    }
    if !has_same_comments(text, &formatted) {
        return Err(NotFormatted::Different("comments"));
    }
    if format_lines(&formatted)? != formatted {
        return Err(NotFormatted::Different("second formatting"));
    }
    Ok(formatted)
}

/// The largest text that is formatted, in bytes.
const LARGEST_FORMATTED: u64 = 8 << 20;

fn too_large() -> String {
    format!(
        "the file is larger than {} MiB, the limit of fmt; split the file",
        LARGEST_FORMATTED >> 20
    )
}

/// Reads the text of a graph file, or of the standard input for `-`, as `check` reads it; a byte order mark stays.
///
/// # Errors
/// The reason, in one line: the file cannot be read, is a pipe, is too large, or is not UTF-8.
pub fn read_text_to_format(path: &Path) -> Result<String, String> {
    let display = path.display().to_string();
    let oversized = |_: &str| Problem::new(Code::TooLarge, too_large());
    files::read_with_mark(path, &display, (LARGEST_FORMATTED, oversized)).map_err(|problem| {
        let hint = problem.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{}{hint}", problem.what)
    })
}

/// Fails for a text that `check` refuses, with the same message. A tag is no error here.
fn check_text(text: &str) -> Result<(), NotFormatted> {
    let mut problems = Problems::default();
    let file = SourceFile::new("", "-".into(), "".into(), text.to_owned());
    if check_characters(&file, &mut problems) {
        parse(&file, &mut problems);
    }
    let is_refused = |problem: &&Problem| problem.code != Code::Tag;
    let Some(problem) = problems.list.iter().find(is_refused) else { return Ok(()) };
    let place = problem.places.first();
    let (line, column) = place.map_or((0, 0), |place| (place.line, place.column));
    let hint = problem.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    Err(NotFormatted::Invalid(format!("{line}:{column}: {}{hint}", problem.what)))
}

/// Returns true if two texts give the same events of YAML: values, keys, tags, anchors and aliases. No alias is
/// followed, and nothing is stored.
fn has_same_values(one: &str, other: &str) -> bool {
    let events = |text| granit_parser::Parser::new_from_str(text);
    let (mut one, mut other) = (events(one), events(other));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(Ok((one, _))), Some(Ok((other, _)))) if one == other => {}
            _ => return false,
        }
    }
}

/// A level of nesting: the columns before and after.
struct Level {
    old: usize,
    new: usize,
    is_list: bool,
}

/// The formatted text, as far as written.
#[derive(Default)]
struct Output {
    text: String,
    /// True if the last line is empty.
    is_empty_line: bool,
    has_lines: bool,
}

impl Output {
    fn push(&mut self, line: &str) {
        if self.has_lines {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.is_empty_line = line.is_empty();
        self.has_lines = true;
    }

    /// Writes the comments and empty lines before a line; several empty lines become one.
    fn push_waiting(&mut self, waiting: &str, indent: usize) {
        for line in waiting.lines().map(str::trim) {
            if !line.is_empty() {
                self.push(&format!("{:indent$}{line}", ""));
            } else if self.has_lines && !self.is_empty_line {
                self.push("");
            }
        }
    }
}

/// Formats without a check of the result.
fn format_lines(text: &str) -> Result<String, NotFormatted> {
    let kinds = classify_lines(text.lines());
    let mut levels: Vec<Level> = Vec::new();
    let mut output = Output::default();
    // Comments and empty lines wait for the line that follows, which gives their column.
    let (mut waiting, mut at) = (0, 0);
    let mut shift = (0, 0);
    for (whole, kind) in text.split_inclusive('\n').zip(&kinds) {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let before = text.get(waiting..at).unwrap_or_default();
        at += whole.len();
        match kind {
            LineKind::Empty | LineKind::Comment => continue,
            LineKind::Structure => {
                let old = indent_of(line);
                let written = place_line(line, &mut levels);
                shift = (old, indent_of(&written));
                output.push_waiting(before, shift.1);
                output.push(&written);
            }
            LineKind::Continued => {
                output.push_waiting(before, shift.1);
                output.push(shift_line(line, shift).trim_end());
            }
            LineKind::Text if line.trim().is_empty() => output.push(line.trim_end_matches('\r')),
            LineKind::Text => output.push(&shift_line(line.trim_end_matches('\r'), shift)),
        }
        waiting = at;
        // Each level of nesting may move a line by two columns.
        if output.text.len() as u64 > 4 * LARGEST_FORMATTED {
            return Err(NotFormatted::Invalid(too_large()));
        }
    }
    let last = levels.first().map_or(0, |level| level.new);
    output.push_waiting(text.get(waiting..).unwrap_or_default(), last);
    let mut formatted = output.text;
    // A block scalar at the end keeps its empty lines.
    let is_text = kinds.last() == Some(&LineKind::Text);
    if !is_text {
        formatted.truncate(formatted.trim_end_matches('\n').len());
    }
    if !formatted.is_empty() && (text.ends_with('\n') || !is_text) {
        formatted.push('\n');
    }
    Ok(formatted)
}

/// Moves a line that begins with a key or a dash to its level.
fn place_line(line: &str, levels: &mut Vec<Level>) -> String {
    let mut column = indent_of(line);
    let mut rest = line.trim();
    let mut written = String::new();
    loop {
        let is_list = rest == "-" || rest.starts_with("- ");
        let new = enter_level(levels, column, is_list);
        if written.is_empty() {
            written = " ".repeat(new);
        }
        if !is_list {
            written.push_str(rest);
            return written;
        }
        let after = rest.get(1..).unwrap_or_default();
        let inner = after.trim_start();
        column += 1 + (after.len() - inner.len());
        if inner.is_empty() {
            written.push('-');
            return written;
        }
        written.push_str("- ");
        rest = inner;
    }
}

/// Enters the level of a column; returns the new column.
fn enter_level(levels: &mut Vec<Level>, old: usize, is_list: bool) -> usize {
    while levels
        .last()
        .is_some_and(|top| top.old > old || top.old == old && top.is_list && !is_list)
    {
        levels.pop();
    }
    match levels.last() {
        Some(top) if top.old == old && top.is_list == is_list => top.new,
        top => {
            let new = top.map_or(0, |top| top.new + 2);
            levels.push(Level { old, new, is_list });
            new
        }
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Moves a line as far as the line that it belongs to.
fn shift_line(line: &str, (old, new): (usize, usize)) -> String {
    let indent = (indent_of(line) + new).saturating_sub(old);
    format!("{}{}", " ".repeat(indent), line.trim_start_matches(' '))
}
