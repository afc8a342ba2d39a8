//! One file for each kind.

pub mod file;
pub mod noop;
