//! The lease of a host: renewed in time, and trusted only for half of its lifetime.
//!
//! A host counts the time from the sending of its last good renewal by the clock since boot; the world counts from the
//! arrival. So a host gives its permits up before the world ends the lease and another host may hold.

use super::{BootClock, LeaseId, World, WorldError};
use std::time::Duration;
use tokio::time::Instant;

/// The lifetime of the lease of a host.
pub const LIFETIME: Duration = Duration::from_secs(30);

/// The interval of renewals.
const RENEWAL: Duration = Duration::from_secs(10);

/// The delay after a failed renewal.
const AGAIN: Duration = Duration::from_millis(2500);

/// The lease of this host.
pub struct HostLease {
    id: Option<LeaseId>,
    /// The time of the last good renewal, counted from its sending.
    renewed: Duration,
    due: Instant,
    clock: BootClock,
}

impl std::fmt::Debug for HostLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostLease").field("id", &self.id).finish_non_exhaustive()
    }
}

impl HostLease {
    /// Creates a host without a lease; the first renewal grants one.
    #[must_use]
    pub fn new(clock: BootClock) -> Self {
        Self { id: None, renewed: Duration::ZERO, due: Instant::now(), clock }
    }

    /// Returns the lease, if there is one.
    #[must_use]
    pub const fn id(&self) -> Option<LeaseId> {
        self.id
    }

    /// Returns the time of the next renewal.
    #[must_use]
    pub const fn due(&self) -> Instant {
        self.due
    }

    /// Returns the time since boot up to which a permit under the lease may be used.
    #[must_use]
    pub fn safe_until(&self) -> Duration {
        if self.id.is_some() { self.renewed + LIFETIME / 2 } else { Duration::ZERO }
    }

    /// Grants or renews the lease. Returns true if the lease is a new one: all keys with the lease must be written
    /// again.
    ///
    /// # Errors
    /// The failure of the world; the next renewal is due soon.
    pub async fn renew(&mut self, world: &dyn World) -> Result<bool, WorldError> {
        self.due = Instant::now() + AGAIN;
        if let Some(id) = self.id {
            let sent = (self.clock)();
            match world.keep_alive(id).await {
                Ok(()) => {
                    (self.renewed, self.due) = (sent, Instant::now() + RENEWAL);
                    return Ok(false);
                }
                Err(WorldError::LeaseEnded) => self.id = None,
                Err(error) => return Err(error),
            }
        }
        let sent = (self.clock)();
        self.id = Some(world.grant_lease(LIFETIME).await?);
        (self.renewed, self.due) = (sent, Instant::now() + RENEWAL);
        Ok(true)
    }
}
