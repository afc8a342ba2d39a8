//! The expressions that were parsed and checked before.

use crate::expressions::{EngineValues, Expression, ExpressionError, Shared, Value, ValueType};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The parsed expressions by text, and the checked ones by the types of their names.
#[derive(Default)]
pub(super) struct Cache {
    pub(super) parsed: HashMap<String, Result<Expression, ExpressionError>>,
    pub(super) checked: HashMap<CheckKey, Checked>,
    /// The types of the names below `probe`, with the values and the declared types that they were made of.
    pub(super) probe_root: RefCell<Option<ProbeRoot>>,
    /// The values that were converted for the engine.
    pub(super) engine_values: RefCell<EngineValues>,
    /// The work of all evaluations so far.
    pub(super) work: Cell<u64>,
}

/// The types of the names below `probe`, with what they were made of.
pub(super) type ProbeRoot =
    (Shared<BTreeMap<String, Value>>, Arc<BTreeMap<String, ValueType>>, Arc<ValueType>);

/// The addresses of an expression and of the types that it was checked against.
pub(super) type CheckKey = (usize, [usize; 6]);

/// The result of a check. It holds the expression and the types, so that no others get their addresses.
pub(super) struct Checked {
    pub(super) result: Result<ValueType, ExpressionError>,
    pub(super) _expression: Expression,
    pub(super) _types: [Option<Arc<ValueType>>; 4],
    pub(super) _probes: Arc<BTreeMap<String, ValueType>>,
}

/// The number of different expressions that a cache holds: a compiled one takes some kilobytes.
const MOST_CACHED: usize = 4096;

/// Empties a cache that is full. The expressions of a loop, which are used again and again, are few.
pub(super) fn forget_if_many<K, V>(cache: &mut HashMap<K, V>) {
    if cache.len() >= MOST_CACHED {
        *cache = HashMap::new();
    }
}
