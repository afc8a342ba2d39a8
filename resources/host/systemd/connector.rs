//! One connection for all who need one: made at first use, and again when it was lost.

use super::Bus;
use super::connection::BusConnection;
use super::fault::Fault;
use crate::failure::Failure;
use crate::host::process::spawner;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long it may take to connect. A watch is given up after five seconds, and should hear why before that.
const PATIENCE: Duration = Duration::from_secs(4);
/// So long a failure is the answer to all who ask: a thousand resources do not each wait for a bus that hangs.
const REMEMBERED: Duration = Duration::from_millis(200);

/// The way to one systemd.
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

    /// The connection; it is made where there is none, and blocks nobody's thread.
    pub(super) async fn link(&self, bus: Bus) -> Result<Arc<BusConnection>, Failure> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Open(link) if !link.is_lost() => return Ok(Arc::clone(link)),
            State::Failed(at, trouble) if at.elapsed() < REMEMBERED => return Err(trouble.clone()),
            State::Open(_) | State::Failed(..) | State::Closed => {}
        }
        match self.connect().await {
            Ok(link) => {
                *state = State::Open(Arc::clone(&link));
                Ok(link)
            }
            Err(fault) => {
                let trouble = fault.unreachable(bus);
                *state = State::Failed(Instant::now(), trouble.clone());
                Err(trouble)
            }
        }
    }

    async fn connect(&self) -> Result<Arc<BusConnection>, Fault> {
        let lost = |why: &dyn ToString| Fault::Lost(why.to_string());
        let handle = spawner::handle().map_err(|trouble| lost(&trouble))?;
        let address = self.address.clone();
        let connecting = handle.spawn(async {
            let connecting = tokio::time::timeout(PATIENCE, BusConnection::open(address));
            connecting.await.unwrap_or(Err(Fault::Silent(PATIENCE)))
        });
        connecting.await.map_err(|why| lost(&why))?
    }
}
