//! The work of values: of turning lists and maps into text, of comparing and of sorting them. A template can build a
//! list that contains another list many times: such a value has few parts in memory and an endless text.

use super::absent_facts::ABSENT;
use super::bindings::CHARGE;
use super::bounded_text::text_of;
use super::operands::{ADDED, COMPARED, FACTOR, INDEXED, JOINED, SEARCHED};
use super::shared_view::view_of;
use super::text_filters::sum;
use minijinja::filters;
use minijinja::tests;
use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State};
use std::collections::BTreeMap;

/// The share of a unit of fuel that a byte costs.
const BYTES_OF_UNIT: u64 = 64;

/// The cost of a part of a list or map that is compared, in bytes.
const BYTES_OF_PART: u64 = 8;

/// The cost of a part of a list or map that is copied, in bytes.
const BYTES_OF_SLOT: u64 = 32;

/// The message about a product that would repeat a text or list.
pub(super) const REPEATED: &str = "`*` multiplies numbers, here it has a string or list";

/// The fuel that rounding to a number of digits costs: it writes more than a thousand digits.
const FUEL_OF_ROUNDING: u64 = 64;

/// The filters that compare items, with their names inside of the engine.
const SORTING: [(&str, &str); 6] = [
    ("sort", "_sf_sort"),
    ("unique", "_sf_unique"),
    ("groupby", "_sf_groupby"),
    ("dictsort", "_sf_dictsort"),
    ("min", "_sf_min"),
    ("max", "_sf_max"),
];

/// The filters that read one part of each item, with their names inside of the engine.
const READING: [(&str, &str); 3] =
    [("map", "_sf_map"), ("selectattr", "_sf_selectattr"), ("rejectattr", "_sf_rejectattr")];

/// The maximum length of the name of a part, in bytes: it is read for each item.
const LONGEST_NAME: usize = 256;

/// The tests that read whole values, with their names inside of the engine.
const COMPARING: [(&str, &str); 21] = [
    ("eq", "_sf_eq"),
    ("equalto", "_sf_eq"),
    ("==", "_sf_eq"),
    ("ne", "_sf_ne"),
    ("!=", "_sf_ne"),
    ("lt", "_sf_lt"),
    ("lessthan", "_sf_lt"),
    ("<", "_sf_lt"),
    ("le", "_sf_le"),
    ("<=", "_sf_le"),
    ("gt", "_sf_gt"),
    ("greaterthan", "_sf_gt"),
    (">", "_sf_gt"),
    ("ge", "_sf_ge"),
    (">=", "_sf_ge"),
    ("in", "_sf_in"),
    ("sameas", "_sf_sameas"),
    ("startingwith", "_sf_startingwith"),
    ("endingwith", "_sf_endingwith"),
    ("lower", "_sf_lower"),
    ("upper", "_sf_upper"),
];

/// Adds the filters and tests that charge the values that they read.
pub(super) fn add_bounded_filters(engine: &mut Environment<'static>) {
    engine.add_filter("list", |state: &State<'_, '_>, value: Value| {
        charge_pieces(state, &value, |text| text.chars().count())?;
        filters::list(state, value)
    });
    engine.add_filter("sum", sum);
    engine.add_filter("round", round);
    engine.add_filter("batch", |state: &State<'_, '_>, value: Value, count, fill| {
        charge_slots(state, &value, count)?;
        filters::batch(state, value, count, fill)
    });
    engine.add_filter("slice", |state: &State<'_, '_>, value: Value, count, fill| {
        charge_slots(state, &value, count)?;
        filters::slice(state, value, count, fill)
    });
    engine.add_filter("chain", chain);
    engine.add_filter("zip", zip);
    engine.add_filter(CHARGE, |state: &State<'_, '_>, value: Value| {
        let is_lazy = charge_parts(state, &value)?;
        if is_lazy { settled(&value, 0) } else { Ok(value) }
    });
    add_operands(engine);
    add_sorting(engine);
    add_tests(engine);
}

/// Adds the filters behind the operands of operators.
fn add_operands(engine: &mut Environment<'static>) {
    engine.add_filter(COMPARED, |state: &State<'_, '_>, value: Value| {
        charge_reading(state, &value)?;
        Ok::<_, Error>(view_of(value))
    });
    engine.add_filter(SEARCHED, |state: &State<'_, '_>, value: Value| {
        if value.kind() != ValueKind::Map {
            charge_reading(state, &value)?;
        }
        Ok::<_, Error>(view_of(value))
    });
    // The engine has charged a text, since it is the input of a filter.
    engine.add_filter(INDEXED, view_of);
    engine.add_filter(ABSENT, |value: &Value| {
        if value.is_undefined() {
            Value::from(BTreeMap::<String, Value>::new())
        } else {
            value.clone()
        }
    });
    engine.add_filter(FACTOR, |value: Value| {
        let kinds = [ValueKind::String, ValueKind::Seq, ValueKind::Iterable];
        if kinds.contains(&value.kind()) {
            return Err(Error::new(ErrorKind::InvalidOperation, REPEATED));
        }
        Ok(value)
    });
    // The engine charges a list that a filter gives back, but not a part of a list.
    engine.add_filter(ADDED, |state: &State<'_, '_>, value: Value| {
        if value.kind() == ValueKind::Iterable {
            charge_slots(state, &value, 0)?;
        }
        Ok::<_, Error>(value)
    });
    engine.add_filter(JOINED, |state: &State<'_, '_>, value: Value| {
        if value.as_object().is_none() {
            return Ok(value);
        }
        charge_parts(state, &value)?;
        text_of(&value).map(Value::from)
    });
}

