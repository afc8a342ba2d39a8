//! The filters of templates that make texts. The engine charges a text when it has been made; each filter here knows
//! the length of its result before, and refuses one that is too long.

use super::bounded_text::{
    LONGEST_TEXT, check_length, debug_text_of, escaped_length, length_in_quotes, length_of, text_of,
};
use super::nested_values::{charge_parts, charge_pieces, charge_reading, check_name};
use minijinja::filters;
use minijinja::value::{Kwargs, Rest, StringInput, Value, ValueKind, ValueOrKwargs, from_args};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State};
use std::sync::Arc;

/// Returns the length of the result for the values of a call.
type Length = fn(&[Value]) -> Result<usize, Error>;

/// The filters with their names inside of the engine, and the lengths of their results.
const BOUNDED: [(&str, &str, Length); 12] = [
    ("upper", "_sf_upper", changed_length),
    ("lower", "_sf_lower", changed_length),
    ("title", "_sf_title", changed_length),
    ("capitalize", "_sf_capitalize", changed_length),
    ("trim", "_sf_trim", first_length),
    ("safe", "_sf_safe", first_length),
    ("escape", "_sf_escape", entities_length),
    ("e", "_sf_escape", entities_length),
    ("indent", "_sf_indent", indented_length),
    ("replace", "_sf_replace", replaced_length),
    ("format", "_sf_format", formatted_length),
    ("join", "_sf_join", joined_length),
];

/// Adds the filters to the engine of templates.
pub(super) fn add_text_filters(engine: &mut Environment<'static>) {
    engine.add_filter("_sf_upper", filters::upper);
    engine.add_filter("_sf_lower", filters::lower);
    engine.add_filter("_sf_title", filters::title);
    engine.add_filter("_sf_capitalize", filters::capitalize);
    engine.add_filter("_sf_trim", filters::trim);
    engine.add_filter("_sf_safe", filters::safe);
    engine.add_filter("_sf_escape", filters::escape);
    engine.add_filter("_sf_indent", filters::indent);
    engine.add_filter("_sf_replace", replace);
    engine.add_filter("_sf_format", filters::format);
    engine.add_filter("_sf_join", filters::join);
    for (name, inner, length) in BOUNDED {
        engine.add_filter(name, move |state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>| {
            let values = values.into_values();
            charge_values(state, &values)?;
            if let ("trim", [text, letters, ..]) = (name, &*values) {
                // Each letter of the text is searched among the others.
                let work = length_of(text)?.saturating_mul(length_of(letters)?) / 64;
                state.consume_fuel(u64::try_from(work).unwrap_or(u64::MAX))?;
            }
            if name == "join" {
                check_name(&values, 2)?;
            }
            let length = length(&values)?;
            // Outside of `autoescape`, a text is copied as it is.
            let factor = if matches!(state.auto_escape(), AutoEscape::None) { 1 } else { 6 };
            check_length(length.saturating_mul(factor))?;
            state.apply_filter(inner, &values)
        });
    }
    engine.add_filter("string", |state: &State<'_, '_>, value: &Value| {
        charge_parts(state, value)?;
        length_of(value)?;
        filters::string(state, value)
    });
    engine.add_filter("pprint", |state: &State<'_, '_>, value: &Value| {
        charge_parts(state, value)?;
        debug_text_of(value)
    });
    engine.add_filter("lines", |state: &State<'_, '_>, value: &Value| {
        charge_pieces(state, value, |text| text.matches('\n').count())?;
        filters::lines(value)
    });
    engine.add_filter(
        "split",
        |state: &State<'_, '_>, value: &Value, by: Option<Arc<str>>, most: Option<i64>| {
            charge_pieces(state, value, |text| match &by {
                Some(by) if !by.is_empty() => text.matches(by.as_ref()).count(),
                Some(_) => text.chars().count(),
                None => text.split_whitespace().count(),
            })?;
            filters::split(value, by, most)
        },
    );
}

/// Charges the values of a call. A list or map is turned into text by the engine: its text is not too long.
fn charge_values(state: &State<'_, '_>, values: &[Value]) -> Result<(), Error> {
    for value in values {
        charge_reading(state, value)?;
        if value.as_str().is_none() && value.kind() == ValueKind::Map {
            length_in_quotes(value)?;
        }
    }
    Ok(())
}

/// Replaces a text, at most a number of times.
fn replace(state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let values = values.into_values();
    let (text, old, new, count, named): (
        StringInput<'_>,
        StringInput<'_>,
        StringInput<'_>,
        Option<i64>,
        Kwargs,
    ) = from_args(&values)?;
    let count = match count {
        Some(count) => Some(count),
        None => named.get::<Option<i64>>("count")?,
    };
    named.assert_all_used()?;
    match count.and_then(|count| usize::try_from(count).ok()) {
        None => filters::replace(state, text, old, new),
        Some(count) => Ok(text.as_str().replacen(old.as_str(), new.as_str(), count).into()),
    }
}

