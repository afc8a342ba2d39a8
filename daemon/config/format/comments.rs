//! The comments of a file, for the check that a formatted file still has all of them.

use super::lines::{LineKind, classify_lines};

/// Returns true if two texts have the same comments in the same order.
pub(super) fn has_same_comments(one: &str, other: &str) -> bool {
    let (of_one, of_other) = (classify_lines(one.lines()), classify_lines(other.lines()));
    comments(one, &of_one).eq(comments(other, &of_other))
}

/// Returns the texts of all comments, in order.
fn comments<'t>(text: &'t str, kinds: &'t [LineKind]) -> impl Iterator<Item = &'t str> {
    text.lines().zip(kinds).filter_map(|(line, kind)| match kind {
        LineKind::Comment => Some(line.trim()),
        // A comment after a value: everything from ` #` on; a `#` within quotes is compared too, and does no harm.
        LineKind::Structure | LineKind::Continued => {
            line.find(" #").and_then(|at| line.get(at..)).map(str::trim)
        }
        LineKind::Empty | LineKind::Text => None,
    })
}
