//! The work of turning lists and maps into text. A template can build a list that contains another list many times:
//! such a value has few parts in memory and an endless text.

use super::bindings::CHARGE;
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, State};
use std::sync::Arc;

/// Replaces the filters that turn a list or a map into text by ones that charge each part before.
pub(super) fn add_bounded_filters(engine: &mut Environment<'static>) {
    engine.add_filter("string", |state: &State<'_, '_>, value: &Value| {
        charge_parts(state, value)?;
        minijinja::filters::string(state, value)
    });
    engine.add_filter("pprint", |state: &State<'_, '_>, value: &Value| {
        charge_parts(state, value)?;
        Ok::<_, Error>(minijinja::filters::pprint(value))
    });
    engine.add_filter("lines", |state: &State<'_, '_>, value: &Value| {
        charge_pieces(state, value, |text| text.matches('\n').count())?;
        minijinja::filters::lines(value)
    });
    engine.add_filter(
        "split",
        |state: &State<'_, '_>, value: &Value, by: Option<Arc<str>>, most: Option<i64>| {
            charge_pieces(state, value, |text| match &by {
                Some(by) if !by.is_empty() => text.matches(by.as_ref()).count(),
                _ => text.split_whitespace().count(),
            })?;
            minijinja::filters::split(value, by, most)
        },
    );
    engine.add_filter("list", |state: &State<'_, '_>, value: Value| {
        charge_pieces(state, &value, |text| text.chars().count())?;
        minijinja::filters::list(state, value)
    });
    engine.add_filter(CHARGE, |state: &State<'_, '_>, value: Value| {
        charge_parts(state, &value)?;
        Ok::<_, Error>(value)
    });
}

/// Charges ten units of fuel for each piece into which a text is cut.
///
/// # Errors
/// The error of the engine if the fuel is used up.
fn charge_pieces(
    state: &State<'_, '_>,
    value: &Value,
    count: impl FnOnce(&str) -> usize,
) -> Result<(), Error> {
    let pieces = value.as_str().map_or(0, count);
    state.consume_fuel(u64::try_from(pieces).unwrap_or(u64::MAX).saturating_mul(10))
}

/// Charges one unit of fuel for each part of a nested value, and for each 64 bytes of its texts.
///
/// # Errors
/// The error of the engine if the fuel is used up.
pub(super) fn charge_parts(state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    let mut open = vec![value.clone()];
    while let Some(next) = open.pop() {
        let bytes = next.as_str().map_or(0, str::len);
        state.consume_fuel(1 + u64::try_from(bytes / 64).unwrap_or(u64::MAX))?;
        match next.kind() {
            ValueKind::Seq | ValueKind::Iterable => {
                for item in next.try_iter()? {
                    state.consume_fuel(1)?;
                    open.push(item);
                }
            }
            ValueKind::Map => {
                for key in next.try_iter()? {
                    open.push(next.get_item(&key)?);
                }
            }
            _ => {}
        }
    }
    Ok(())
}
