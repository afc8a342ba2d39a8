//! The worker of the lease. After a loss of the lease no worker ends, and no run begins until the lease is back.

use crate::driver::{DriverEvent, LeaseLoss, LeaseValidity};
use crate::lease::{Lease, LeaseLost, LeaseStatus, boottime, keep};
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use crate::workers::STOP_RANK_EVENTS;
use crate::workers::requests::queue::Requests;
use crate::workers::worker_factory::WorkerFactory;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};

/// The rank of a refused lease at the start among fatal failures.
const RANK: u8 = 5;

/// Creates the worker that has the lease. If the lease is refused at the start, this daemon ends; a lost lease is
/// requested again.
pub(in crate::workers) fn lease(
    factory: &WorkerFactory,
    lease: Box<dyn Lease>,
    own: (watch::Sender<LeaseStatus>, Requests),
) -> Manifold {
    let lease = Arc::new(Mutex::new(lease));
    let worker = factory.worker("lease", move |_, life: WorkerContext| {
        let ((status, requests), lease) = (own.clone(), Arc::clone(&lease));
        async move {
            let mut lease = lease.lock().await;
            let mut seen = status.subscribe();
            let was_held = *seen.borrow() != LeaseStatus::Wanted;
            let beat = || {
                let life = life.clone();
                async move { life.prove_alive().await }
            };
            let kept = keep(&mut **lease, &status, life.stopping(), beat);
            let publishing = publish_status(&requests, &life, &mut seen);
            tokio::select! {
                kept = kept => match kept {
                    Ok(()) => Ok(()),
                    Err(LeaseLost::Refused(why)) if !was_held => Err(Failure::fatal(RANK, why)),
                    Err(why) => {
                        tracing::error!(event = "lease", "{why}: no changes are started");
                        let lost = Err(LeaseLoss(why.to_string()));
                        requests.put(DriverEvent::Lease(lost));
                        Err(Failure::again(why))
                    }
                },
                () = publishing => Ok(()),
            }
        }
    });
    worker.handles("store").stop_rank(STOP_RANK_EVENTS)
}

/// Returns the validity of the lease for the driver; `None` before the lease was first obtained.
pub(in crate::workers) fn right(
    standing: &LeaseStatus,
) -> Option<Result<LeaseValidity, LeaseLoss>> {
    match standing {
        LeaseStatus::Wanted => None,
        LeaseStatus::Held { until: None, .. } => Some(Ok(LeaseValidity::endless())),
        LeaseStatus::Held { until: Some(end), .. } => {
            Some(Ok(LeaseValidity::until(*end, Arc::new(boottime))))
        }
        LeaseStatus::Lost(why) => Some(Err(LeaseLoss(why.clone()))),
    }
}

/// Sends each renewal of the lease, with its end, to the driver.
async fn publish_status(
    requests: &Requests,
    life: &WorkerContext,
    seen: &mut watch::Receiver<LeaseStatus>,
) {
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
                requests.put(DriverEvent::Lease(right));
            }
        }
        if seen.changed().await.is_err() {
            return;
        }
    }
}
