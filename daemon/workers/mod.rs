//! The workers of a daemon, each with its own manifold, under one supervisor.
//!
//! `requests/` and `graph/` send requests to the driver through a queue that outlives a driver: after a failure the
//! driver is started again, and no other worker notices. The driver's loop has its own thread; all other workers are
//! tasks on the main thread, and must never block it.
//!
//! A value that ends with its worker is an output of that worker (the journal of the store). A value that outlives its
//! worker, such as a queue, is given to each worker that uses it, in the fields of its own parts. Nothing is shared by
//! all.
//!
//! Reading order: this file ([`run_daemon`]); `errors`; the chain of inputs `state/` and `driver`; `graph/`;
//! `requests/`; `reporting/`; `world/`; `shutdown`; `worker_factory`; `wiring`
//! (the parts of each worker); `fault_injection`.

mod driver;
mod errors;
#[cfg(feature = "fault-injection")]
mod fault_injection;
mod graph;
mod reporting;
mod requests;
mod shutdown;
mod state;
mod wiring;
mod worker_factory;
mod world;

pub use errors::{LogLevelError, SettingsRejected};
pub use graph::last_good_graph::{
    GraphVersion, damage_of_last_good_graph, generation, put_damaged_graph_aside,
};
pub use graph::last_good_settings::last_good_settings;
pub use graph::loader::{FirstRefused, GraphSource};
pub use graph::settings::{HostSettings, ReadSettings};
pub use reporting::metrics::MetricsSettings;
pub(crate) use reporting::recorders::sink;
pub use reporting::sd_notify;
pub use requests::handler::SetLog;
pub use state::record_readers::readers;
pub(crate) use state::store::log_ended_orphans;
pub use world::{bundle_link, host_name, open_existing_world, stored_exports, with_direct_world};

use crate::api::event_data::Reason;
use crate::api::{EventKind, Level};
use crate::control::Address;
use crate::driver::Observer;
use crate::events::{NewEvent, Publisher, Retention, Stream, session_start};
use crate::lease::Lease;
use crate::signals::Signals;
use crate::supervisor::{Delays, Ended, Supervisor};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::MintKey;
use tokio::sync::watch;

/// A function that creates the observer of a driver's notifications.
pub type MakeObserver = Box<dyn Fn() -> Box<dyn Observer> + Send + Sync>;

/// A function that makes the lease of a daemon. Its argument is the epoch of the lock of the state directory, none
/// until the directory is locked.
pub type MakeLease = Box<dyn FnOnce(watch::Receiver<Option<u64>>) -> Box<dyn Lease> + Send>;

/// The parts of a daemon.
pub struct Setup {
    /// The settings and the command line of the daemon.
    pub host: HostSettings,
    /// The function that reads the settings again; `None` if there is no settings file.
    pub read_settings: Option<ReadSettings>,
    /// The settings file.
    pub settings_file: Option<PathBuf>,
    /// The reason why other settings apply than those of the file, if so.
    pub settings_instead: Option<String>,
    /// The key for minting permits.
    pub key: MintKey,
    /// The state directory.
    pub state_directory: PathBuf,
    /// The function that makes the lease.
    pub lease: MakeLease,
    /// The signals of the process.
    pub signals: Signals,
    /// The function that creates the observer of notifications.
    pub observer: MakeObserver,
    /// The two sides of the event stream.
    pub events: (Publisher, Stream),
    /// The limits of the event log.
    pub retention: Retention,
    /// The function that changes the level of the log.
    pub set_log: SetLog,
    /// The function that returns the present problem of the log.
    pub log_problem: fn() -> Option<String>,
    /// The function that returns the number of log lines dropped so far.
    pub dropped_lines: fn() -> u64,
    /// The address of the control socket, and the group that may connect.
    pub socket: (Address, Option<u32>),
    /// For `--converged-timeout`: the daemon ends when the channel has been true for this time.
    pub until_converged: Option<(watch::Receiver<bool>, Duration)>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("graph", &self.host.graph).finish_non_exhaustive()
    }
}

/// The stop rank of workers that record the end: they stop after all that drive.
const STOP_RANK_EVENTS: u8 = 1;
/// The stop rank of the workers of signals and of the systemd watchdog: they stop after those that record.
const STOP_RANK_SIGNALS: u8 = 2;
/// The stop rank of the control socket: it answers until the end.
const STOP_RANK_CONTROL: u8 = 3;

/// Records the start of the daemon, and that the last-good settings are used if the settings file was rejected.
fn record_start(publisher: &Publisher, graph: &[PathBuf], settings_instead: Option<&str>) {
    publisher.publish(session_start("run", graph));
    if let Some(why) = settings_instead {
        tracing::error!(event = "last_good_settings", "{why}");
        let why = Reason { reason: why.to_owned() };
        publisher.publish(NewEvent::new(EventKind::LastGoodSettings(why), Level::Error));
    }
}

/// Runs the daemon until a stop is requested or a fatal failure happens.
///
/// # Errors
/// A message if the supervisor cannot be started.
pub async fn run_daemon(setup: Setup) -> Result<Arc<Ended>, &'static str> {
    let supervisor = Supervisor::start(Delays::default())?;
    let graph = &setup.host.graph.paths;
    record_start(&setup.events.0, graph, setup.settings_instead.as_deref());
    let workers = wiring::declare_workers(&supervisor, setup);
    if let Err(refused) = supervisor.install(workers).await {
        // A test checks that the declared inputs of the workers are consistent.
        tracing::error!(error = %refused, "the workers of the daemon could not be installed");
        supervisor.stop(None);
    }
    for input in supervisor.report().missing_inputs {
        let what = "is declared, but no such worker exists";
        tracing::error!(event = "missing_input", "input `{input}` {what}");
    }
    Ok(supervisor.ended().await)
}
