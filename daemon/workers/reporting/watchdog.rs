//! The worker of the systemd watchdog: it notifies systemd after each round trip through the driver and its engine.

use crate::driver::{DriverEvent, DriverHealth, PingReply};
use crate::supervisor::{Manifold, Outputs, WorkerContext};
use crate::workers::STOP_RANK_SIGNALS;
use crate::workers::reporting::sd_notify;
use crate::workers::requests::queue::Requests;
use crate::workers::shutdown::Shutdown;
use crate::workers::worker_factory::WorkerFactory;
use std::sync::Arc;
use std::time::Duration;

/// Creates the worker of the watchdog. A driver that hangs, or another worker that cannot be interrupted, stops the
/// notifications; a driver that failed and is started again does not.
pub(in crate::workers) fn watchdog(
    factory: &WorkerFactory,
    (shutdown, requests): (&Arc<Shutdown>, &Requests),
) -> Manifold {
    let own = (Arc::clone(shutdown), requests.clone());
    let worker = factory.worker("watchdog", move |_, life: WorkerContext| {
        let (shutdown, requests) = own.clone();
        async move {
            life.ready(Outputs::none());
            let Some(limit) = ::sd_notify::watchdog_enabled() else {
                life.set_status("systemd has no watchdog for this process");
                life.during(life.stopping().cancelled()).await;
                return Ok(());
            };
            let every = (limit / 3).max(Duration::from_millis(10));
            loop {
                // This worker stays alive while the driver does not answer; systemd must notice that.
                let turn = life.during(async {
                    feed(&shutdown, &requests).await;
                    tokio::time::sleep(every).await;
                });
                tokio::select! {
                    () = turn => {}
                    () = life.stopping().cancelled() => return Ok(()),
                }
            }
        }
    });
    worker.stop_rank(STOP_RANK_SIGNALS)
}

async fn feed(shutdown: &Shutdown, requests: &Requests) {
    let report = shutdown.supervisor.report();
    if report.workers.values().any(|worker| worker.hangs_for.is_some()) {
        // The hang was logged at its detection.
        return;
    }
    let (told, answer) = tokio::sync::oneshot::channel::<DriverHealth>();
    // The receiver is dropped while the process ends.
    let ping = PingReply(Box::new(move |pulse| told.send(pulse).unwrap_or_default()));
    if requests.put_now(DriverEvent::Ping(ping)).is_err() {
        sd_notify::alive("the driver is not running and is restarted (`steadfast workers`)");
        return;
    }
    match answer.await {
        Ok(pulse) => sd_notify::alive(&sd_notify::status(&pulse)),
        // The driver failed before it could answer.
        Err(_) => sd_notify::alive("the driver runs again"),
    }
}
