//! The worker that carries out the requests that an operator sends by signals.

use crate::driver::DriverEvent;
use crate::signals::{Signal, Signals};
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use crate::workers::STOP_RANK_SIGNALS;
use crate::workers::Shared;
use crate::workers::graph::loader::ReloadCause;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The rank of a failure to read signals among fatal failures.
const RANK: u8 = 1;

/// Creates the worker that handles signals, also while other workers stop.
pub(in crate::workers) fn signals(shared: &Arc<Shared>, signals: Signals) -> Manifold {
    let own = Arc::clone(shared);
    let signals = Arc::new(Mutex::new(signals));
    let worker = shared.worker("signals", move |_, life: WorkerContext| {
        let (shared, signals) = (Arc::clone(&own), Arc::clone(&signals));
        async move {
            let mut signals = signals.lock().await;
            life.ready(Outputs::none());
            loop {
                let signal = tokio::select! {
                    signal = signals.next() => signal,
                    () = life.prove_alive() => continue,
                    () = life.stopping().cancelled() => return Ok(()),
                };
                match signal.map_err(|error| Failure::fatal(RANK, error))? {
                    Signal::Reload => shared.graph.reload(ReloadCause::Operator),
                    Signal::Pause => {
                        let reason = "signal USR1".to_owned();
                        shared.requests.put(DriverEvent::Pause {
                            reason,
                            limit: None,
                            drain: false,
                        });
                    }
                    Signal::Resume => shared.requests.put(DriverEvent::Resume),
                    Signal::Stop => shared.shutdown.ask(),
                }
            }
        }
    });
    worker.stop_rank(STOP_RANK_SIGNALS)
}
