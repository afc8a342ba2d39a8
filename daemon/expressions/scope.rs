//! The values that an expression may use.

use crate::expressions::evaluation::program::EngineValues;
use crate::expressions::value::Value;
use std::cell::{Cell, RefCell, RefMut};

/// The values of one place, by root.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    roots: Vec<(&'a str, &'a Value)>,
    engine_values: Option<&'a RefCell<EngineValues>>,
    work: Option<&'a Cell<u64>>,
}

impl<'a> Scope<'a> {
    /// Creates a scope without values.
    #[must_use]
    pub const fn new() -> Self {
        Self { roots: Vec::new(), engine_values: None, work: None }
    }

    /// Adds or replaces a root.
    #[must_use]
    pub fn with_root(mut self, name: &'a str, value: &'a Value) -> Self {
        self.roots.retain(|(root, _)| *root != name);
        self.roots.push((name, value));
        self
    }

    /// Lets several evaluations share the values that were converted for the engine.
    #[must_use]
    pub const fn with_engine_values(mut self, values: &'a RefCell<EngineValues>) -> Self {
        self.engine_values = Some(values);
        self
    }

    /// Adds the work of each evaluation to a counter; one unit is an instruction, an item or 64 bytes of data.
    #[must_use]
    pub const fn with_work(mut self, work: &'a Cell<u64>) -> Self {
        self.work = Some(work);
        self
    }

    /// Adds the work of an evaluation.
    pub(super) fn add_work(&self, units: u64) {
        if let Some(work) = self.work {
            work.set(work.get().saturating_add(units));
        }
    }

    /// Returns the shared values of the engine, if there are some.
    pub(super) fn engine_values(&self) -> Option<RefMut<'a, EngineValues>> {
        self.engine_values?.try_borrow_mut().ok()
    }

    /// Returns the roots with their values.
    pub fn roots(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.roots.iter().copied()
    }

    /// Returns the value of a name.
    pub(super) fn value_at(&self, path: &[String]) -> Option<&'a Value> {
        let (first, keys) = path.split_first()?;
        let (_, value) = self.roots.iter().find(|(root, _)| root == first)?;
        keys.iter().try_fold(*value, |value, key| match value {
            Value::Map(entries) => entries.get(key),
            _ => None,
        })
    }
}
