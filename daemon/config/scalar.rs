//! Scalars and their conversion to values.

use super::hash::Stable;
use std::borrow::Cow;
use steadfast_resources::{FieldSpec, FieldType, Value, duration};

/// A scalar as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scalar<'t> {
    pub(super) text: Cow<'t, str>,
    /// True if the scalar is neither quoted nor a block.
    pub(super) plain: bool,
}

impl Scalar<'_> {
    /// Makes a scalar of a text without quotes.
    pub(super) fn plain(text: String) -> Self {
        Scalar { text: Cow::Owned(text), plain: true }
    }

    /// Returns true for null.
    pub(super) fn is_null(&self) -> bool {
        self.plain && matches!(self.text.as_ref(), "" | "~" | "null" | "Null" | "NULL")
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        match self.text.as_ref() {
            "true" if self.plain => Some(true),
            "false" if self.plain => Some(false),
            _ => None,
        }
    }

    /// Parses a decimal integer. A leading zero is rejected, because YAML readers disagree about its meaning.
    pub(super) fn int(&self) -> Option<i64> {
        let digits = self.text.strip_prefix(['-', '+']).unwrap_or(&self.text);
        let decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let leads = digits.len() > 1 && digits.starts_with('0');
        if self.plain && decimal && !leads { self.text.parse().ok() } else { None }
    }

    /// Parses a decimal number, or `.inf`.
    pub(super) fn float(&self) -> Option<f64> {
        if !self.plain {
            return None;
        }
        match self.text.strip_prefix('+').unwrap_or(&self.text) {
            ".inf" | ".Inf" | ".INF" => return Some(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => return Some(f64::NEG_INFINITY),
            ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
            _ => {}
        }
        let decimal = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        let number =
            self.text.bytes().all(decimal) && self.text.bytes().any(|b| b.is_ascii_digit());
        if number { self.text.parse().ok().filter(|float: &f64| float.is_finite()) } else { None }
    }
}

/// Converts a scalar to the value of a field, if the field takes such scalars.
pub(super) fn convert(takes: FieldType, scalar: Scalar<'_>) -> Option<Value> {
    match takes {
        FieldType::Text | FieldType::Anything | FieldType::Choice(_) => {
            Some(Value::Text(scalar.text.into_owned()))
        }
        FieldType::Duration => duration::seconds(&scalar.text).map(Value::Float),
        FieldType::Bool => scalar.boolean().map(Value::Bool),
        FieldType::Int => scalar.int().map(Value::Int),
        FieldType::Seconds => whole_units(&scalar, 1.0),
        FieldType::Milliseconds => whole_units(&scalar, 1000.0),
        FieldType::Float => scalar.float().filter(|number| !number.is_nan()).map(Value::Float),
        FieldType::Texts => Some(Value::Texts(vec![scalar.text.into_owned()])),
        FieldType::TextMap => None,
    }
}

/// Returns true if a duration has no unit and should have one. Zero and negative numbers need none.
pub(super) fn lacks_unit(field: &FieldSpec, scalar: &Scalar<'_>) -> bool {
    let is_duration =
        matches!(field.takes, FieldType::Duration | FieldType::Seconds | FieldType::Milliseconds);
    is_duration
        && !field.bare_duration
        && duration::is_bare_number(&scalar.text)
        && duration::seconds(&scalar.text).is_some_and(|number| number > 0.0)
}

/// Converts a bare integer, or a duration with a unit.
fn whole_units(scalar: &Scalar<'_>, per_second: f64) -> Option<Value> {
    let with_unit = || {
        let text = scalar.text.as_ref();
        (!duration::is_bare_number(text)).then(|| duration::whole(text, per_second)).flatten()
    };
    scalar.int().or_else(with_unit).map(Value::Int)
}

/// Describes the accepted values of a field type.
pub(super) const fn wants(takes: FieldType) -> &'static str {
    match takes {
        FieldType::Text => "a string",
        FieldType::Bool => "true or false",
        FieldType::Int => "an integer",
        FieldType::Float => "a number",
        FieldType::Texts => "a string or a list of strings",
        FieldType::TextMap => "a map of strings",
        FieldType::Choice(_) => "one of its words",
        FieldType::Seconds => "seconds or a duration such as 5m",
        FieldType::Milliseconds => "milliseconds or a duration such as 5s",
        FieldType::Duration => "a duration such as 90s",
        FieldType::Anything => "anything",
    }
}

