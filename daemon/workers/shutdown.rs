//! The shutdown of a daemon: the first request stops it in order, the second one at once.

use crate::api::State;
use crate::driver::{DriverEvent, PingReply};
use crate::events::Stream;
use crate::supervisor::{Manifold, Outputs, Supervisor, WorkerContext};
use crate::workers::graph::loader::GraphLoader;
use crate::workers::reporting::sd_notify;
use crate::workers::requests::queue::Requests;
use crate::workers::worker_factory::WorkerFactory;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The time for which events at the end wait for later ones, so that they are recorded together.
const GATHER: Duration = Duration::from_millis(20);

/// The interval of looks at answers of probes that the graph does not use yet.
const LOOK: Duration = Duration::from_millis(100);

/// The shutdown of a daemon.
#[derive(Debug)]
pub(super) struct Shutdown {
    pub(super) supervisor: Supervisor,
    requests: Requests,
    stream: Stream,
    asked: AtomicU32,
    at_once: CancellationToken,
}

impl Shutdown {
    pub(super) fn new(supervisor: Supervisor, requests: Requests, stream: Stream) -> Self {
        let at_once = CancellationToken::new();
        Self { supervisor, requests, stream, asked: AtomicU32::new(0), at_once }
    }

    /// Handles a stop request: an orderly stop the first time, an immediate one after that.
    pub(super) fn ask(&self) {
        if self.asked.load(Ordering::SeqCst) == 0 { self.begin() } else { self.now() }
    }

    /// Begins an orderly stop.
    pub(super) fn begin(&self) {
        if self.asked.fetch_add(1, Ordering::SeqCst) == 0 {
            sd_notify::stopping();
            self.stream.gather(GATHER);
        }
        self.supervisor.stop(None);
    }

    /// Begins an immediate stop, which interrupts active runs.
    pub(super) fn now(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.at_once.cancel();
        self.begin();
        // Without a driver there are no runs to interrupt.
        let _none = self.requests.put_now(DriverEvent::Stop(Duration::ZERO));
    }

    /// Returns true if a stop was requested.
    pub(super) fn is_begun(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 0
    }

    /// Returns true if the daemon is ending for any reason.
    pub(super) fn is_ending(&self) -> bool {
        self.is_begun() || self.supervisor.report().state == State::Stopping
    }

    pub(super) fn is_now(&self) -> bool {
        self.at_once.is_cancelled()
    }

    /// Waits for an immediate stop.
    pub(super) async fn at_once(&self) {
        self.at_once.cancelled().await;
    }
}

/// Creates the worker that ends the daemon when the host has been converged for a given time (`--converged-timeout`).
pub(super) fn when_converged(
    factory: &WorkerFactory,
    (seen, long): (watch::Receiver<bool>, Duration),
    (graph, shutdown): (&GraphLoader, &Arc<Shutdown>),
) -> Manifold {
    let own = (graph.clone(), Arc::clone(shutdown));
    factory.worker("until-converged", move |_, life: WorkerContext| {
        let ((graph, shutdown), seen) = (own.clone(), seen.clone());
        async move {
            life.ready(Outputs::none());
            tokio::select! {
                () = life.during(wait(seen, long, (&graph, &shutdown.requests))) => shutdown.begin(),
                () = life.stopping().cancelled() => {}
            }
            Ok(())
        }
    })
}

/// Waits until the host has been converged for a given time, with a graph that uses the last answers of the probes.
async fn wait(
    mut seen: watch::Receiver<bool>,
    long: Duration,
    (graph, requests): (&GraphLoader, &Requests),
) {
    loop {
        if graph.has_unused_answers() {
            tokio::time::sleep(LOOK).await;
            continue;
        }
        if seen.wait_for(|converged| *converged).await.is_err() {
            return std::future::pending().await;
        }
        let broken = seen.wait_for(|converged| !*converged);
        let is_broken = tokio::time::timeout(long, broken).await.is_ok();
        // The driver may not have taken the graph that uses the last answers.
        let has_turned = !is_broken && turn(requests).await && turn(requests).await;
        if has_turned && *seen.borrow() && !graph.has_unused_answers() {
            return;
        }
        if !is_broken && !has_turned {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Waits until the driver has handled all earlier events; returns false if no driver runs.
async fn turn(requests: &Requests) -> bool {
    let (turned, answer) = oneshot::channel();
    // The receiver is dropped while the process ends.
    let ping = PingReply(Box::new(move |_| turned.send(()).unwrap_or_default()));
    requests.put_now(DriverEvent::Ping(ping)).is_ok() && answer.await.is_ok()
}
