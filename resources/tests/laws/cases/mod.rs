//! The test cases of the laws, by sort of kinds.

mod accounts;
mod diversions;
mod edits;
mod kernel;
mod packages;
mod services;
mod sources;

use crate::harness::Case;

/// Returns all test cases.
pub(crate) fn all() -> impl Iterator<Item = &'static Case> {
    let tables = [
        edits::CASES,
        accounts::CASES,
        diversions::CASES,
        kernel::CASES,
        packages::CASES,
        services::CASES,
        sources::CASES,
    ];
    tables.into_iter().flatten()
}
