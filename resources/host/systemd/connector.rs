//! One shared connection to a bus, made at the first use and again after a loss.

use super::Bus;
use super::connection::BusConnection;
use super::fault::Fault;
use crate::failure::Failure;
use crate::host::process::spawner;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The time limit of connecting. A watch gives up after five seconds and must get the reason before.
const PATIENCE: Duration = Duration::from_secs(4);
/// The time for which a failure is repeated to all callers: a thousand resources must not each wait for a
/// hanging bus.
const REMEMBERED: Duration = Duration::from_millis(200);

/// The connector of one systemd.
#[derive(Debug)]
pub(super) struct Door {
    address: Option<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Closed,
    Open(Arc<BusConnection>),
    Failed(Instant, Failure),
}

impl Door {
    pub(super) fn new(address: Option<String>) -> Self {
        Self { address, state: Mutex::default() }
    }

    /// Returns the connection, and makes one if needed, without blocking the thread.
    pub(super) async fn link(&self, bus: Bus) -> Result<Arc<BusConnection>, Failure> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Open(link) if !link.is_lost() => return Ok(Arc::clone(link)),
            State::Failed(at, failure) if at.elapsed() < REMEMBERED => return Err(failure.clone()),
            State::Open(_) | State::Failed(..) | State::Closed => {}
        }
        match self.connect().await {
            Ok(link) => {
                *state = State::Open(Arc::clone(&link));
                Ok(link)
            }
            Err(fault) => {
                let failure = fault.unreachable(bus);
                *state = State::Failed(Instant::now(), failure.clone());
                Err(failure)
            }
        }
    }

    async fn connect(&self) -> Result<Arc<BusConnection>, Fault> {
        let lost = |why: &dyn ToString| Fault::Lost(why.to_string());
        let handle = spawner::handle().map_err(|failure| lost(&failure))?;
        let address = self.address.clone();
        let connecting = handle.spawn(async {
            let connecting = tokio::time::timeout(PATIENCE, BusConnection::open(address));
            connecting.await.unwrap_or(Err(Fault::Silent(PATIENCE)))
        });
        connecting.await.map_err(|why| lost(&why))?
    }
}
