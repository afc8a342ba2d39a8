//! Durations with units, as graphs, flags and settings write them.

/// The units, each with its length in seconds. `ms` comes before `m` and `s`.
const UNITS: [(&str, f64); 7] = [
    ("ms", 0.001),
    ("us", 0.000_001),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
    ("w", 604_800.0),
];

/// Returns the seconds of a duration: `500ms`, `90s`, `1.5h`, `1h30m`; a bare number counts seconds. Returns none for
/// any other text.
///
/// # Examples
///
/// ```
/// use steadfast_resources::duration::seconds;
///
/// assert_eq!(seconds("1h30m"), Some(5400.0));
/// assert_eq!(seconds("90"), Some(90.0));
/// assert_eq!(seconds("soon"), None);
/// ```
#[must_use]
pub fn seconds(text: &str) -> Option<f64> {
    if is_bare_number(text) {
        return text.parse().ok().filter(|number: &f64| number.is_finite());
    }
    let (mut rest, mut total, mut smallest) = (text, 0.0, f64::INFINITY);
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at_checked(end)?;
        let number: f64 = number.parse().ok()?;
        let word = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(word)?;
        let (_, length) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        // The units descend: `1h30m`, and not `30m1h`.
        if length >= smallest {
            return None;
        }
        smallest = length;
        total += number * length;
        rest = next;
    }
    (!text.is_empty() && total.is_finite()).then_some(total)
}

/// Returns a duration as a whole number of units, `per_second` of which are one second: 1000 for milliseconds. A bare
/// number counts these units. Returns none for any other text and for a fraction of a unit.
#[must_use]
pub fn whole(text: &str, per_second: f64) -> Option<i64> {
    if is_bare_number(text) {
        return text.parse().ok();
    }
    let units = (seconds(text)? * per_second * 1e6).round() / 1e6;
    let is_whole = units.fract() == 0.0 && units.abs() < 9e15;
    #[expect(clippy::cast_possible_truncation, reason = "the value is whole and below 9e15")]
    is_whole.then_some(units as i64)
}

/// Returns true if the text is a number without a unit.
#[must_use]
pub fn is_bare_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.starts_with(|letter: char| letter.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::{seconds, whole};

    #[test]
    fn units_add_up_in_descending_order() {
        for (text, expected) in [
            ("500ms", Some(0.5)),
            ("90s", Some(90.0)),
            ("1.5h", Some(5400.0)),
            ("1d12h", Some(129_600.0)),
            ("0", Some(0.0)),
            ("-1", Some(-1.0)),
            ("30m1h", None),
            ("5 m", None),
            ("m", None),
            ("", None),
            ("1y", None),
            ("1hh", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn whole_units_have_no_fraction() {
        assert_eq!(whole("500ms", 1000.0), Some(500));
        assert_eq!(whole("500ms", 1.0), None);
        assert_eq!(whole("2m", 1.0), Some(120));
        assert_eq!(whole("0.1s", 1000.0), Some(100));
        assert_eq!(whole("-1", 1.0), Some(-1));
        assert_eq!(whole("1.5", 1.0), None);
    }
}
