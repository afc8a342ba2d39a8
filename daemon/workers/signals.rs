//! The worker that obeys signals, in the order in which they were sent.

use super::graph_loader::ReloadCause;
use super::{HEARS, Shared};
use crate::driver::DriverEvent;
use crate::signals::{Signal, Signals};
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How much it matters that signals cannot be read, beside other fatal failures.
const RANK: u8 = 1;

/// So long may a signal lie there untaken.
const APART: Duration = Duration::from_millis(500);

/// Obeys signals to the last: also while all others stop.
pub(super) fn signals(shared: &Arc<Shared>, signals: Signals) -> Manifold {
    let own = Arc::clone(shared);
    let signals = Arc::new(Mutex::new(signals));
    let worker = shared.worker("signals", move |_, life: WorkerContext| {
        let (shared, signals) = (Arc::clone(&own), Arc::clone(&signals));
        async move {
            let mut signals = signals.lock().await;
            signals.go_on().map_err(Failure::again)?;
            life.ready(Outputs::none());
            loop {
                let signal = tokio::select! {
                    signal = signals.next() => signal,
                    () = life.prove_alive() => {
                        if signals.hangs(APART).await {
                            return Err(Failure::again("the signal thread hangs"));
                        }
                        continue;
                    }
                    () = life.stopping().cancelled() => return Ok(()),
                };
                let signal = signal.map_err(|error| failure(&signals, error))?;
                match signal {
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
                    Signal::Stop => shared.ending.ask(),
                }
            }
        }
    });
    worker.stop_rank(HEARS)
}

/// A thread that has ended is started again; where the runtime cannot wait, nothing helps.
fn failure(signals: &Signals, error: std::io::Error) -> Failure {
    if signals.has_ended() { Failure::again(error) } else { Failure::fatal(RANK, error) }
}
