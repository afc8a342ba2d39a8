//! The workers of a daemon, each with its own manifold, under one supervisor.
//!
//! `requests/` and `graph/` send requests to the driver through a queue that outlives a driver: after a failure the
//! driver is started again, and no other worker notices. The driver's loop has its own thread; all other workers are
//! tasks on the main thread, and must never block it.
//!
//! Reading order: this file ([`run_daemon`]); `errors`; the chain of inputs `state/` and `driver`; `graph/`;
//! `requests/`; `reporting/`; `world/`; `shutdown`; `fault_injection`.

mod driver;
mod errors;
#[cfg(feature = "fault-injection")]
mod fault_injection;
mod graph;
mod reporting;
mod requests;
mod shutdown;
mod state;
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
pub use world::{host_name, open_existing_world, stored_exports, with_direct_world};

use crate::api::event_data::Reason;
use crate::api::{EventKind, Level};
use crate::control::Address;
use crate::driver::Observer;
use crate::events::{LogWriter, NewEvent, Publisher, Retention, Stream, session_start};
use crate::history::History;
use crate::lease::{Lease, LeaseStatus};
use crate::signals::Signals;
use crate::supervisor::{Delays, Ended, Failure, Inputs, Manifold, Supervisor, WorkerContext};
use graph::loader::{GraphLoader, SettingsFile};
use requests::event_query;
use requests::handler::DaemonRequestHandler;
use requests::queue::Requests;
use shutdown::Shutdown;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};
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

/// The time after which a silent worker counts as hanging. The watchdog of systemd is stricter with the driver.
const HEARTBEAT_LIMIT: Duration = Duration::from_secs(30);

/// The state that the workers share.
struct Shared {
    /// The settings that apply.
    host: Mutex<HostSettings>,
    /// The settings that only a start applies, as they were at the start.
    fixed: Vec<(&'static str, String)>,
    /// The names of settings that a restart would change.
    pending: Mutex<Vec<String>>,
    set_log: SetLog,
    key: Arc<MintKey>,
    state_directory: PathBuf,
    history: Arc<History>,
    observer: MakeObserver,
    requests: Requests,
    graph: GraphLoader,
    shutdown: Shutdown,
    /// The connection to the world.
    world: Arc<world::host_world::HostWorld>,
    publisher: Publisher,
    stream: Stream,
    log_problem: fn() -> Option<String>,
    dropped_lines: fn() -> u64,
    /// The time since 1970 of the start.
    started: Duration,
    log_thread: Arc<reporting::event_log::LogThread>,
    /// A lock against overlapping exchanges of recorders.
    exchange: tokio::sync::Mutex<()>,
    /// The state of the lease.
    lease: watch::Sender<LeaseStatus>,
    /// The lock of the state directory.
    lock: state::lock::SharedStateLock,
    /// Alive as long as the last driver or one of its runs is.
    presence: Mutex<Weak<()>>,
    /// The maintenance that an operator requests.
    maintenance: state::maintenance::MaintenanceQueue,
    #[cfg(feature = "fault-injection")]
    faults: fault_injection::Faults,
}

impl Shared {
    /// Returns the time that runs have to end now.
    fn grace(&self) -> Duration {
        if self.shutdown.is_now() { Duration::ZERO } else { self.host().grace }
    }

    /// Returns the settings that apply.
    fn host(&self) -> HostSettings {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Creates a worker. With the feature `fault-injection`, faults can be injected into it.
    fn worker<W>(
        &self,
        name: &str,
        start: impl Fn(Inputs, WorkerContext) -> W + Send + Sync + 'static,
    ) -> Manifold
    where
        W: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        #[cfg(feature = "fault-injection")]
        let start = self.faults.put_into(name, start);
        Manifold::new(name, reporting::worker_events::told(&self.publisher, name, start))
            .heartbeat_within(heartbeat_limit())
    }
}

/// Returns the time after which a silent worker counts as hanging; tests can shorten it.
fn heartbeat_limit() -> Duration {
    #[cfg(feature = "fault-injection")]
    if let Some(heartbeat_limit) = fault_injection::heartbeat_limit() {
        return heartbeat_limit;
    }
    HEARTBEAT_LIMIT
}

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
    let requests = Requests::default();
    let lock = state::lock::SharedStateLock::new(setup.state_directory.clone());
    let lease = (setup.lease)(lock.epoch());
    let (publisher, stream) = setup.events;
    record_start(&publisher, &setup.host.graph.paths, setup.settings_instead.as_deref());
    let log_writer = LogWriter::new(&stream, setup.state_directory.clone(), setup.retention);
    let file = SettingsFile {
        read: setup.read_settings,
        path: setup.settings_file,
        text: Mutex::new(setup.host.text.clone()),
        instead: Mutex::new(setup.settings_instead),
        ..SettingsFile::default()
    };
    let host = setup.host;
    let (declared, metrics) = (host.recorders.clone(), host.metrics.clone());
    let connection = world::host_world::HostWorld::new(host.world.clone(), &setup.state_directory);
    let exports = stored_exports(&setup.state_directory);
    let shared = Arc::new(Shared {
        world: Arc::new(connection),
        fixed: host.fixed.clone(),
        pending: Mutex::default(),
        set_log: setup.set_log,
        key: Arc::new(setup.key),
        history: History::new(setup.state_directory.clone(), host.history),
        state_directory: setup.state_directory,
        observer: setup.observer,
        graph: GraphLoader::new((host.graph.clone(), file), requests.clone(), publisher.clone()),
        host: Mutex::new(host),
        shutdown: Shutdown::new(supervisor.clone(), requests.clone(), stream.clone()),
        requests,
        publisher,
        stream,
        log_problem: setup.log_problem,
        dropped_lines: setup.dropped_lines,
        started: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
        log_thread: Arc::new(reporting::event_log::LogThread::new(log_writer)),
        exchange: tokio::sync::Mutex::default(),
        lease: watch::Sender::default(),
        lock,
        presence: Mutex::default(),
        maintenance: state::maintenance::MaintenanceQueue::default(),
        #[cfg(feature = "fault-injection")]
        faults: fault_injection::Faults::default(),
    });
    shared.graph.set_exports(exports);
    // A task instead of a worker: subscribers must receive the events of failing workers.
    let marked = shared.stream.clone();
    tokio::spawn(async move { marked.send_marks(event_query::TOGETHER).await });
    #[cfg(feature = "fault-injection")]
    let lease: Box<dyn Lease> = Box::new(shared.faults.losable(lease));
    let stops = setup.signals.stops();
    let (control, group) = setup.socket;
    let handler = DaemonRequestHandler::new(&shared);
    let mut workers = vec![
        reporting::metrics::metrics_socket(&shared, (&control, group), &metrics),
        requests::signals::signals(&shared, setup.signals),
        reporting::event_log::events(&shared),
        requests::control::control(&shared, handler, (control, group)),
        state::lease::lease(&shared, lease),
        state::store::store(&shared),
        driver::driver(&shared),
        graph::loader::graph(&shared, stops),
        reporting::watchdog::watchdog(&shared),
        world::world(&shared),
    ];
    workers.extend(declared.into_iter().map(|each| reporting::recorders::recorder(&shared, each)));
    workers.extend(reporting::metrics::optional_metrics(&shared, &metrics));
    workers.extend(setup.until_converged.map(|until| shutdown::when_converged(&shared, until)));
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
