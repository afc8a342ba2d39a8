//! The worker that carries out the requests that an operator sends by signals.

use crate::driver::DriverEvent;
use crate::signals::{Signal, Signals};
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use crate::workers::STOP_RANK_SIGNALS;
use crate::workers::graph::loader::{GraphLoader, ReloadCause};
use crate::workers::requests::queue::Requests;
use crate::workers::shutdown::Shutdown;
use crate::workers::worker_factory::WorkerFactory;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The rank of a failure to read signals among fatal failures.
const RANK: u8 = 1;

/// Creates the worker that handles signals, also while other workers stop.
pub(in crate::workers) fn signals(
    factory: &WorkerFactory,
    signals: Signals,
    own: (GraphLoader, Requests, Arc<Shutdown>),
) -> Manifold {
    let signals = Arc::new(Mutex::new(signals));
    let worker = factory.worker("signals", move |_, life: WorkerContext| {
        let ((graph, requests, shutdown), signals) = (own.clone(), Arc::clone(&signals));
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
                    Signal::Reload => graph.reload(ReloadCause::Operator),
                    Signal::Pause => {
                        let reason = "signal USR1".to_owned();
                        requests.put(DriverEvent::Pause { reason, limit: None, drain: false });
                    }
                    Signal::Resume => requests.put(DriverEvent::Resume),
                    Signal::Stop => shutdown.ask(),
                }
            }
        }
    });
    worker.stop_rank(STOP_RANK_SIGNALS)
}