fn add_sorting(engine: &mut Environment<'static>) {
    engine.add_filter("_sf_sort", filters::sort);
    engine.add_filter("_sf_unique", filters::unique);
    engine.add_filter("_sf_groupby", filters::groupby);
    engine.add_filter("_sf_dictsort", filters::dictsort);
    engine.add_filter("_sf_min", filters::min);
    engine.add_filter("_sf_max", filters::max);
    engine.add_filter("_sf_map", filters::map);
    engine.add_filter("_sf_selectattr", filters::selectattr);
    engine.add_filter("_sf_rejectattr", filters::rejectattr);
    for (name, inner) in READING {
        engine.add_filter(name, move |state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>| {
            let values = values.into_values();
            check_name(&values, 1)?;
            state.apply_filter(inner, &values)
        });
    }
    for (name, inner) in SORTING {
        engine.add_filter(name, move |state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>| {
            let values = values.into_values();
            check_name(&values, 1)?;
            if let Some(list) = values.first() {
                let read = charge_reading(state, list)?;
                let rounds = list.len().map_or(64, |length| length.max(1).ilog2() + 1);
                let read = read.saturating_mul(u64::from(rounds));
                state.consume_fuel(read / BYTES_OF_UNIT)?;
            }
            state.apply_filter(inner, &values)
        });
    }
}

/// Checks the name of a part, which is among the values of a call by its place or as `attribute`.
///
/// # Errors
/// An error for users if the name is too long.
pub(super) fn check_name(values: &[Value], place: usize) -> Result<(), Error> {
    let named = values.last().and_then(|last| last.get_attr("attribute").ok());
    let all = values.get(place).into_iter().chain(&named);
    if all.filter_map(Value::as_str).all(|name| name.len() <= LONGEST_NAME) {
        return Ok(());
    }
    let what = format!("the name of an attribute has at most {LONGEST_NAME} bytes");
    Err(Error::new(ErrorKind::InvalidOperation, what))
}

fn add_tests(engine: &mut Environment<'static>) {
    engine.add_test("_sf_eq", tests::is_eq);
    engine.add_test("_sf_ne", tests::is_ne);
    engine.add_test("_sf_lt", tests::is_lt);
    engine.add_test("_sf_le", tests::is_le);
    engine.add_test("_sf_gt", tests::is_gt);
    engine.add_test("_sf_ge", tests::is_ge);
    engine.add_test("_sf_in", tests::is_in);
    engine.add_test("_sf_sameas", tests::is_sameas);
    engine.add_test("_sf_startingwith", tests::is_startingwith);
    engine.add_test("_sf_endingwith", tests::is_endingwith);
    engine.add_test("_sf_lower", tests::is_lower);
    engine.add_test("_sf_upper", tests::is_upper);
    // The engine makes a list of the letters of a text to find out.
    engine.add_test("iterable", |value: &Value| {
        value.kind() == ValueKind::String || tests::is_iterable(value)
    });
    for (name, inner) in COMPARING {
        engine.add_test(
            name,
            move |state: &mut State<'_, '_>, values: Rest<Value>| -> Result<bool, Error> {
                for value in values.iter() {
                    charge_reading(state, value)?;
                }
                state.perform_test(inner, &values)
            },
        );
    }
}

fn round(
    state: &State<'_, '_>,
    value: Value,
    digits: Option<i32>,
    method: Option<&str>,
    named: Kwargs,
) -> Result<Value, Error> {
    if !value.is_integer() {
        state.consume_fuel(FUEL_OF_ROUNDING)?;
    }
    filters::round(value, digits, method, named)
}

/// Charges ten units of fuel for each piece into which a text is cut.
///
/// # Errors
/// The error of the engine if the fuel is used up.
pub(super) fn charge_pieces(
    state: &State<'_, '_>,
    value: &Value,
    count: impl FnOnce(&str) -> usize,
) -> Result<(), Error> {
    let pieces = value.as_str().map_or(0, count);
    state.consume_fuel(u64::try_from(pieces).unwrap_or(u64::MAX).saturating_mul(10))
}

/// Charges the lists that the items of a list and a number of other values need.
fn charge_slots(state: &State<'_, '_>, value: &Value, count: usize) -> Result<(), Error> {
    let slots = value.len().unwrap_or(0).saturating_add(count);
    let bytes = u64::try_from(slots).unwrap_or(u64::MAX).saturating_mul(BYTES_OF_SLOT);
    state.consume_fuel(bytes / BYTES_OF_UNIT)
}

