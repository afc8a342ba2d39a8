//! The worker that holds the lease. Losing it ends nobody: nothing is begun until it is had again.

use super::{Shared, TELLS};
use crate::driver::Input;
use crate::lease::{Gone, Lease, Standing, keep};
use crate::store::StoreError;
use crate::supervisor::{Failure, Life, Manifold, Outputs};
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
    let worker = shared.worker("lease", move |_, life: Life| {
        let (shared, lease) = (Arc::clone(&own), Arc::clone(&lease));
        async move {
            let mut lease = lease.lock().await;
            let mut seen = shared.lease.subscribe();
            let was_held = *seen.borrow() != Standing::Wanted;
            let beat = || {
                let life = life.clone();
                async move { life.beat().await }
            };
            let kept = keep(&mut *lease, &shared.lease, life.stopping(), beat);
            let telling = tell(&shared, &life, &mut seen);
            tokio::select! {
                kept = kept => match kept {
                    Ok(()) => Ok(()),
                    Err(Gone::Refused(why)) if !was_held => Err(Failure::fatal(RANK, why)),
                    Err(why) => {
                        tracing::error!(event = "lease", "{why}: nothing is begun");
                        let lost = Err(why.to_string());
                        shared.requests.put(Input::Lease(lost));
                        Err(Failure::again(why))
                    }
                },
                () = telling => Ok(()),
            }
        }
    });
    worker.last(TELLS)
}

/// Tells each time that it is held.
async fn tell(shared: &Shared, life: &Life, seen: &mut watch::Receiver<Standing>) {
    let mut is_ready = false;
    loop {
        let standing = seen.borrow_and_update().clone();
        if let Standing::Held(epoch) = standing {
            life.say(format!("held, epoch {epoch}"));
            if !std::mem::replace(&mut is_ready, true) {
                life.ready(Outputs::none());
            }
            shared.requests.put(Input::Lease(Ok(())));
        }
        if seen.changed().await.is_err() {
            return;
        }
    }
}
