//! Removals: the fields of a kind that declare a resource absent.

use crate::kind::{Fields, Invalid, KindSpec, Place, Value};
use crate::resource::Resource;
use std::path::PathBuf;
use std::sync::Arc;

/// The fields that declare a resource of a kind absent. They are texts and truth values, so the store can
/// record them and the resource can be removed after its graph is gone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Removal(Vec<(&'static str, Value)>);

impl Removal {
    /// Makes a removal without fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one field.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Self {
        self.0.push((name, value));
        self
    }

    /// Returns the fields in the order in which the kind added them.
    #[must_use]
    pub fn fields(&self) -> &[(&'static str, Value)] {
        &self.0
    }

    /// Builds the resource that carries out the removal.
    ///
    /// # Errors
    ///
    /// Returns every problem of the fields, for example after the kind has changed in a new version.
    pub fn build(&self, spec: &KindSpec, name: &str) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
        let mut fields = Fields::default();
        for (field, value) in &self.0 {
            fields.insert(field, value.clone());
        }
        (spec.build)(name, fields, &Place { base: PathBuf::from("/") })
    }
}
