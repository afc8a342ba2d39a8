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
