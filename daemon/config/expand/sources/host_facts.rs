//! The facts of the host, and their types.

use crate::expressions::{Value, ValueType};
use crate::facts::{self, HostRoot, SystemAnswers};
use std::sync::Arc;

/// Collects the facts of this host.
pub(in crate::config::expand) fn collect() -> Value {
    facts::collect(&HostRoot::of_this_host(), &SystemAnswers::of_this_host()).values
}

/// Returns the type of facts.
pub(in crate::config::expand) fn schema_type(facts: &Value) -> Arc<ValueType> {
    Arc::new(facts::facts_type(facts))
}
