//! The loss of the lease: the result of a renewal, or the time, shows that somebody else may have it.

use super::{LeaseError, Renewal};
use std::time::Duration;
use thiserror::Error;

/// The reason for a loss after a suspend, or after a long time without CPU.
const TOO_LATE: &str = "the lease expired before it could be renewed";

/// The reason for which [`keep`](super::keep) ended.
#[derive(Debug, Error)]
pub enum LeaseLost {
    /// The lease was never acquired.
    #[error(transparent)]
    Refused(LeaseError),
    /// The lease was lost.
    #[error("the lease is lost: {0}")]
    Lost(String),
}

/// Returns the reason for which the lease is lost; none if it is still held.
///
/// `renewal` is the result of an attempt, none if there was no time left for one: an expired lease is not renewed,
/// since another holder may have it (C-4). `since` is the age of the last successful request, and `failure` the reason
/// of the last failed attempt.
pub(super) fn loss_of(
    renewal: Option<&Renewal>,
    since: Duration,
    lifetime: Duration,
    failure: Option<&str>,
) -> Option<String> {
    match renewal {
        Some(Renewal::Renewed(_)) => None,
        Some(Renewal::Later(_)) if since < lifetime => None,
        Some(Renewal::Later(why) | Renewal::Lost(why)) => Some(why.clone()),
        None => Some(failure.unwrap_or(TOO_LATE).to_owned()),
    }
}
