//! The permits that a host may use at present: told at each change, and revoked as soon as the lease is not safe.

use super::BootClock;
use std::collections::BTreeSet;
use std::time::Duration;

/// The longest time between two looks at the clock: a timer does not count the time of a suspended machine.
const LOOK: Duration = Duration::from_secs(1);

/// The permits of a host.
pub struct PermitGuard<T> {
    told: Option<BTreeSet<T>>,
    /// Returns true for a permit that ends with the lease.
    has_lease: fn(&T) -> bool,
    safe_until: Duration,
    clock: BootClock,
}

impl<T> std::fmt::Debug for PermitGuard<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PermitGuard").field("safe_until", &self.safe_until).finish_non_exhaustive()
    }
}

impl<T: Clone + Ord> PermitGuard<T> {
    /// Creates a guard that has told nothing yet.
    pub const fn new(clock: BootClock, has_lease: fn(&T) -> bool) -> Self {
        Self { told: None, has_lease, safe_until: Duration::ZERO, clock }
    }

    /// Sets the time since boot up to which the lease is safe.
    pub const fn set_safe_until(&mut self, safe_until: Duration) {
        self.safe_until = safe_until;
    }

    /// Forgets what was told: another listener begins without permits.
    pub fn forget_told(&mut self) {
        self.told = None;
    }

    /// Takes the permits that the world grants. Returns those that may be used, if they have changed.
    pub fn take(&mut self, granted: impl IntoIterator<Item = T>) -> Option<BTreeSet<T>> {
        let is_safe = (self.clock)() < self.safe_until;
        let usable: BTreeSet<T> =
            granted.into_iter().filter(|permit| is_safe || !(self.has_lease)(permit)).collect();
        if self.told.as_ref() == Some(&usable) {
            return None;
        }
        self.told = Some(usable.clone());
        Some(usable)
    }

    /// Revokes the permits that end with the lease. Returns the remaining ones, if any was revoked.
    pub fn revoke(&mut self) -> Option<BTreeSet<T>> {
        self.safe_until = Duration::ZERO;
        let told = self.told.clone()?;
        told.iter().any(self.has_lease).then(|| self.take(told)).flatten()
    }

    /// Waits until a permit in use is not safe any more.
    pub async fn expired(&self) {
        if !self.told.as_ref().is_some_and(|told| told.iter().any(self.has_lease)) {
            std::future::pending::<()>().await;
        }
        loop {
            let left = self.safe_until.saturating_sub((self.clock)());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }
}
