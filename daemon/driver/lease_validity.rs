//! The right to act: had until it is lost, or until its end (C-4, C-6).

use super::Driver;
use std::sync::Arc;
use std::time::Duration;

/// A clock that goes on while the machine sleeps.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Why nothing may be begun any more where nobody has said so.
const OVER: &str = "the lease expired without being renewed";

/// The right to begin something.
#[derive(Clone)]
pub struct LeaseValidity(Option<(Duration, Clock)>);

impl LeaseValidity {
    /// It is had until somebody says that it is lost.
    #[must_use]
    pub const fn endless() -> Self {
        Self(None)
    }

    /// It ends by itself when this clock says so: whoever would renew it may have slept, as all did.
    #[must_use]
    pub const fn until(end: Duration, clock: Clock) -> Self {
        Self(Some((end, clock)))
    }

    fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|(end, clock)| clock() >= *end)
    }
}

impl std::fmt::Debug for LeaseValidity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Right").field(&self.0.as_ref().map(|(end, _)| end)).finish()
    }
}

impl Driver {
    /// How the lease stands from now on. What was refused for want of it is tried again when it is had again.
    pub(super) fn note_lease(&mut self, lease: Result<LeaseValidity, String>) {
        let was_without = self.without_lease().is_some();
        self.lease = lease;
        if was_without && self.without_lease().is_none() {
            self.try_failed_again();
        }
    }

    /// Why nothing may be begun at this moment.
    pub(super) fn without_lease(&self) -> Option<String> {
        match &self.lease {
            Ok(right) if right.is_over() => Some(OVER.to_owned()),
            Ok(_) => None,
            Err(why) => Some(why.clone()),
        }
    }
}
