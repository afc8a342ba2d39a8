//! Words for the terminal: data to standard output, talk to standard error, and nothing foreign unescaped.

pub(super) mod deliveries;
pub(super) mod event_recording;
pub(super) mod log_journal;
pub(super) mod log_output;
pub(super) mod log_queue;
pub(super) mod render;

use crate::config::{Problem, Rejected};
use crate::driver::GraphDiff;
use log_queue::{LogLine, log_line};
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Nobody reads the data any more, or it cannot be written.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Data could not be written, and that was said.
static UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// Writes a line of data. A reader who has gone away is no error.
pub(super) fn print(line: impl AsRef<str>) {
    let mut stdout = anstream::stdout();
    note_output(&writeln!(stdout, "{}", line.as_ref()));
}

/// Notes the result of a write to standard output: anything but a reader who has gone away fails the command, and is said once.
pub(super) fn note_output(written: &std::io::Result<()>) {
    let Err(why) = written else { return };
    UNREAD.store(true, Ordering::Relaxed);
    if why.kind() != ErrorKind::BrokenPipe && !UNWRITTEN.swap(true, Ordering::Relaxed) {
        error(format!("cannot write to standard output: {why}"), None);
    }
}

/// Tells whether a write to standard output has failed: the command fails then, whatever else it did.
pub(super) fn has_failed_output() -> bool {
    UNWRITTEN.load(Ordering::Relaxed)
}

/// Tells whether nothing more of the data arrives: what goes on for ever ends then.
pub(super) fn is_unread() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// Writes data as a line of JSON.
pub(super) fn out_json(data: &impl serde::Serialize) {
    let json = serde_json::to_string(data).unwrap_or_default();
    print(steadfast_resources::printable_json(&json));
}

/// Writes a line of talk.
pub(super) fn eprint(line: impl AsRef<str>) {
    log_line(LogLine::Stderr(format!("{}\n", line.as_ref()).into_bytes()));
}

/// Writes the problems of a graph or of settings; source lines only to a terminal, for a journal or a file would store them.
pub(super) fn say_rejected(rejected: &Rejected) {
    let is_terminal = std::io::stderr().is_terminal();
    eprint(if is_terminal { rejected.with_source() } else { rejected.to_string() });
}

/// Writes warnings in the same way.
pub(super) fn say_warnings(warnings: &[Problem]) {
    let is_terminal = std::io::stderr().is_terminal();
    for warning in warnings {
        eprint(if is_terminal { warning.with_source() } else { warning.to_string() });
    }
}

/// Writes an error, and what to do about it.
pub(super) fn error(what: impl AsRef<str>, hint: Option<&str>) {
    let lines: Vec<String> = what.as_ref().trim_end().lines().map(plain).collect();
    eprint(format!("error: {}", lines.join("\n  ")));
    if let Some(hint) = hint {
        eprint(format!("hint: {}", plain(hint)));
    }
}

/// A foreign text on one line: what could forge or hide something is escaped (S-13).
#[must_use]
pub(super) fn plain(text: &str) -> String {
    steadfast_resources::printable(text).into_owned()
}

/// One aspect that differs, line by line: of texts a diff, of all else what is and what is declared.
#[must_use]
pub(super) fn difference(
    aspect: &str,
    (from, to): (&str, &str),
    diff: Option<&str>,
) -> Vec<String> {
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

/// `1 resource`, `2 resources`.
#[must_use]
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// What a new graph means for the one before: counts, and unless all is new, names below.
#[must_use]
pub(super) fn graph_change(change: &GraphDiff) -> String {
    let GraphDiff { added, changed, removed, unchanged: kept, again } = change;
    let mut text = format!(
        "{} added, {} changed, {} removed, {kept} unchanged",
        added.count, changed.count, removed.count
    );
    if !again {
        return text;
    }
    for (mark, sort) in [('+', added), ('~', changed), ('-', removed)] {
        for name in &sort.names {
            text.push_str(&format!("\n{mark} {}", plain(name)));
        }
        let more = sort.count - sort.names.len();
        if more > 0 {
            text.push_str(&format!("\n{mark} and {more} more"));
        }
    }
    text
}
