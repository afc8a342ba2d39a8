//! Sizes and time spans in a readable form: `10MiB`, `90d`.

use crate::config::problem::quoted;
use steadfast_resources::LONGEST_SPAN;

/// Parses a time span to seconds: a number with `ms`, `s`, `m`, `h` or `d`. A part of a second counts as a whole one.
///
/// # Errors
/// A message that says what was expected and what was found.
pub fn span(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a number with s, m, h or d, such as 2h; found `{text}`");
    if let Some(number) = text.strip_suffix("ms") {
        let number: u64 = number.parse().map_err(|_error| wrong())?;
        return span(&format!("{}s", number.div_ceil(1000)));
    }
    let unit = text.chars().last().ok_or_else(wrong)?;
    let (number, factor) = match unit {
        's' => (text.trim_end_matches('s'), 1),
        'm' => (text.trim_end_matches('m'), 60),
        'h' => (text.trim_end_matches('h'), 3600),
        'd' => (text.trim_end_matches('d'), 86_400),
        _ => (text, 1),
    };
    let number: u64 = number.parse().map_err(|_error| wrong())?;
    let most = LONGEST_SPAN.as_secs();
    let is_short = |span: &u64| (1..=most).contains(span);
    let long = || format!("expected a span of 1 to {most} seconds (a year), found `{text}`");
    number.checked_mul(factor).filter(is_short).ok_or_else(long)
}

/// Parses a size to bytes: a number with `KiB`, `MiB` or `GiB`, or of bytes.
pub(in crate::config) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("a size such as 10MiB (KiB, MiB, GiB), found `{}`", quoted(text));
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = units.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, *bits)));
    let (number, bits) = unit.unwrap_or((text, 0));
    let number: u64 = number.trim_end().parse().map_err(|_error| wrong())?;
    number.checked_mul(1 << bits).filter(|size| *size <= 1 << 40).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::{size, span};

    #[test]
    fn parts_of_a_second_count_as_one() {
        for (text, seconds) in
            [("500ms", 1), ("1500ms", 2), ("2000ms", 2), ("90s", 90), ("2h", 7200)]
        {
            assert_eq!(span(text), Ok(seconds), "{text}");
        }
        for wrong in ["0ms", "ms", "xms", "0s", "1y", ""] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        let sizes = ["0", "10", "10KiB", "10 MiB", "1GiB", "1024GiB"].map(|text| size(text).ok());
        let expected = [0, 10, 10_240, 10 << 20, 1 << 30, 1 << 40].map(Some);
        assert_eq!(sizes, expected);
        for wrong in ["", "MiB", "-1", "10MB", "1025GiB", "99999999999GiB", "1.5MiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
