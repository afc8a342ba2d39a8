//! How a resource is removed: the fields of its own kind that declare it absent.

use crate::kind::{Fields, Invalid, KindSpec, Place, Value};
use crate::resource::Resource;
use std::path::PathBuf;
use std::sync::Arc;

/// Fields of the kind of a resource that declare it absent: texts and truth values, of which enough can be kept to remove it when
/// the graph that declared it is gone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Removal(Vec<(&'static str, Value)>);

impl Removal {
    /// With no field yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Self {
        self.0.push((name, value));
        self
    }

    /// The fields, in the order in which the kind names them.
    #[must_use]
    pub fn fields(&self) -> &[(&'static str, Value)] {
        &self.0
    }

    /// The resource that removes it.
    pub fn build(&self, spec: &KindSpec, name: &str) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
        let mut fields = Fields::default();
        for (field, value) in &self.0 {
            fields.insert(field, value.clone());
        }
        (spec.build)(name, fields, &Place { base: PathBuf::from("/") })
    }
}
