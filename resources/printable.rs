//! Makes foreign text fit for a line of a log: what could forge or hide a line is escaped.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with every character escaped that could forge or hide a line: control characters, line separators, and those that
/// turn the direction of writing.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if !is_deceptive(character) {
            escaped.push(character);
        } else if write!(escaped, "{}", character.escape_default()).is_err() {
            escaped.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Cow::Owned(escaped)
}

/// JSON, with the same characters escaped in the manner of JSON: it means the same. Line ends are between values and stay.
#[must_use]
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let is_odd = |character: char| character != '\n' && is_deceptive(character);
    if !json.chars().any(is_odd) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if !is_odd(character) {
            escaped.push(character);
        } else if write!(escaped, "\\u{:04x}", u32::from(character)).is_err() {
            escaped.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Cow::Owned(escaped)
}

fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{feff}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text on one line, escaped, and cut to at most that many characters.
#[must_use]
pub(crate) fn short(text: &str, characters: usize) -> String {
    let text = printable(text);
    if text.chars().count() <= characters {
        return text.into_owned();
    }
    let mut cut: String = text.chars().take(characters.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::{printable, printable_json, short};

    /// S-13: foreign text cannot forge a line.
    #[test]
    fn what_could_forge_a_line_is_escaped() {
        assert_eq!(printable("plain ünïcode 'text'"), "plain ünïcode 'text'");
        assert_eq!(printable("a\nb\r\u{1b}[31mc\0"), "a\\nb\\r\\u{1b}[31mc\\u{0}");
        assert_eq!(printable("x\u{202e}y\u{2028}\u{85}"), "x\\u{202e}y\\u{2028}\\u{85}");
    }

    /// S-13: JSON means the same, and shows nothing that deceives.
    #[test]
    fn json_is_escaped_in_its_own_manner() {
        let json = "{\"a\": \"x\u{202e}\u{7f}\u{9b}y\"}\n";
        assert_eq!(printable_json(json), "{\"a\": \"x\\u202e\\u007f\\u009by\"}\n");
        assert_eq!(printable_json("{}\n"), "{}\n");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(short("äöüß", 4), "äöüß");
        assert_eq!(short("äöüßx", 4), "äöü…");
    }
}
