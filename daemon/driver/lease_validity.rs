//! The validity of the lease: the right to begin changes, until its loss or its expiry (C-4, C-6).

use std::sync::Arc;
use std::time::Duration;

/// A clock that also advances while the host is suspended.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The reason shown for an expired lease.
const OVER: &str = "the lease expired without being renewed";

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
    pub(super) fn refusal(&self) -> Option<&'static str> {
        let is_over = self.0.as_ref().is_some_and(|(end, clock)| clock() >= *end);
        is_over.then_some(OVER)
    }
}

impl std::fmt::Debug for LeaseValidity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Right").field(&self.0.as_ref().map(|(end, _)| end)).finish()
    }
}
