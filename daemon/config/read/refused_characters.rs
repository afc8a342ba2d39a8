//! The characters that no graph may have: controls, marks, and line breaks of only some programs.

use crate::config::problem::code::Code;
use crate::config::problem::{Problem, Problems};
use crate::config::source_file::{SourceFile, Span};

/// The maximum number of reported characters of one file.
const LISTED: usize = 20;

/// Reports the refused characters of a text. Returns true if it has none.
pub(in crate::config) fn check_characters(source: &SourceFile, problems: &mut Problems) -> bool {
    let found = refused_characters(&source.text);
    for span in &found {
        let text = source.text.get(span.start as usize..span.end as usize);
        let number = text.and_then(|text| text.chars().next()).map_or(0, u32::from);
        let what = format!("the character U+{number:04X} is not allowed here");
        let hint = format!("write the character as \"\\u{number:04x}\" in double quotes");
        let place = Some(source.place(*span));
        problems.push(Problem::new(Code::Character, what).hint(hint).at(place));
    }
    found.is_empty()
}

/// Returns the first refused characters of a text.
fn refused_characters(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let suspects = bytes.iter().enumerate().filter(|(_, byte)| SUSPECT[usize::from(**byte)]);
    let refused = suspects.filter_map(|(at, _)| {
        let length = refused_length(bytes.get(at..).unwrap_or_default());
        (length > 0).then(|| Span::new(at, at + length))
    });
    refused.take(LISTED).collect()
}

/// The bytes with which a refused character can begin.
static SUSPECT: [bool; 256] = suspects();

const fn suspects() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] = matches!(byte, 0..=8 | 11..=31 | 0x7f | 0xc2 | 0xe2 | 0xef);
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

/// Returns the number of bytes of a rejected character: a control, a line break of only some readers, or a mark.
fn refused_length(bytes: &[u8]) -> usize {
    match bytes {
        [0..=8 | 11 | 12 | 14..=31 | 0x7f, ..] => 1,
        [0xc2, 0x80..=0x9f, ..] => 2,
        [0xe2, 0x80, 0xa8 | 0xa9, ..] | [0xef, 0xbb | 0xbf, 0xbf, ..] | [0xef, 0xbf, 0xbe, ..] => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::refused_characters;

    #[test]
    fn controls_and_marks_are_refused() {
        for text in ["a\u{0}b", "\u{1b}[0m", "a\u{85}b", "a\u{2028}b", "a\u{feff}b", "a\u{7f}"] {
            assert_eq!(refused_characters(text).len(), 1, "{text:?}");
        }
        for text in ["a: b!\n", "é: ü\r\n", "a: b\tc", "€: \u{a0}"] {
            assert!(refused_characters(text).is_empty(), "{text:?}");
        }
        assert_eq!(refused_characters(&"\u{1}".repeat(100)).len(), 20);
    }
}
