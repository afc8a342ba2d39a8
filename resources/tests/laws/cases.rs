//! The test cases of the laws, by kind.

use crate::account_cases::{GROUP, HOSTNAME, LOCALE, TIMEZONE, USER, USER_CHANGED};
use crate::harness::Case;

/// All test cases.
pub(crate) const CASES: &[Case] = &[GROUP, HOSTNAME, LOCALE, TIMEZONE, USER, USER_CHANGED];