fn first_length(values: &[Value]) -> Result<usize, Error> {
    values.first().map_or(Ok(0), length_of)
}

/// Returns the length of a text in capital or small letters.
fn changed_length(values: &[Value]) -> Result<usize, Error> {
    let Some(value) = values.first() else { return Ok(0) };
    let text = text_of(value)?;
    if text.is_ascii() {
        return Ok(text.len());
    }
    let longest = |c: char| {
        let upper: usize = c.to_uppercase().map(char::len_utf8).sum();
        upper.max(c.to_lowercase().map(char::len_utf8).sum())
    };
    Ok(text.chars().map(longest).sum())
}

fn entities_length(values: &[Value]) -> Result<usize, Error> {
    let Some(value) = values.first() else { return Ok(0) };
    Ok(escaped_length(&text_of(value)?))
}

/// Returns a number among the values of a call, by its place or its name.
fn number_of(values: &[Value], place: usize, name: &str) -> Option<usize> {
    let named = values.last().and_then(|last| last.get_attr(name).ok());
    values.get(place).and_then(Value::as_usize).or_else(|| named.and_then(|it| it.as_usize()))
}

fn indented_length(values: &[Value]) -> Result<usize, Error> {
    let Some(value) = values.first() else { return Ok(0) };
    let text = text_of(value)?;
    let lines = text.matches('\n').count() + 1;
    let width = number_of(values, 1, "width").unwrap_or(4);
    Ok(text.len().saturating_add(lines.saturating_mul(width.saturating_add(1))))
}

fn replaced_length(values: &[Value]) -> Result<usize, Error> {
    let [value, old, new, ..] = values else { return Ok(0) };
    let (text, old, new) = (text_of(value)?, text_of(old)?, text_of(new)?);
    let count = text.matches(&*old).count();
    let added = count.saturating_mul(new.len().saturating_sub(old.len()));
    Ok(text.len().saturating_add(added))
}

/// Returns at least the length of a formatted text: each `%` stands for the longest value, and each number is a width.
fn formatted_length(values: &[Value]) -> Result<usize, Error> {
    /// The longest text of a number.
    const NUMBER: usize = 400;
    let Some((first, others)) = values.split_first() else { return Ok(0) };
    let text = text_of(first)?;
    let (mut longest, mut widest) = (NUMBER, 0);
    for value in others {
        longest = longest.max(length_in_quotes(value)?);
        let width = value.as_i64().map_or(0, i64::unsigned_abs);
        widest = widest.max(usize::try_from(width).unwrap_or(usize::MAX));
    }
    let signs = text.matches('%').count();
    let stars = text.matches('*').count();
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let widths = numbers.map(|digits| digits.parse().unwrap_or(usize::MAX));
    let widths = widths.fold(stars.saturating_mul(widest), usize::saturating_add);
    let shown = signs.saturating_mul(longest);
    Ok(text.len().saturating_add(widths).saturating_add(shown))
}

fn joined_length(values: &[Value]) -> Result<usize, Error> {
    let Some((list, others)) = values.split_first() else { return Ok(0) };
    let named = others.last().and_then(|last| last.get_attr("d").ok());
    let named = named.filter(|it| !it.is_undefined());
    let by = others.first().filter(|it| it.kind() != ValueKind::Map).or(named.as_ref());
    let by = by.map_or(Ok(0), length_of)?;
    let mut length = 0_usize;
    for item in list.try_iter().into_iter().flatten() {
        length = length.saturating_add(length_of(&item)?).saturating_add(by);
        if length > LONGEST_TEXT.saturating_add(by) {
            break;
        }
    }
    Ok(length.saturating_sub(by))
}

/// Checks that the sum of a list is one of numbers: the sum of texts copies the first of them again and again.
pub(super) fn sum(state: &State<'_, '_>, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let values = values.into_values();
    check_name(&values, 1)?;
    let (list, attribute, start, named): (Value, Option<&str>, Option<Value>, Kwargs) =
        from_args(&values)?;
    let start = match start {
        Some(start) => Some(start),
        None => named.get::<Option<Value>>("start")?,
    };
    if start.as_ref().is_some_and(|start| start.kind() != ValueKind::Number) {
        let what = "`sum` adds numbers: the start is no number";
        return Err(Error::new(ErrorKind::InvalidOperation, what));
    }
    filters::sum(state, list, attribute, start, named)
}
