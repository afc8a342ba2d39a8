//! Removals: the fields of a kind that declare a resource absent.

use crate::fields::field_values::Value;

/// The fields that declare a resource of a kind absent. They are texts and truth values, so the store can
/// record them and the resource can be removed after its graph is gone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Removal {
    /// The fields that name the object.
    fields: Vec<(&'static str, Value)>,
    /// The fields that may change while the object stays the same one.
    data: Vec<(&'static str, Value)>,
    /// A text that names the object besides the fields.
    name: Option<String>,
}

impl Removal {
    /// Makes a removal without fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one field that names the object: with another value it is another object.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Self {
        self.fields.push((name, value));
        self
    }

    /// Adds one field that the removal needs and that may change while the object stays the same one.
    #[must_use]
    pub fn with_data(mut self, name: &'static str, value: Value) -> Self {
        self.data.push((name, value));
        self
    }

    /// Sets a text that names the object besides the fields.
    #[must_use]
    pub fn naming(self, name: String) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Returns the text that names the object besides the fields.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the fields that name the object, in the order in which the kind added them.
    #[must_use]
    pub fn fields(&self) -> &[(&'static str, Value)] {
        &self.fields
    }

    /// Returns the other fields, in the order in which the kind added them.
    #[must_use]
    pub fn data(&self) -> &[(&'static str, Value)] {
        &self.data
    }
}
