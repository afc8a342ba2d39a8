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
//! `requests/`; `reporting/`; `world/`; `shutdown`; `worker_factory`; `fault_injection`.

mod driver;
mod errors;
#[cfg(feature = "fault-injection")]
mod fault_injection;
mod graph;
mod reporting;
mod requests;
mod shutdown;
mod state;
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
pub use world::{host_name, open_existing_world, stored_exports, with_direct_world};

use crate::api::event_data::Reason;
use crate::api::{EventKind, Level};
use crate::control::Address;
use crate::driver::Observer;
use crate::events::{LogWriter, NewEvent, Publisher, Retention, Stream, session_start};
use crate::history::History;
use crate::lease::Lease;
use crate::signals::Signals;
use crate::supervisor::{Delays, Ended, Supervisor};
use graph::loader::{GraphLoader, SettingsFile};
use graph::settings::{LiveSettings, SettingsChanger};
use reporting::event_log::LogThread;
use reporting::health::HealthSources;
use reporting::metrics::MetricsSources;
use reporting::recorders::RecorderWorkers;
use requests::event_query;
use requests::handler::DaemonRequestHandler;
use requests::parts::HandlerParts;
use requests::queue::Requests;
use shutdown::Shutdown;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use steadfast_resources::MintKey;
use tokio::sync::watch;
use worker_factory::WorkerFactory;
use world::WorldParts;
use world::host_world::HostWorld;

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
    let (publisher, stream) = setup.events;
    let (host, state_directory) = (setup.host, setup.state_directory);
    record_start(&publisher, &host.graph.paths, setup.settings_instead.as_deref());
    let file = SettingsFile {
        read: setup.read_settings,
        path: setup.settings_file,
        text: Mutex::new(host.text.clone()),
        instead: Mutex::new(setup.settings_instead),
        ..SettingsFile::default()
    };
    let (declared, metrics) = (host.recorders.clone(), host.metrics.clone());
    // Each of these outlives the workers that use it.
    let factory = WorkerFactory::new(publisher.clone());
    let requests = Requests::default();
    let shutdown = Arc::new(Shutdown::new(supervisor.clone(), requests.clone(), stream.clone()));
    let lock = Arc::new(state::lock::SharedStateLock::new(state_directory.clone()));
    let maintenance = Arc::new(state::maintenance::MaintenanceQueue::default());
    let history = History::new(state_directory.clone(), host.history);
    let world = Arc::new(HostWorld::new(host.world.clone(), &state_directory));
    let source = (host.graph.clone(), file);
    let graph = GraphLoader::new(source, requests.clone(), publisher.clone());
    graph.set_exports(stored_exports(&state_directory));
    let settings = Arc::new(LiveSettings::new(host, setup.set_log));
    let lease_status = watch::Sender::default();
    let log_writer = LogWriter::new(&stream, state_directory.clone(), setup.retention);
    let log_thread = Arc::new(LogThread::new(log_writer));
    // A task instead of a worker: subscribers must receive the events of failing workers.
    let marked = stream.clone();
    tokio::spawn(async move { marked.send_marks(event_query::TOGETHER).await });
    let lease = (setup.lease)(lock.epoch());
    #[cfg(feature = "fault-injection")]
    let lease: Box<dyn Lease> = Box::new(factory.faults.losable(lease));
    let stops = setup.signals.stops();
    let (control, group) = setup.socket;

    let recorders = Arc::new(RecorderWorkers {
        factory: factory.clone(),
        log_thread: Arc::clone(&log_thread),
        shutdown: Arc::clone(&shutdown),
        state_directory: state_directory.clone(),
        stream: stream.clone(),
        exchange: tokio::sync::Mutex::default(),
    });
    let changer = Arc::new(SettingsChanger {
        settings: Arc::clone(&settings),
        requests: requests.clone(),
        history: Arc::clone(&history),
        publisher: publisher.clone(),
        recorders: Arc::clone(&recorders),
    });
    let sources = MetricsSources {
        shutdown: Arc::clone(&shutdown),
        lease: lease_status.subscribe(),
        started: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
        requests: requests.clone(),
        world: Arc::clone(&world),
        dropped_lines: setup.dropped_lines,
        stream: stream.clone(),
    };
    let health = HealthSources {
        shutdown: Arc::clone(&shutdown),
        stream: stream.clone(),
        log_problem: setup.log_problem,
        history: Arc::clone(&history),
        world: Arc::clone(&world),
        settings: Arc::clone(&settings),
    };
    let handler = DaemonRequestHandler::new(HandlerParts {
        requests: requests.clone(),
        graph: graph.clone(),
        shutdown: Arc::clone(&shutdown),
        stream: stream.clone(),
        state_directory: state_directory.clone(),
        lock: Arc::clone(&lock),
        maintenance: Arc::clone(&maintenance),
        history: Arc::clone(&history),
        world: Arc::clone(&world),
        settings: Arc::clone(&settings),
        health,
        #[cfg(feature = "fault-injection")]
        faults: factory.faults.clone(),
    });
    let drive = driver::DriverParts {
        key: Arc::new(setup.key),
        observer: setup.observer,
        lease: lease_status.subscribe(),
        graph: graph.clone(),
        history: Arc::clone(&history),
        requests: requests.clone(),
        settings: Arc::clone(&settings),
        shutdown: Arc::clone(&shutdown),
        state_directory: state_directory.clone(),
        world: Arc::clone(&world),
    };
    let log = reporting::event_log::EventLogParts {
        lock: Arc::clone(&lock),
        log_thread,
        shutdown: Arc::clone(&shutdown),
        stream,
    };
    let store = state::store::StoreParts {
        history,
        lock,
        maintenance,
        publisher: publisher.clone(),
        requests: requests.clone(),
        settings,
        state_directory: state_directory.clone(),
    };
    let of_signals = (graph.clone(), requests.clone(), Arc::clone(&shutdown));
    let until = setup.until_converged;
    let until = until.map(|it| shutdown::when_converged(&factory, it, (&graph, &shutdown)));
    let mut workers = vec![
        reporting::metrics::metrics_socket(&factory, &sources, (&control, group), &metrics),
        requests::signals::signals(&factory, setup.signals, of_signals),
        reporting::event_log::events(&factory, log),
        requests::control::control(&factory, handler, (control, group), lease_status.subscribe()),
        state::lease::lease(&factory, lease, (lease_status, requests.clone())),
        state::store::store(&factory, store),
        driver::driver(&factory, drive),
        graph::loader::graph(&factory, &graph, (changer, Arc::clone(&world)), stops),
        reporting::watchdog::watchdog(&factory, (&shutdown, &requests)),
    ];
    workers.push(world::world(
        &factory,
        WorldParts { world, graph, requests, publisher, state_directory },
    ));
    workers.extend(declared.into_iter().map(|each| recorders.worker(each)));
    workers.extend(reporting::metrics::optional_metrics(&factory, &sources, &metrics));
    workers.extend(until);
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
