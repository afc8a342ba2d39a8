//! Words for the terminal: data to standard output, talk to standard error, and nothing foreign unescaped.

use std::io::Write as _;

/// Writes a line of data. A reader who has gone away is no error.
pub(super) fn out(line: impl AsRef<str>) {
    let mut stdout = anstream::stdout();
    drop(writeln!(stdout, "{}", line.as_ref()));
}

/// Writes a line of talk.
pub(super) fn say(line: impl AsRef<str>) {
    let mut stderr = anstream::stderr();
    drop(writeln!(stderr, "{}", line.as_ref()));
}

/// Writes an error, and what to do about it.
pub(super) fn error(what: impl AsRef<str>, hint: Option<&str>) {
    say(format!("error: {}", what.as_ref()));
    if let Some(hint) = hint {
        say(format!("hint: {hint}"));
    }
}

/// A foreign text on one line: control characters and line ends escaped (forged log lines, terminal codes).
#[must_use]
pub(super) fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// `1 resource`, `2 resources`.
#[must_use]
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}
