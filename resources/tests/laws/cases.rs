//! The test cases of the laws, by kind.

use crate::harness::Case;

/// All test cases.
pub(crate) const CASES: &[Case] = &[];
