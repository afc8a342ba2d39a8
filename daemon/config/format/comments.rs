//! The comments of a file, for the check that a formatted file still has all of them.

use super::lines::{LineKind, classify_lines};

/// Returns the texts of all comments, in order.
pub(super) fn list_comments(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let kinds = classify_lines(&lines);
    let mut found = Vec::new();
    for (line, kind) in lines.iter().zip(kinds) {
        match kind {
            LineKind::Comment => found.push(line.trim()),
            // A comment after a value: everything from ` #` on; a `#` within quotes is compared too, and does no harm.
            LineKind::Structure | LineKind::Continued => {
                found.extend(line.find(" #").and_then(|at| line.get(at..)).map(str::trim));
            }
            LineKind::Empty | LineKind::Text => {}
        }
    }
    found
}
