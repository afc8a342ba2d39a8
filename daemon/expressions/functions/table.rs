//! The closed list of functions: names, usage, types. A function is written as `name(x, …)` or as `x | name(…)`.

use crate::expressions::functions::calls as run;
use crate::expressions::functions::types;
use crate::expressions::value::Value;
use crate::expressions::value_type::ValueType;

/// A function of the language.
#[derive(Debug)]
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// The usage, as `explain` shows it.
    pub usage: &'static str,
    /// One sentence about the result.
    pub about: &'static str,
    /// The minimum number of arguments.
    pub(in crate::expressions) least: usize,
    /// The maximum number of arguments.
    pub(in crate::expressions) most: usize,
    /// True if Jinja has no filter of this name, so that templates get this one.
    pub(in crate::expressions) is_own: bool,
    pub(in crate::expressions) result_type: fn(&[Argument<'_>]) -> Result<ValueType, String>,
    pub(in crate::expressions) run: fn(Vec<Value>) -> Result<Value, String>,
}

/// The type of an argument, and its text if it is a literal.
#[derive(Debug)]
pub(in crate::expressions) struct Argument<'a> {
    pub(in crate::expressions) value_type: ValueType,
    pub(in crate::expressions) literal: Option<&'a str>,
}

macro_rules! functions {
    ($($name:literal, $usage:literal, $least:expr, $most:expr, $types:expr, $run:expr, $about:literal;)*) => {
        &[$(Function {
            name: $name,
            usage: $usage,
            about: $about,
            least: $least,
            most: $most,
            is_own: is_own($name),
            result_type: $types,
            run: $run,
        },)*]
    };
}

/// All functions, by subject.
pub(in crate::expressions) const FUNCTIONS: &[Function] = functions! {
    "lower", "text | lower", 1, 1, types::text_to_text, run::lower,
        "The text in small letters.";
    "upper", "text | upper", 1, 1, types::text_to_text, run::upper,
        "The text in capital letters.";
    "trim", "text | trim", 1, 1, types::text_to_text, run::trim,
        "The text without the white space around it.";
    "replace", "text | replace(\"old\", \"new\")", 3, 3, types::text_to_text, run::replace,
        "The text with each `old` replaced.";
    "split", "text | split(\",\")", 2, 2, types::text_to_list, run::split,
        "The parts between the separators, as a list.";
    "join", "list | join(\",\")", 2, 2, types::join_items, run::join,
        "The items with the separator between them, as a string.";
    "startswith", "text | startswith(\"web\")", 2, 2, types::texts_to_bool, run::startswith,
        "True if the text begins with the other.";
    "endswith", "text | endswith(\".org\")", 2, 2, types::texts_to_bool, run::endswith,
        "True if the text ends with the other.";
    "matches", "text | matches(\"^web[0-9]+$\")", 2, 2, types::match_pattern, run::matches,
        "True if the pattern, a literal, matches a part of the text.";
    "basename", "path | basename", 1, 1, types::text_to_text, run::basename,
        "The part after the last `/`.";
    "dirname", "path | dirname", 1, 1, types::text_to_text, run::dirname,
        "The part before the last `/`.";
    "length", "list | length", 1, 1, types::count_items, run::length,
        "The number of items, keys or characters.";
    "first", "list | first", 1, 1, types::list_to_item, run::first,
        "The first item; an empty list is an error.";
    "last", "list | last", 1, 1, types::list_to_item, run::last,
        "The last item; an empty list is an error.";
    "sort", "list | sort", 1, 1, types::sort_items, run::sort,
        "The items in ascending order.";
    "unique", "list | unique", 1, 1, types::sort_items, run::unique,
        "The items without repetitions, each at its first place.";
    "map", "list | map(\"key\")", 2, 2, types::map_items, run::map,
        "The values of one key of each map.";
    "select", "list | select(\"key\", value)", 2, 3, types::select_items, run::select,
        "The maps whose key has this value, or is true.";
    "keys", "map | keys", 1, 1, types::keys_of, run::keys,
        "The keys of a map in ascending order.";
    "min", "min(a, b)", 1, usize::MAX, types::extreme, run::min,
        "The smallest of several values or of a list; an empty list is an error.";
    "max", "max(a, b)", 1, usize::MAX, types::extreme, run::max,
        "The largest of several values or of a list; an empty list is an error.";
    "abs", "number | abs", 1, 1, types::number_to_number, run::abs,
        "The number without its sign.";
    "round", "number | round", 1, 2, types::round, run::round,
        "The nearest int; with a number of digits, a float.";
    "int", "value | int", 1, 1, types::to_int, run::to_int,
        "The value as int: a float loses its fraction; a text that is no integer is an error.";
    "string", "value | string", 1, 1, types::to_text, run::to_text,
        "The value as string.";
    "bool", "value | bool", 1, 1, types::to_bool, run::to_bool,
        "The value as bool: the texts `true` and `false`, and each int, of which 0 is false.";
    "default", "params.x | default(value)", 2, 2, types::never, run::never,
        "The value if it is there, else the other: for params and for keys that may be absent.";
    "to_json", "value | to_json", 1, 1, types::to_json, run::to_json,
        "The value as JSON on one line.";
    "version_ge", "version | version_ge(\"1.2\")", 2, 2, types::texts_to_bool, run::version_ge,
        "True if the version is the other or later, by the order of dpkg.";
    "version_gt", "version | version_gt(\"1.2\")", 2, 2, types::texts_to_bool, run::version_gt,
        "True if the version is later, by the order of dpkg.";
    "version_le", "version | version_le(\"1.2\")", 2, 2, types::texts_to_bool, run::version_le,
        "True if the version is the other or earlier, by the order of dpkg.";
    "version_lt", "version | version_lt(\"1.2\")", 2, 2, types::texts_to_bool, run::version_lt,
        "True if the version is earlier, by the order of dpkg.";
    "ip_in", "address | ip_in(\"10.0.0.0/8\")", 2, 2, types::address_in, run::ip_in,
        "True if the IP address lies in the network.";
};

/// Returns true for the functions that Jinja lacks.
const fn is_own(name: &str) -> bool {
    matches!(
        name.as_bytes(),
        b"startswith"
            | b"endswith"
            | b"matches"
            | b"basename"
            | b"dirname"
            | b"keys"
            | b"to_json"
            | b"ip_in"
            | [b'v', b'e', b'r', b's', b'i', b'o', b'n', b'_', ..]
    )
}

/// Returns the function of this name.
pub(in crate::expressions) fn function_named(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// Returns the names of all functions.
pub(in crate::expressions) fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.name)
}

/// Returns all functions, for `explain`.
#[must_use]
pub fn all_functions() -> &'static [Function] {
    FUNCTIONS
}
