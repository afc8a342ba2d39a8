//! Escapes foreign text for a line of a log: characters that could forge or hide a line.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes every character that could forge or hide a line: control characters, line separators, characters
/// that turn the direction of writing, and characters without width, including tags.
///
/// # Examples
///
/// ```
/// use steadfast_resources::printable;
///
/// assert_eq!(printable("one\ntwo"), "one\\ntwo");
/// ```
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

/// Escapes the same characters in JSON text, as JSON escapes, so the meaning is unchanged. Line ends between
/// values stay.
#[must_use]
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let is_odd = |character: char| character != '\n' && is_deceptive(character);
    if !json.chars().any(is_odd) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_odd(character) {
            let units = &mut [0; 2];
            let units = character.encode_utf16(units).iter();
            escaped.extend(units.map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Returns true if the character is invisible or moves other characters.
///
/// U+200D (which joins emoji and letters of some scripts) and the variation selectors except U+FE0F (the one of
/// emoji) are included: a visible escape is better than a deception.
#[must_use]
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the text escaped on one line, cut to at most `characters` characters.
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
    fn line_forging_text_is_escaped() {
        assert_eq!(printable("plain ünïcode 'text'"), "plain ünïcode 'text'");
        assert_eq!(printable("a\nb\r\u{1b}[31mc\0"), "a\\nb\\r\\u{1b}[31mc\\u{0}");
        assert_eq!(printable("a\u{200b}b\u{e0041}c\u{ad}"), "a\\u{200b}b\\u{e0041}c\\u{ad}");
        assert_eq!(printable("emoji \u{2764}\u{fe0f}"), "emoji \u{2764}\u{fe0f}");
        assert_eq!(printable("x\u{202e}y\u{2028}\u{85}"), "x\\u{202e}y\\u{2028}\\u{85}");
    }

    /// S-13: escaped JSON keeps its meaning and shows no deceptive character.
    #[test]
    fn json_is_escaped_in_its_own_manner() {
        let json = "{\"a\": \"x\u{202e}\u{7f}\u{9b}y\"}\n";
        assert_eq!(printable_json(json), "{\"a\": \"x\\u202e\\u007f\\u009by\"}\n");
        assert_eq!(printable_json("{}\n"), "{}\n");
        let tag = printable_json("\"\u{e0041}\u{200b}\"").into_owned();
        assert_eq!(tag, "\"\\udb40\\udc41\\u200b\"");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(short("äöüß", 4), "äöüß");
        assert_eq!(short("äöüßx", 4), "äöü…");
    }
}
