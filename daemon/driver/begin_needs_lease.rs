//! The lease of this daemon: without a valid lease no apply begins (C-4, C-6). Checks go on.

use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::Failure;
use thiserror::Error;

/// A clock that also advances while the host is suspended.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The reason shown for an expired lease.
const OVER: &str = "the lease expired without being renewed";

/// The reason for which the lease is lost.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LeaseLoss(pub String);

/// The right to begin changes.
#[derive(Clone)]
pub struct LeaseValidity(Option<(Duration, Clock)>);

impl LeaseValidity {
    /// Creates a right without expiry.
    #[must_use]
    pub const fn endless() -> Self {
        Self(None)
    }

    /// Creates a right that expires at `end` on this clock, even if the whole daemon was suspended and nobody could
    /// renew the right.
    #[must_use]
    pub const fn until(end: Duration, clock: Clock) -> Self {
        Self(Some((end, clock)))
    }

    /// Returns the reason for which the right is not valid now.
    fn refusal(&self) -> Option<&'static str> {
        let is_over = self.0.as_ref().is_some_and(|(end, clock)| clock() >= *end);
        is_over.then_some(OVER)
    }
}

/// The lease as the driver knows it: its validity, or the reason for which it is lost.
pub(super) struct Lease(Result<LeaseValidity, LeaseLoss>);

impl Lease {
    /// Creates a lease that never ends, for a daemon that needs none.
    pub(super) const fn endless() -> Self {
        Self(Ok(LeaseValidity::endless()))
    }

    /// Takes a lease, or the reason for its loss. Returns true if the lease is back.
    pub(super) fn set(&mut self, lease: Result<LeaseValidity, LeaseLoss>) -> bool {
        let was_lost = self.loss().is_some();
        self.0 = lease;
        was_lost && self.loss().is_none()
    }

    /// Returns the reason for which no apply may begin now; none if the lease is valid.
    pub(super) fn loss(&self) -> Option<String> {
        match &self.0 {
            Ok(validity) => validity.refusal().map(str::to_owned),
            Err(loss) => Some(loss.0.clone()),
        }
    }

    /// Returns the failure of an apply that may not begin; none if the lease is valid.
    pub(super) fn refuse_begin(&self) -> Option<Failure> {
        let why = self.loss()?;
        Some(
            Failure::new(format!("no changes are started without the lease: {why}"))
                .hint("the resource is retried when the lease is acquired again"),
        )
    }
}

impl std::fmt::Debug for LeaseValidity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LeaseValidity").field(&self.0.as_ref().map(|(end, _)| end)).finish()
    }
}
