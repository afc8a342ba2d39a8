//! The worker that answers at the control socket.

use super::request_handler::Clerk;
use super::{ANSWERS, Shared, silence};
use crate::control::{Address, Beside, Desk, Limits, Server};
use crate::lease::Standing;
use crate::supervisor::{Failure, Life, Manifold, Outputs};
use std::sync::Arc;

/// Listens at the control socket, whatever becomes of all others, and until they have ended.
pub(super) fn control(
    shared: &Arc<Shared>,
    clerk: Clerk,
    (address, group): (Address, Option<u32>),
) -> Manifold {
    let (clerk, lease) = (Arc::new(clerk), shared.lease.subscribe());
    let worker = shared.worker("control", move |_, life: Life| {
        let (clerk, address, lease) = (Arc::clone(&clerk), address.clone(), lease.clone());
        async move {
            let desk: Arc<dyn Desk> = clerk;
            let server = Server::bind(address.clone(), group, Limits::default()).await;
            let server = server.map_err(|why| {
                // One that never has the lease ends, and says whose it is.
                if !is_other(&why) || *lease.borrow() != Standing::Wanted {
                    tracing::warn!(event = "control", "{why}: commands cannot reach this daemon");
                }
                Failure::again(why)
            })?;
            life.say(format!("listens at {}", address.path().display()));
            life.ready(Outputs::none());
            let turns = (silence() / 3, || life.alive());
            let ended = server.serve(desk, life.stopping().clone(), turns).await;
            ended.map_err(Failure::again)
        }
    });
    worker.handles("events").last(ANSWERS)
}

/// Whether another daemon listens there.
fn is_other(why: &Beside) -> bool {
    matches!(why, Beside::Alive(_))
}
