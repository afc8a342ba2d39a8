//! The worker that holds the lease. Losing it ends nobody: nothing is begun until it is had again.

use super::{Shared, TELLS};
use crate::driver::{DriverEvent, LeaseValidity};
use crate::lease::{Lease, LeaseLost, LeaseStatus, boottime, keep};
use crate::store::StoreError;
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use std::sync::Arc;
use tokio::sync::{Mutex, watch};

/// How much a lease that cannot be had at the start matters beside other fatal failures.
const RANK: u8 = 5;

/// Holds it. Who has it is said at the start, and the daemon ends; one that was lost is asked for again.
pub(super) fn lease<L>(shared: &Arc<Shared>, lease: L) -> Manifold
where
    L: Lease<Refusal = StoreError> + 'static,
{
    let own = Arc::clone(shared);
    let lease = Arc::new(Mutex::new(lease));
    let worker = shared.worker("lease", move |_, life: WorkerContext| {
        let (shared, lease) = (Arc::clone(&own), Arc::clone(&lease));
        async move {
            let mut lease = lease.lock().await;
            let mut seen = shared.lease.subscribe();
            let was_held = *seen.borrow() != LeaseStatus::Wanted;
            let beat = || {
                let life = life.clone();
                async move { life.prove_alive().await }
            };
            let kept = keep(&mut *lease, &shared.lease, life.stopping(), beat);
            let telling = tell(&shared, &life, &mut seen);
            tokio::select! {
                kept = kept => match kept {
                    Ok(()) => Ok(()),
                    Err(LeaseLost::Refused(why)) if !was_held => Err(Failure::fatal(RANK, why)),
                    Err(why) => {
                        tracing::error!(event = "lease", "{why}: no changes are started");
                        let lost = Err(why.to_string());
                        shared.requests.put(DriverEvent::Lease(lost));
                        Err(Failure::again(why))
                    }
                },
                () = telling => Ok(()),
            }
        }
    });
    worker.stop_rank(TELLS)
}

/// What a driver is to know of it; nothing where it was not had yet.
pub(super) fn right(standing: &LeaseStatus) -> Option<Result<LeaseValidity, String>> {
    match standing {
        LeaseStatus::Wanted => None,
        LeaseStatus::Held { until: None, .. } => Some(Ok(LeaseValidity::endless())),
        LeaseStatus::Held { until: Some(end), .. } => {
            Some(Ok(LeaseValidity::until(*end, Arc::new(boottime))))
        }
        LeaseStatus::Lost(why) => Some(Err(why.clone())),
    }
}

/// Tells each time that it is held, and until when.
async fn tell(shared: &Shared, life: &WorkerContext, seen: &mut watch::Receiver<LeaseStatus>) {
    let mut told = None;
    loop {
        let standing = seen.borrow_and_update().clone();
        if let LeaseStatus::Held { epoch, .. } = standing {
            if told != Some(epoch) {
                life.set_status(format!("held, epoch {epoch}"));
            }
            if told.replace(epoch).is_none() {
                life.ready(Outputs::none());
            }
            if let Some(right) = right(&standing) {
                shared.requests.put(DriverEvent::Lease(right));
            }
        }
        if seen.changed().await.is_err() {
            return;
        }
    }
}
