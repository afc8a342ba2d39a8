//! Everything below a managed directory: copies, attributes, and the purge of undeclared objects.
//!
//! One walk serves the check and the apply; a check changes nothing.
//!
//! Reading order: `walk`, `purge`, `owners`, `report`, `faults`.

pub(in crate::kinds::file) mod faults;
pub(in crate::kinds::file) mod owners;
pub(in crate::kinds::file) mod purge;
pub(in crate::kinds::file) mod report;
pub(in crate::kinds::file) mod walk;