/// The maximum depth of a value with parts that are computed when they are read.
const DEEPEST: usize = 64;

/// Returns a value whose parts are lists and maps. A part of a list is read through all the parts that it is a part of:
/// a name that is bound to a part of itself, again and again, would need stack for each.
fn settled(value: &Value, depth: usize) -> Result<Value, Error> {
    if depth > DEEPEST {
        let what = format!("a list or map has at most {DEEPEST} levels");
        return Err(Error::new(ErrorKind::InvalidOperation, what));
    }
    let is_flat = |item: &Value| item.as_object().is_none();
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            let mut items = value.try_iter()?.collect::<Vec<_>>();
            if value.is_tuple() && items.iter().all(is_flat) {
                return Ok(value.clone());
            }
            for item in &mut items {
                *item = settled(item, depth + 1)?;
            }
            Ok(Value::from(items))
        }
        ValueKind::Map => {
            let mut entries = Vec::new();
            for key in value.try_iter()? {
                let entry = settled(&value.get_item(&key)?, depth + 1)?;
                entries.push((key, entry));
            }
            Ok(Value::from_pairs(entries))
        }
        _ => Ok(value.clone()),
    }
}

/// Returns the items of several lists in pairs.
fn zip(state: &State<'_, '_>, first: Value, others: Rest<Value>) -> Result<Value, Error> {
    let width = u64::try_from(others.len()).unwrap_or(u64::MAX).saturating_add(2);
    let mut items = Vec::new();
    for item in filters::zip(state, first, others)?.try_iter()? {
        state.consume_fuel(width)?;
        items.push(item);
    }
    Ok(Value::from(items))
}

/// Joins lists, or maps of which the last with a key wins.
fn chain(state: &State<'_, '_>, first: Value, others: Rest<Value>) -> Result<Value, Error> {
    let all: Vec<Value> = std::iter::once(first).chain(others.0).collect();
    if all.iter().all(|value| value.kind() == ValueKind::Map) {
        let mut entries = Vec::new();
        for map in all {
            for key in map.try_iter()? {
                state.consume_fuel(1)?;
                entries.push((key.clone(), map.get_item(&key)?));
            }
        }
        return Ok(Value::from_pairs(entries));
    }
    let mut items = Vec::new();
    for list in all {
        for item in list.try_iter()? {
            state.consume_fuel(1)?;
            items.push(item);
        }
    }
    Ok(Value::from(items))
}

/// Charges one unit of fuel for each part of a nested value, and for each 64 bytes of its texts. Returns true if a part
/// is computed when it is read.
///
/// # Errors
/// The error of the engine if the fuel is used up.
pub(super) fn charge_parts(state: &State<'_, '_>, value: &Value) -> Result<bool, Error> {
    let mut open = vec![value.clone()];
    let mut is_lazy = false;
    while let Some(next) = open.pop() {
        let bytes = next.as_str().map_or(0, str::len);
        state.consume_fuel(1 + u64::try_from(bytes / 64).unwrap_or(u64::MAX))?;
        is_lazy |= next.kind() == ValueKind::Iterable;
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
    Ok(is_lazy)
}

/// Charges the bytes of the texts of a value, and a little for each part of a list or map. Returns the bytes.
///
/// # Errors
/// The error of the engine if the fuel is used up.
pub(super) fn charge_reading(state: &State<'_, '_>, value: &Value) -> Result<u64, Error> {
    let mut reading = Reading { state, total: 0, due: 0, open: Vec::new() };
    reading.add(value.clone(), 0)?;
    while let Some(next) = reading.open.pop() {
        match next.kind() {
            ValueKind::Map => {
                for key in next.try_iter()? {
                    let item = next.get_item(&key)?;
                    reading.add(key, BYTES_OF_PART)?;
                    reading.add(item, BYTES_OF_PART)?;
                }
            }
            _ => {
                for item in next.try_iter()? {
                    reading.add(item, BYTES_OF_PART)?;
                }
            }
        }
    }
    reading.state.consume_fuel(reading.due / BYTES_OF_UNIT)?;
    Ok(reading.total)
}

/// The parts of a value that are charged one after the other.
struct Reading<'a> {
    state: &'a State<'a, 'a>,
    total: u64,
    /// The bytes that are not charged yet.
    due: u64,
    open: Vec<Value>,
}

impl Reading<'_> {
    fn add(&mut self, value: Value, bytes: u64) -> Result<(), Error> {
        /// The bytes that are charged at once.
        const MOST_DUE: u64 = 4096;
        let length = value.as_str().map_or(0, str::len);
        let bytes = bytes.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        self.total = self.total.saturating_add(bytes);
        self.due = self.due.saturating_add(bytes);
        if self.due >= MOST_DUE {
            self.state.consume_fuel(self.due / BYTES_OF_UNIT)?;
            self.due = 0;
        }
        if matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
            self.open.push(value);
        }
        Ok(())
    }
}
