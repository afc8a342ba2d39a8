//! The parts of the daemon that answer requests.

#[cfg(feature = "fault-injection")]
use crate::api::Reply;
use crate::events::Stream;
use crate::history::History;
#[cfg(feature = "fault-injection")]
use crate::workers::fault_injection::Faults;
use crate::workers::graph::loader::GraphLoader;
use crate::workers::graph::settings::LiveSettings;
use crate::workers::reporting::health::HealthSources;
use crate::workers::requests::queue::Requests;
use crate::workers::shutdown::Shutdown;
use crate::workers::state::lock::SharedStateLock;
use crate::workers::state::maintenance::MaintenanceQueue;
use crate::workers::world::host_world::HostWorld;
use std::path::PathBuf;
use std::sync::Arc;

/// The parts that answer requests.
pub(in crate::workers) struct HandlerParts {
    pub(in crate::workers) requests: Requests,
    pub(in crate::workers) graph: GraphLoader,
    pub(in crate::workers) shutdown: Arc<Shutdown>,
    pub(in crate::workers) stream: Stream,
    pub(in crate::workers) state_directory: PathBuf,
    pub(in crate::workers) lock: Arc<SharedStateLock>,
    pub(in crate::workers) maintenance: Arc<MaintenanceQueue>,
    pub(in crate::workers) history: Arc<History>,
    pub(in crate::workers) world: Arc<HostWorld>,
    pub(in crate::workers) settings: Arc<LiveSettings>,
    pub(in crate::workers) health: HealthSources,
    #[cfg(feature = "fault-injection")]
    pub(in crate::workers) faults: Faults,
}

#[cfg(feature = "fault-injection")]
impl HandlerParts {
    /// Injects a fault into a worker.
    pub(super) fn inject_fault(&self, worker: &str, how: &str) -> Result<(), Reply> {
        Ok(self.faults.carry_out(&self.requests, worker, how)?)
    }
}
