//! The words that the parser of the graph language accepts, for `explain`.

use super::modules::{USE_KEYS, params};
use super::resources::{conditions, loops, templates};
use super::sources::variables;
use super::{GRAPH_KEYS, MODULE_KEYS};
use crate::config::ast::Relation;
use crate::config::read::receives::SUPPLY;
use crate::expressions;
use std::collections::BTreeSet;

/// The keys of each resource, besides the fields of its kind and the edges.
const RESOURCE_KEYS: [&str; 8] =
    ["name", "aliases", "meta", "recv", "when", "for_each", "labels", "export"];
/// The keys of an edge at the top of a file, and those of a received value.
const OTHER_KEYS: [&str; 6] = ["from", "to", "kind", "key", "secret", "default"];
/// The roots of names in expressions.
const ROOTS: [&str; 5] = ["vars", "facts", "params", "item", "probe"];

/// Returns each word of the graph language: keys, types, names of functions and words of expressions.
#[must_use]
pub fn language_words() -> BTreeSet<&'static str> {
    let keys = GRAPH_KEYS.iter().chain(&MODULE_KEYS).chain(&USE_KEYS);
    let declared = params::KEYS.iter().chain(&params::TYPES).chain(&loops::KEYS);
    let others =
        templates::KEYS.iter().chain(&conditions::ASSERT_KEYS).chain(&variables::FILE_KEYS);
    let of_resources = RESOURCE_KEYS.iter().chain(&Relation::NAMES).chain(&OTHER_KEYS);
    let all = keys.chain(declared).chain(others).chain(of_resources).chain(&SUPPLY).chain(&ROOTS);
    all.copied().chain(expressions::words()).collect()
}