/// Returns advice for a scalar of the wrong type.
pub(super) fn advice(takes: FieldType, scalar: &Scalar<'_>) -> Option<String> {
    let bare = Scalar { text: Cow::Borrowed(scalar.text.as_ref()), plain: true };
    if !scalar.plain && convert(takes, bare).is_some() {
        return Some(format!("remove the quotes: {}", scalar.text));
    }
    if let Some(duration) = short_duration(&scalar.text) {
        let short = Scalar { text: Cow::Borrowed(duration.as_str()), plain: true };
        let is_time =
            matches!(takes, FieldType::Seconds | FieldType::Milliseconds | FieldType::Duration);
        if is_time && convert(takes, short).is_some() {
            return Some(format!("write {duration}"));
        }
    }
    match takes {
        FieldType::Bool => match scalar.text.to_ascii_lowercase().as_str() {
            "yes" | "y" | "on" | "true" | "1" => Some("write true".to_owned()),
            "no" | "n" | "off" | "false" | "0" => Some("write false".to_owned()),
            _ => None,
        },
        FieldType::Int if scalar.text.chars().all(char::is_alphabetic) => {
            Some("write a number in digits, such as 3".to_owned())
        }
        FieldType::Int | FieldType::Seconds | FieldType::Milliseconds => int_advice(&scalar.text),
        FieldType::Float
            if matches!(scalar.text.to_ascii_lowercase().as_str(), "inf" | "infinity") =>
        {
            Some("write .inf".to_owned())
        }
        _ => None,
    }
}

/// Advises to write a text as a list: with its own words, if no shell would read them in another way.
pub(super) fn list_advice(name: &str, text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_./=+@".contains(&byte);
    let is_short = text.len() <= 80 && !text.trim().is_empty() && text.bytes().all(is_plain);
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = if is_short { words.join(", ") } else { "touch, /tmp/x".to_owned() };
    format!("write each word as a list item: `{name}: [{words}]`")
}

/// Returns a duration with the short unit: `5m` for `5 min`.
fn short_duration(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
    let (number, unit) = text.split_at(end);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "ms" | "msec" | "milliseconds" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        _ => return None,
    };
    Some(format!("{number}{unit}"))
}

fn int_advice(text: &str) -> Option<String> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    if let Ok(float) = plain.parse::<f64>()
        && float.is_finite()
        && float.fract() == 0.0
        && float.abs() < 1e15
    {
        return Some(format!("use plain digits: {float:.0}"));
    }
    let lower = plain.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix)
            && let Ok(number) = i64::from_str_radix(digits, radix)
        {
            return Some(format!("use decimal notation: {number}"));
        }
    }
    None
}

/// Adds a value to the hash of a definition.
pub(super) fn hash(so_far: Stable, value: &Value) -> u64 {
    match value {
        Value::Text(text) => so_far.number(1).text(text),
        Value::Bool(truth) => so_far.number(2).number(u64::from(*truth)),
        Value::Int(number) => so_far.number(3).number(number.cast_unsigned()),
        Value::Float(number) => so_far.number(4).number(number.to_bits()),
        Value::Texts(texts) => texts.iter().fold(so_far.number(5), |hash, text| hash.text(text)),
        Value::TextMap(map) => {
            map.iter().fold(so_far.number(6), |hash, (key, text)| hash.text(key).text(text))
        }
        // These values are received and never written in a file.
        Value::Secret(_) | Value::Sealed(_) => so_far,
    }
    .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Scalar<'_> {
        Scalar { text: Cow::Borrowed(text), plain: true }
    }

    /// S-10: a text that YAML 1.1 readers would convert keeps its meaning, or is rejected.
    #[test]
    fn scalars_mean_what_they_say() {
        for text in ["yes", "NO", "on", "True", "TRUE", "1", "n", ""] {
            assert_eq!(plain(text).boolean(), None, "{text}");
        }
        assert_eq!(plain("true").boolean(), Some(true));
        assert_eq!(Scalar { text: "true".into(), plain: false }.boolean(), None);
        for text in ["010", "0x10", "0o7", "1_000", "1e3", "1.0", "", "-", "99999999999999999999"] {
            assert_eq!(plain(text).int(), None, "{text}");
        }
        for (text, number) in [("0", 0), ("-1", -1), ("+7", 7), ("9223372036854775807", i64::MAX)] {
            assert_eq!(plain(text).int(), Some(number), "{text}");
        }
        for text in ["inf", "nan", "infinity", "1e999", "0x1p3", "", ".", "e"] {
            assert_eq!(plain(text).float(), None, "{text}");
        }
        for (text, number) in [("0.2", 0.2), ("1e3", 1000.0), (".5", 0.5), (".inf", f64::INFINITY)]
        {
            assert_eq!(plain(text).float(), Some(number), "{text}");
        }
    }
}
