//! The worker of the control socket.

use crate::control::{Address, BindError, Limits, RequestHandler, Server};
use crate::lease::LeaseStatus;
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use crate::workers::STOP_RANK_CONTROL;
use crate::workers::Shared;
use crate::workers::heartbeat_limit;
use crate::workers::requests::handler::DaemonRequestHandler;
use std::sync::Arc;

/// Creates the worker that listens at the control socket. It is independent of all other workers, and stops last.
pub(in crate::workers) fn control(
    shared: &Arc<Shared>,
    clerk: DaemonRequestHandler,
    (address, group): (Address, Option<u32>),
) -> Manifold {
    let (clerk, lease) = (Arc::new(clerk), shared.lease.subscribe());
    let worker = shared.worker("control", move |_, life: WorkerContext| {
        let (clerk, address, lease) = (Arc::clone(&clerk), address.clone(), lease.clone());
        async move {
            let desk: Arc<dyn RequestHandler> = clerk;
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
            let ended = server.serve(desk, life.stopping().clone(), turns).await;
            ended.map_err(Failure::again)
        }
    });
    worker.handles("events").stop_rank(STOP_RANK_CONTROL)
}

/// Returns true if another daemon listens at the socket.
fn is_other(why: &BindError) -> bool {
    matches!(why, BindError::Alive(_))
}
