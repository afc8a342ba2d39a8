//! Reverses recorded edits of a text file that others may have changed since.
//!
//! The way back from the edited content to the former one is merged with the changes of others line by line, as in a
//! three-way merge. Lines that only others have changed stay.

use crate::prior_state::PriorEdit;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The time limit of one comparison; after it the comparison is coarser.
const TIME: Duration = Duration::from_secs(1);

/// Returns the present content without the edits, which are ordered from the last one to the first one; `None` if the
/// lines of an edit have changed since.
#[must_use]
pub fn reverse_edits(present: &[u8], edits: &[PriorEdit]) -> Option<Vec<u8>> {
    edits.iter().try_fold(present.to_vec(), |text, edit| reverse_edit(&text, edit))
}

fn reverse_edit(present: &[u8], edit: &PriorEdit) -> Option<Vec<u8>> {
    if present == edit.after {
        return Some(edit.before.clone());
    }
    let (base, before, present) = (lines(&edit.after), lines(&edit.before), lines(present));
    let merged = merge(&base, &hunks(&base, &before), &hunks(&base, &present))?;
    let last = merged.len().saturating_sub(1);
    let mut text = Vec::new();
    for (number, line) in merged.into_iter().enumerate() {
        text.extend(line);
        // A last line without an end can be followed by another line now.
        if number < last && !line.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    Some(text)
}

/// Returns the lines, each with its end.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Lines that replace a range of the base.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk<'a> {
    range: Range<usize>,
    lines: Vec<&'a [u8]>,
}

impl Hunk<'_> {
    /// Returns true if both hunks concern the same lines and cannot both be applied.
    fn contradicts(&self, other: &Self) -> bool {
        let overlaps = self.range.start < other.range.end && other.range.start < self.range.end;
        overlaps && !(self.lines.is_empty() && other.lines.is_empty())
    }

    /// Returns true if this hunk puts all lines of the other one, and more, into the range.
    fn contains(&self, other: &Self) -> bool {
        let (all, part) = (&self.lines, &other.lines);
        self.range == other.range
            && (all == part || !part.is_empty() && (all.starts_with(part) || all.ends_with(part)))
    }

    /// Returns true if this hunk is applied before the other one.
    fn is_before(&self, other: &Self) -> bool {
        (self.range.start, self.range.end) <= (other.range.start, other.range.end)
    }
}

fn hunks<'a>(base: &[&'a [u8]], other: &[&'a [u8]]) -> Vec<Hunk<'a>> {
    let until = Instant::now().checked_add(TIME);
    let operations = capture_diff_slices_deadline(Algorithm::Myers, base, other, until);
    let changed = operations.iter().filter(|operation| !matches!(operation, DiffOp::Equal { .. }));
    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    for operation in changed {
        let range = operation.old_range();
        let lines = other.get(operation.new_range()).unwrap_or_default();
        match hunks.last_mut().filter(|last| last.range.end == range.start) {
            Some(last) => {
                last.range.end = range.end;
                last.lines.extend(lines);
            }
            None => hunks.push(Hunk { range, lines: lines.to_vec() }),
        }
    }
    hunks
}

/// Applies both lists of hunks to the base; `None` if two of them contradict each other.
fn merge<'a>(base: &[&'a [u8]], own: &[Hunk<'a>], others: &[Hunk<'a>]) -> Option<Vec<&'a [u8]>> {
    let (mut own, mut others) = (own.iter().peekable(), others.iter().peekable());
    let (mut merged, mut at) = (Vec::new(), 0);
    loop {
        let next = match (own.peek(), others.peek()) {
            (None, None) => break,
            (Some(one), Some(other)) if other.contains(one) => {
                own.next();
                others.next()
            }
            (Some(one), Some(other)) if one.contradicts(other) => return None,
            (Some(one), Some(other)) if !one.is_before(other) => others.next(),
            (Some(_), _) => own.next(),
            (None, Some(_)) => others.next(),
        };
        let Some(hunk) = next else { break };
        // An earlier hunk has removed the lines that this one replaces.
        if hunk.range.start < at && !hunk.lines.is_empty() {
            return None;
        }
        merged.extend(base.get(at..hunk.range.start).unwrap_or_default());
        merged.extend(&hunk.lines);
        at = at.max(hunk.range.end);
    }
    merged.extend(base.get(at..).unwrap_or_default());
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::reverse_edits;
    use crate::prior_state::PriorEdit;

    fn reversed(before: &str, after: &str, present: &str) -> Option<String> {
        let edit = PriorEdit { before: before.into(), after: after.into() };
        let text = reverse_edits(present.as_bytes(), &[edit])?;
        Some(String::from_utf8(text).expect("a text"))
    }

    #[test]
    fn lines_of_others_stay() {
        for (before, after, present, expected) in [
            ("a\n", "a\nown\n", "a\nown\n", "a\n"),
            ("a\n", "a\nown\n", "a\nown\nother\n", "a\nother\n"),
            ("a\n", "a\nown\n", "other\na\nown\n", "other\na\n"),
            ("a\n", "a\nown\n", "a\nother\nown\n", "a\nother\n"),
            ("a\nold\nb\n", "a\nnew\nb\n", "A\na\nnew\nb\nB\n", "A\na\nold\nb\nB\n"),
            ("a\nold\n", "a\n", "a\nother\n", "a\nold\nother\n"),
            ("", "own\n", "own\nother\n", "other\n"),
            ("", "own\n", "own\n", ""),
            // A former last line without an end does not join the next one.
            ("x", "x\nown\n", "x\nown\nother\n", "x\nother\n"),
            ("x", "x\nown\n", "x\nown\n", "x"),
        ] {
            let found = reversed(before, after, present);
            assert_eq!(found.as_deref(), Some(expected), "{before:?} {after:?} {present:?}");
        }
    }

    #[test]
    fn an_edit_that_others_have_reversed_stays_reversed() {
        assert_eq!(reversed("a\n", "a\nown\n", "a\n").as_deref(), Some("a\n"));
        assert_eq!(reversed("a\n", "a\nown\n", "").as_deref(), Some(""));
        assert_eq!(reversed("old\n", "new\n", "old\nother\n").as_deref(), Some("old\nother\n"));
    }

    #[test]
    fn changed_lines_of_the_edit_are_refused() {
        assert_eq!(reversed("old\n", "new\n", "newer\n"), None);
        assert_eq!(reversed("a\nold\nb\n", "a\nnew\nb\n", "a\nb\n"), None);
    }

    #[test]
    fn several_edits_are_reversed_from_the_last_one() {
        let edit = |before: &str, after: &str| PriorEdit {
            before: before.as_bytes().to_vec(),
            after: after.as_bytes().to_vec(),
        };
        let edits = [edit("a\none\nother\n", "a\none\nother\ntwo\n"), edit("a\n", "a\none\n")];
        let text = reverse_edits(b"a\none\nother\ntwo\nlast\n", &edits).expect("reversed");
        assert_eq!(text, b"a\nother\nlast\n");
    }

    /// Reversing an edit of untouched text gives the former text, byte for byte, whatever the bytes are.
    #[test]
    fn an_untouched_edit_gives_the_former_bytes() {
        let (before, after) = (b"\xff\n\r\n\0".as_slice(), b"\xff\nown\r\n\0\n\n".as_slice());
        let edit = PriorEdit { before: before.to_vec(), after: after.to_vec() };
        assert_eq!(reverse_edits(after, &[edit]).as_deref(), Some(before));
    }
}
