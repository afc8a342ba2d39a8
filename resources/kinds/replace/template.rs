//! The text of a replacement: literal parts, and the groups of a match.

use crate::secrets::secret_text::Secret;
use regex_lite::{Captures, Regex};

/// One part of a replacement.
#[derive(Debug)]
enum Part {
    Literal(Secret),
    /// The number of a group; 0 for the whole match.
    Group(usize),
}

/// A replacement in parts.
#[derive(Debug)]
pub(super) struct Template(Vec<Part>);

impl Template {
    /// Makes a replacement without groups.
    pub(super) fn literal(text: Secret) -> Self {
        Self(vec![Part::Literal(text)])
    }

    /// Reads a replacement: `\0` to `\9` stand for groups, `\\` for a backslash. Any other backslash stays.
    #[expect(clippy::needless_pass_by_value, reason = "the secret text ends here")]
    pub(super) fn read(text: Secret) -> Self {
        let (mut parts, mut literal) = (Vec::new(), String::new());
        let mut characters = text.reveal().chars().peekable();
        while let Some(character) = characters.next() {
            let next = characters.peek().copied();
            match (character, next.and_then(|next| next.to_digit(10)), next) {
                ('\\', Some(digit), _) => {
                    characters.next();
                    parts.push(Part::Literal(Secret::from(std::mem::take(&mut literal))));
                    parts.push(Part::Group(digit as usize));
                }
                ('\\', None, Some('\\')) => {
                    characters.next();
                    literal.push('\\');
                }
                _ => literal.push(character),
            }
        }
        parts.push(Part::Literal(Secret::from(literal)));
        Self(parts)
    }

    /// Returns the highest number of a group; 0 without groups.
    pub(super) fn highest_group(&self) -> usize {
        let groups = self.0.iter().map(|part| match part {
            Part::Group(number) => *number,
            Part::Literal(_) => 0,
        });
        groups.max().unwrap_or(0)
    }

    /// Adds the replacement of a match to a text. A group that took no part in the match is empty.
    pub(super) fn write(&self, found: &Captures<'_>, into: &mut String) {
        for part in &self.0 {
            match part {
                Part::Literal(text) => into.push_str(text.reveal()),
                Part::Group(number) => {
                    into.push_str(found.get(*number).map_or("", |group| group.as_str()));
                }
            }
        }
    }
}

/// Returns an expression that matches nothing.
pub(super) fn matches_nothing() -> Regex {
    Regex::new("[a&&b]").unwrap_or_else(|why| unreachable!("a constant expression: {why}"))
}
