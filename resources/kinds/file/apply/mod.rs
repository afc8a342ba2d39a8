//! The apply of a file: the plan of a check is carried out under a permit.
//!
//! Nothing is changed if the premise of the plan has changed since the check.
//!
//! Reading order: `steps`, `validate`, `together` (several files that one command judges).

pub(in crate::kinds::file) mod steps;
pub(in crate::kinds::file) mod together;
pub(in crate::kinds::file) mod validate;
