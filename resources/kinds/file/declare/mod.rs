//! The declaration of a file: the fields of the graph become a resource.
//!
//! The folder never looks at the managed objects.
//!
//! Reading order: `fields`, `copy_fields`, `content`, `mode`, `exceptions` (of a managed tree), `needs`.

pub(in crate::kinds::file) mod content;
pub(in crate::kinds::file) mod copy_fields;
pub(in crate::kinds::file) mod exceptions;
pub(in crate::kinds::file) mod fields;
pub(in crate::kinds::file) mod mode;
pub(in crate::kinds::file) mod needs;
