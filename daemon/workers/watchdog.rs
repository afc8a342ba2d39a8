//! The worker that feeds the watchdog of systemd, each time after a round trip through the driver and its engine.

use super::{HEARS, Shared, sd_notify};
use crate::driver::{DriverEvent, DriverHealth, PingReply};
use crate::supervisor::{Manifold, Outputs, WorkerContext};
use std::sync::Arc;
use std::time::Duration;

/// Feeds it, to the last. A driver that hangs starves it, and any other worker that nobody can cut off; one that broke and is started
/// anew does not.
pub(super) fn watchdog(shared: &Arc<Shared>) -> Manifold {
    let own = Arc::clone(shared);
    let worker = shared.worker("watchdog", move |_, life: WorkerContext| {
        let shared = Arc::clone(&own);
        async move {
            life.ready(Outputs::none());
            let Some(limit) = ::sd_notify::watchdog_enabled() else {
                life.set_status("systemd has no watchdog for this process");
                life.during(life.stopping().cancelled()).await;
                return Ok(());
            };
            let every = (limit / 3).max(Duration::from_millis(10));
            loop {
                // It lives while the driver does not answer: that is what systemd is to find out.
                let turn = life.during(async {
                    feed(&shared).await;
                    tokio::time::sleep(every).await;
                });
                tokio::select! {
                    () = turn => {}
                    () = life.stopping().cancelled() => return Ok(()),
                }
            }
        }
    });
    worker.stop_rank(HEARS)
}

async fn feed(shared: &Shared) {
    let report = shared.ending.supervisor.report();
    if report.workers.values().any(|worker| worker.hangs_for.is_some()) {
        // Said where it was found out.
        return;
    }
    let (told, answer) = tokio::sync::oneshot::channel::<DriverHealth>();
    // Nobody waits for it any more: the process is ending.
    let ping = PingReply(Box::new(move |pulse| told.send(pulse).unwrap_or_default()));
    if shared.requests.put_now(DriverEvent::Ping(ping)).is_err() {
        sd_notify::alive("the driver is not running and is restarted (`steadfast workers`)");
        return;
    }
    match answer.await {
        Ok(pulse) => sd_notify::alive(&sd_notify::status(&pulse)),
        // It broke before it could answer.
        Err(_) => sd_notify::alive("the driver runs again"),
    }
}
