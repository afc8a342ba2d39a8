//! The formatter of graph files (`steadfast fmt`): two spaces for each level, no trailing spaces, no double empty
//! lines.
//!
//! The formatter must never change a value or a comment: the result is read again and compared, and a difference is an
//! error. It works on lines, so that everything within a line stays as it is. Reading order: this file, `lines` (the
//! lines that belong to a value), `comments`.

mod comments;
mod lines;

use super::document::parse::parse;
use super::problem::code::Code;
use super::problem::{Problem, Problems};
use super::source_file::SourceFile;
use comments::list_comments;
use lines::{LineKind, classify_lines};

/// The reason for which a file is not formatted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFormatted {
    /// The text is not valid YAML.
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
    check_syntax(text)?;
    let before = read_values(text)?;
    let formatted = format_lines(text);
    let after = read_values(&formatted).or(Err(NotFormatted::Different("syntax")))?;
    if before != after {
        return Err(NotFormatted::Different("values"));
    }
    if list_comments(text) != list_comments(&formatted) {
        return Err(NotFormatted::Different("comments"));
    }
    if format_lines(&formatted) != formatted {
        return Err(NotFormatted::Different("second formatting"));
    }
    Ok(formatted)
}

/// The greatest depth of brackets in a text, also within strings. A graph has at most 64 levels.
const DEEPEST_BRACKETS: usize = 1000;

/// Returns the greatest number of brackets that are open at one place.
fn bracket_depth(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Fails for a text that `check` refuses as YAML, with the same message. Several documents and tags are no error here.
fn check_syntax(text: &str) -> Result<(), NotFormatted> {
    let mut problems = Problems::default();
    let file = SourceFile::new("", "-".into(), "".into(), text.to_owned());
    parse(&file, &mut problems);
    let is_of_syntax = |problem: &&Problem| matches!(problem.code, Code::Syntax | Code::Tab);
    let Some(problem) = problems.list.iter().find(is_of_syntax) else { return Ok(()) };
    let place = problem.places.first();
    let (line, column) = place.map_or((0, 0), |place| (place.line, place.column));
    let hint = problem.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    Err(NotFormatted::Invalid(format!("{line}:{column}: {}{hint}", problem.what)))
}

fn read_values(text: &str) -> Result<serde_yaml::Value, NotFormatted> {
    if text.trim().is_empty() {
        return Ok(serde_yaml::Value::Null);
    }
    // The reader of values takes very long for a text that no graph can have.
    if bracket_depth(text) > DEEPEST_BRACKETS {
        return Err(NotFormatted::Invalid("the brackets are nested too deeply".to_owned()));
    }
    let invalid = |error: serde_yaml::Error| format!("expected valid YAML: {error}");
    serde_yaml::from_str(text).map_err(|error| NotFormatted::Invalid(invalid(error)))
}

/// A level of nesting: the columns before and after.
struct Level {
    old: usize,
    new: usize,
    is_list: bool,
}

/// Formats without a check of the result.
fn format_lines(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let all: Vec<&str> = text.lines().collect();
    let kinds = classify_lines(&all);
    let mut levels: Vec<Level> = Vec::new();
    let mut output: Vec<String> = Vec::new();
    // Comments and empty lines wait for the line that follows, which gives their column.
    let mut waiting: Vec<&str> = Vec::new();
    let mut shift = (0, 0);
    for (line, kind) in all.iter().zip(&kinds) {
        match kind {
            LineKind::Empty | LineKind::Comment => waiting.push(line.trim()),
            LineKind::Structure => {
                let old = indent_of(line);
                let written = place_line(line, &mut levels);
                shift = (old, indent_of(&written));
                put_waiting(&mut waiting, &" ".repeat(shift.1), &mut output);
                output.push(written);
            }
            LineKind::Continued => {
                put_waiting(&mut waiting, &" ".repeat(shift.1), &mut output);
                output.push(shift_line(line, shift).trim_end().to_owned());
            }
            LineKind::Text => {
                output.append(&mut waiting.drain(..).map(str::to_owned).collect());
                output.push(if line.trim().is_empty() {
                    (*line).trim_end_matches('\r').to_owned()
                } else {
                    shift_line(line.trim_end_matches('\r'), shift)
                });
            }
        }
    }
    let last = levels.first().map_or(0, |level| level.new);
    put_waiting(&mut waiting, &" ".repeat(last), &mut output);
    // A block scalar at the end keeps its empty lines.
    if kinds.last() != Some(&LineKind::Text) {
        while output.last().is_some_and(String::is_empty) {
            output.pop();
        }
    }
    let mut formatted = output.join("\n");
    if !formatted.is_empty() && (text.ends_with('\n') || kinds.last() != Some(&LineKind::Text)) {
        formatted.push('\n');
    }
    formatted
}

/// Writes the comments and empty lines before a line; several empty lines become one.
fn put_waiting(waiting: &mut Vec<&str>, indent: &str, output: &mut Vec<String>) {
    for line in waiting.drain(..) {
        if !line.is_empty() {
            output.push(format!("{indent}{line}"));
        } else if output.last().is_some_and(|before| !before.is_empty()) {
            output.push(String::new());
        }
    }
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
