//! One file for each kind.

pub mod noop;
