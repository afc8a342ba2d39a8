//! The worker of the control socket.

use crate::control::{Address, BindError, Limits, RequestHandler, Server};
use crate::lease::LeaseStatus;
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use crate::workers::STOP_RANK_CONTROL;
use crate::workers::requests::handler::DaemonRequestHandler;
use crate::workers::worker_factory::{WorkerFactory, heartbeat_limit};
use std::sync::Arc;
use tokio::sync::watch;

/// Creates the worker that listens at the control socket. It is independent of all other workers, and stops last.
pub(in crate::workers) fn control(
    factory: &WorkerFactory,
    handler: DaemonRequestHandler,
    (address, group): (Address, Option<u32>),
    lease: watch::Receiver<LeaseStatus>,
) -> Manifold {
    let handler = Arc::new(handler);
    let worker = factory.worker("control", move |_, life: WorkerContext| {
        let (handler, address, lease) = (Arc::clone(&handler), address.clone(), lease.clone());
        async move {
            let handler: Arc<dyn RequestHandler> = handler;
            let server = Server::bind(address.clone(), group, Limits::default()).await;
            let server = server.map_err(|why| {
                // Without the lease another daemon is the expected owner of the socket; the lease worker reports that
                // daemon.
                if !is_other(&why) || *lease.borrow() != LeaseStatus::Wanted {
                    tracing::warn!(event = "control", "{why}: commands cannot reach this daemon");
                }
                Failure::again(why)
            })?;
            life.set_status(format!("listens at {}", address.path().display()));
            life.ready(Outputs::none());
            let turns = (heartbeat_limit() / 3, || life.alive());
            let ended = server.serve(handler, life.stopping().clone(), turns).await;
            ended.map_err(Failure::again)
        }
    });
    worker.handles("events").stop_rank(STOP_RANK_CONTROL)
}

/// Returns true if another daemon listens at the socket.
fn is_other(why: &BindError) -> bool {
    matches!(why, BindError::Alive(_))
}
