//! Output: data to standard output, messages to standard error, and foreign text only in escaped form.
//!
//! Reading order: this file (printing), `render` (notifications as log lines), `log_output`, `log_queue`,
//! `log_journal`, `log_json`, `event_recording`, `deliveries`, `colour`.

pub(super) mod colour;
pub(super) mod deliveries;
pub(super) mod event_recording;
pub(super) mod log_journal;
mod log_json;
pub(super) mod log_output;
pub(super) mod log_queue;
pub(super) mod render;

use crate::config::{Problem, Rejected};
use log_queue::{LogLine, log_line};
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// True if standard output is closed or cannot be written.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// True if data could not be written and the error was reported.
static UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// Writes a line of data. A closed pipe is no error.
pub(super) fn print(line: impl AsRef<str>) {
    let mut stdout = anstream::stdout();
    note_output(&writeln!(stdout, "{}", line.as_ref()));
}

/// Records the result of a write to standard output. Any error except a closed pipe fails the command, and is reported
/// once.
pub(super) fn note_output(written: &std::io::Result<()>) {
    let Err(why) = written else { return };
    UNREAD.store(true, Ordering::Relaxed);
    if why.kind() != ErrorKind::BrokenPipe && !UNWRITTEN.swap(true, Ordering::Relaxed) {
        error(format!("cannot write to standard output: {why}"), None);
    }
}

/// Returns true if a write to standard output has failed, which fails the command.
pub(super) fn has_failed_output() -> bool {
    UNWRITTEN.load(Ordering::Relaxed)
}

/// Returns true if output no longer arrives, so that an endless command must end.
pub(super) fn is_unread() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// Writes data as a line of JSON.
pub(super) fn out_json(data: &impl serde::Serialize) {
    let json = serde_json::to_string(data).unwrap_or_default();
    print(steadfast_resources::printable_json(&json));
}

/// Writes a message to standard error.
pub(super) fn eprint(line: impl AsRef<str>) {
    log_line(LogLine::Stderr(format!("{}\n", line.as_ref()).into_bytes()));
}

/// Reports the problems of a graph or of settings; source lines only on a terminal, because a journal or a file would
/// store them.
pub(super) fn say_rejected(rejected: &Rejected) {
    let is_terminal = std::io::stderr().is_terminal();
    eprint(if is_terminal { rejected.with_source() } else { rejected.to_string() });
}

/// Reports warnings; source lines only on a terminal.
pub(super) fn say_warnings(warnings: &[Problem]) {
    let is_terminal = std::io::stderr().is_terminal();
    for warning in warnings {
        eprint(if is_terminal { warning.with_source() } else { warning.to_string() });
    }
}

/// Reports an error, with advice.
pub(super) fn error(what: impl AsRef<str>, hint: Option<&str>) {
    let lines: Vec<String> = what.as_ref().trim_end().lines().map(plain).collect();
    eprint(format!("error: {}", lines.join("\n  ")));
    if let Some(hint) = hint {
        eprint(format!("hint: {}", plain(hint)));
    }
}

/// Escapes foreign text for one line, so that it can neither forge nor hide anything (S-13).
#[must_use]
pub(super) fn plain(text: &str) -> String {
    steadfast_resources::printable(text).into_owned()
}

/// Describes one difference, line by line: a diff for texts, else the present and the declared value.
#[must_use]
pub(super) fn difference(
    aspect: &str,
    (from, to): (&str, &str),
    diff: Option<&str>,
) -> Vec<String> {
    if diff.is_none() && (from.contains('\n') || to.contains('\n')) {
        return changed_lines(aspect, from, to);
    }
    let (aspect, from, to) = (plain(aspect), plain(from), plain(to));
    let first = match (from.is_empty(), to.is_empty()) {
        (true, true) => aspect,
        (true, false) => format!("{aspect}: {to}"),
        (false, true) => format!("{aspect}: {from} -> none"),
        (false, false) => format!("{aspect}: {from} -> {to}"),
    };
    let lines = diff.into_iter().flat_map(str::lines).map(|line| format!("  {}", plain(line)));
    std::iter::once(first).chain(lines).collect()
}

/// Describes a difference of values of several lines: the present lines, then the declared ones.
fn changed_lines(aspect: &str, from: &str, to: &str) -> Vec<String> {
    let signed = |sign: char, text: &str| -> Vec<String> {
        text.lines().map(|line| format!("  {sign}{}", plain(line))).collect()
    };
    let (old, new) = (signed('-', from), signed('+', to));
    std::iter::once(format!("{}:", plain(aspect))).chain(old).chain(new).collect()
}

/// Formats a number with its noun: `1 resource`, `2 resources`.
#[must_use]
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_value_of_several_lines_is_shown_line_by_line() {
        let shown = difference("value", ("a\nb\n", "a\n\u{1b}c"), None);
        assert_eq!(shown, ["value:", "  -a", "  -b", "  +a", "  +\\u{1b}c"]);
        assert_eq!(difference("mode", ("0600", "0644"), None), ["mode: 0600 -> 0644"]);
    }
}
