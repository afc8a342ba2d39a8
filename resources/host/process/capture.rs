//! The stored output of a command.

use crate::secrets::escape::short;
use std::borrow::Cow;
use std::fmt;

/// One output stream of a command: its beginning up to a limit, and its last bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Captured {
    kept: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
}

impl Captured {
    /// The limit of a stream in bytes.
    pub const BOUND: usize = 1 << 20;
    const TAIL: usize = 4096;

    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = Self::BOUND - self.kept.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.kept.extend_from_slice(head);
        if rest.is_empty() {
            return;
        }
        self.tail.extend_from_slice(&rest[rest.len().saturating_sub(Self::TAIL)..]);
        let surplus = self.tail.len().saturating_sub(Self::TAIL);
        self.tail.drain(..surplus);
    }

    /// Returns the first [`Self::BOUND`] bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.kept
    }

    /// Returns the first [`Self::BOUND`] bytes as text; invalid UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.kept)
    }

    /// Returns the number of printed bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns true if more was printed than stored.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.total > self.kept.len() as u64
    }

    /// Returns the last lines that are not blank, escaped and bounded, for a message.
    #[must_use]
    pub fn last_lines(&self, count: usize) -> Vec<String> {
        let end = if self.truncated() { &self.tail } else { &self.kept };
        let from = end.len().saturating_sub(Self::TAIL);
        let text = String::from_utf8_lossy(&end[from..]);
        let mut last: Vec<String> = filled_lines(&text).rev().take(count).collect();
        last.reverse();
        last
    }

    /// Returns the first and the last lines that are not blank, as [`Self::last_lines`] does, with `…` for lines
    /// between them: many programs name the cause first, and the end of their work last.
    #[must_use]
    pub fn outer_lines(&self, first: usize, last: usize) -> Vec<String> {
        let end = self.kept.len().min(Self::TAIL);
        let text = String::from_utf8_lossy(&self.kept[..end]);
        let is_whole = end == self.kept.len() && !self.truncated();
        let mut lines: Vec<String> = filled_lines(&text).take(first + last + 1).collect();
        if is_whole && lines.len() <= first + last {
            return lines;
        }
        lines.truncate(first);
        lines.push("…".to_owned());
        lines.extend(self.last_lines(last));
        lines
    }
}

/// Returns the lines that are not blank, escaped and bounded.
fn filled_lines(text: &str) -> impl DoubleEndedIterator<Item = String> {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.map(|line| short(&line.replace('\t', "    "), 200))
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Captured({} bytes)", self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::Captured;

    #[test]
    fn the_beginning_and_the_very_end_are_kept() {
        let mut captured = Captured::default();
        captured.push(b"first\n");
        for _ in 0..160 {
            captured.push(&[b'x'; 16_384]);
        }
        captured.push(b"\nlast \x1b[2J line\n\n");
        assert!(captured.truncated());
        assert_eq!(captured.bytes().len(), Captured::BOUND);
        assert!(captured.text().starts_with("first\nxxx"));
        assert_eq!(captured.total(), 6 + 160 * 16_384 + 17);
        assert_eq!(captured.last_lines(1), ["last \\u{1b}[2J line"]);
        assert!(captured.tail.len() <= Captured::TAIL);
    }

    #[test]
    fn blank_lines_do_not_count_as_last() {
        let mut captured = Captured::default();
        captured.push(b"a\nb\n\n  \n");
        assert_eq!(captured.last_lines(2), ["a", "b"]);
        assert!(!captured.truncated());
    }

    #[test]
    fn the_first_and_the_last_lines_are_shown() {
        let mut captured = Captured::default();
        captured.push(b"one\n\n\ttwo\nthree\n");
        assert_eq!(captured.outer_lines(2, 1), ["one", "    two", "three"]);
        assert_eq!(captured.outer_lines(1, 1), ["one", "…", "three"]);
        for _ in 0..2000 {
            captured.push(b"more\n");
        }
        captured.push(b"last\n");
        assert_eq!(captured.outer_lines(2, 2), ["one", "    two", "…", "more", "last"]);
    }
}
