//! The test cases of the laws, by sort of kinds.

mod accounts;
mod diversions;
mod edits;
mod kernel;

use crate::harness::Case;

/// Returns all test cases.
pub(crate) fn all() -> impl Iterator<Item = &'static Case> {
    edits::CASES.iter().chain(accounts::CASES).chain(kernel::CASES).chain(diversions::CASES)
}
