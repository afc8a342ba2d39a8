//! The fields of a kind: their declaration in a table, and the values that one resource has in them.
//!
//! A field knows its type and nothing of the host. Reading order: `field_spec.rs`, `field_values.rs`.

pub(crate) mod field_spec;
pub(crate) mod field_values;
