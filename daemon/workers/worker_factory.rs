//! The declaration of the daemon's workers: each start and end is an event, a silent worker counts as hanging, and
//! tests can inject faults.

#[cfg(feature = "fault-injection")]
use super::fault_injection::{self, Faults};
use super::reporting::worker_events;
use crate::events::Publisher;
use crate::supervisor::{Failure, Inputs, Manifold, WorkerContext};
use std::time::Duration;

/// The time after which a silent worker counts as hanging. The watchdog of systemd is stricter with the driver.
const HEARTBEAT_LIMIT: Duration = Duration::from_secs(30);

/// Declares the workers of a daemon.
#[derive(Clone)]
pub(super) struct WorkerFactory {
    publisher: Publisher,
    #[cfg(feature = "fault-injection")]
    pub(super) faults: Faults,
}

impl WorkerFactory {
    pub(super) fn new(publisher: Publisher) -> Self {
        Self {
            publisher,
            #[cfg(feature = "fault-injection")]
            faults: Faults::default(),
        }
    }

    /// Declares a worker.
    pub(super) fn worker<W>(
        &self,
        name: &str,
        start: impl Fn(Inputs, WorkerContext) -> W + Send + Sync + 'static,
    ) -> Manifold
    where
        W: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        #[cfg(feature = "fault-injection")]
        let start = self.faults.put_into(name, start);
        Manifold::new(name, worker_events::told(&self.publisher, name, start))
            .heartbeat_within(heartbeat_limit())
    }
}

/// Returns the time after which a silent worker counts as hanging; tests can shorten it.
pub(super) fn heartbeat_limit() -> Duration {
    #[cfg(feature = "fault-injection")]
    if let Some(heartbeat_limit) = fault_injection::heartbeat_limit() {
        return heartbeat_limit;
    }
    HEARTBEAT_LIMIT
}
