//! The workers of a daemon, each with its own manifold, under one supervisor.
//!
//! `signals`, `graph` and `control` ask; the driver does. What they ask goes through `requests`, which outlives any
//! driver, so a driver that broke is started anew and nobody else notices. The driver's loop has a thread of its own;
//! all others are tasks on the thread that holds the daemon. In the order in which they need each other: `lease`, `store`, `driver`; needed by
//! nobody, `graph`; stopped after those, `events`, the recorders and the lease; then `signals` and `watchdog`; and `control` last of all.

mod control;
mod driver;
mod event_log;
mod event_query;
#[cfg(debug_assertions)]
mod fault_injection;
mod graph_loader;
mod health;
mod host_limits;
mod last_good_graph;
mod last_good_settings;
mod lease;
mod record_readers;
mod recorders;
mod request_handler;
mod request_queue;
pub mod sd_notify;
mod settings;
mod shutdown;
mod signals;
mod state_maintenance;
mod store;
mod watchdog;
mod worker_events;

pub use graph_loader::{FirstRefused, GraphSource};
pub use last_good_graph::{GraphVersion, generation};
pub use last_good_settings::last_good_settings;
pub use record_readers::readers;
pub(crate) use recorders::sink;
pub use request_handler::SetLog;
pub use settings::{HostSettings, ReadSettings, Reloaded, SettingsChange};
pub(crate) use store::tell_orphans;

use crate::control::Address;
use crate::driver::Observer;
use crate::events::{Level, LogWriter, NewEvent, Publisher, Retention, Stream, what};
use crate::history::History;
use crate::lease::{LeaseStatus, StateDirLease};
use crate::signals::Signals;
use crate::store::StateLock;
use crate::supervisor::{Delays, Ended, Failure, Inputs, Manifold, Supervisor, WorkerContext};
use graph_loader::{GraphLoader, SettingsFile};
use request_queue::Requests;
use shutdown::Shutdown;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use steadfast_resources::MintKey;
use tokio::sync::watch;

/// Makes whoever hears the news of a driver.
pub type MakeAudience = Box<dyn Fn() -> Box<dyn Observer> + Send + Sync>;

/// What a daemon is made of.
pub struct Setup {
    /// The settings and the command line of the daemon.
    pub host: HostSettings,
    /// Reads that again; none where the command line says all.
    pub read_settings: Option<ReadSettings>,
    /// The settings file.
    pub settings_file: Option<PathBuf>,
    /// The reason why other settings apply than those of that file, where that is so.
    pub settings_instead: Option<String>,
    /// The one key for permits.
    pub key: MintKey,
    /// Where state is kept.
    pub state_directory: PathBuf,
    /// What it is asked by signals.
    pub signals: Signals,
    /// Who hears what happens.
    pub audience: MakeAudience,
    /// Where it tells events, and where they are followed.
    pub events: (Publisher, Stream),
    /// How many of them are kept.
    pub retention: Retention,
    /// How its log is changed.
    pub set_log: SetLog,
    /// The trouble of its log at this moment.
    pub log_trouble: fn() -> Option<String>,
    /// Where it listens, and for which group too.
    pub socket: (Address, Option<u32>),
    /// It ends when all has been as declared for so long; the channel says whether it is.
    pub until_converged: Option<(watch::Receiver<bool>, Duration)>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("graph", &self.host.graph).finish_non_exhaustive()
    }
}

/// Stopped after all that drive: what tells of their end, and by which right they did.
const TELLS: u8 = 1;
/// Stopped after those too: whoever hears that it is to end at once, and who keeps systemd quiet meanwhile.
const HEARS: u8 = 2;
/// Stopped last of all: it can be asked how the end is going.
const ANSWERS: u8 = 3;

/// How long a worker may do nothing before it is known to hang. The watchdog of systemd is less patient with the driver.
const SILENCE: Duration = Duration::from_secs(30);

/// What workers share.
struct Shared {
    /// The settings that apply.
    host: Mutex<HostSettings>,
    /// Those of the start that only a start applies.
    fixed: Vec<(&'static str, String)>,
    /// The names of settings that a restart would change.
    pending: Mutex<Vec<String>>,
    set_log: SetLog,
    key: Arc<MintKey>,
    state_directory: PathBuf,
    history: Arc<History>,
    audience: MakeAudience,
    requests: Requests,
    graph: GraphLoader,
    ending: Shutdown,
    teller: Publisher,
    stream: Stream,
    log_trouble: fn() -> Option<String>,
    press: Arc<event_log::LogThread>,
    /// Held while a reload replaces recorders.
    exchange: tokio::sync::Mutex<()>,
    /// How the lease stands, and what is held by it.
    lease: watch::Sender<LeaseStatus>,
    held: watch::Receiver<Option<Arc<StateLock>>>,
    /// The last driver and all that it has started, as long as any of that lives.
    presence: Mutex<Weak<()>>,
    /// What an operator wants done to the state as a whole.
    mending: state_maintenance::MaintenanceQueue,
    #[cfg(debug_assertions)]
    faults: fault_injection::Faults,
}

impl Shared {
    /// How long runs may take to end now.
    fn grace(&self) -> Duration {
        if self.ending.is_now() { Duration::ZERO } else { self.host().grace }
    }

    /// The settings that apply.
    fn host(&self) -> HostSettings {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A worker. Where the program was built for tests, faults can be put into it.
    fn worker<W>(
        &self,
        name: &str,
        start: impl Fn(Inputs, WorkerContext) -> W + Send + Sync + 'static,
    ) -> Manifold
    where
        W: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        #[cfg(debug_assertions)]
        let start = self.faults.put_into(name, start);
        Manifold::new(name, worker_events::told(&self.teller, name, start))
            .heartbeat_within(silence())
    }
}

/// How long a worker may do nothing. Where the program was built for tests, they need not wait that long.
fn silence() -> Duration {
    #[cfg(debug_assertions)]
    if let Some(silence) = fault_injection::silence() {
        return silence;
    }
    SILENCE
}

/// Records the start of the daemon, and that the last good settings are used where the settings file was rejected.
fn tell_start(teller: &Publisher, settings_instead: Option<&str>) {
    let message =
        format!("steadfast {}, process {}", env!("CARGO_PKG_VERSION"), std::process::id());
    let start = NewEvent::new(what::RUN_START, message, Level::Info);
    teller.tell(NewEvent { class: Some("run"), ..start });
    if let Some(why) = settings_instead {
        tracing::error!(event = "last_good_settings", "{why}");
        teller.tell(NewEvent::new("last_good_settings", why, Level::Error));
    }
}

/// Holds the host until it is asked to stop, or something fatal happens.
pub async fn hold(setup: Setup) -> Result<Arc<Ended>, &'static str> {
    let supervisor = Supervisor::start(Delays::default())?;
    let requests = Requests::default();
    let local = StateDirLease::new(setup.state_directory.clone());
    let (teller, stream) = setup.events;
    tell_start(&teller, setup.settings_instead.as_deref());
    let scribe = LogWriter::new(&stream, setup.state_directory.clone(), setup.retention);
    let file = SettingsFile {
        read: setup.read_settings,
        path: setup.settings_file,
        text: Mutex::new(setup.host.text.clone()),
        instead: Mutex::new(setup.settings_instead),
        ..SettingsFile::default()
    };
    let host = setup.host;
    let declared = host.recorders.clone();
    let shared = Arc::new(Shared {
        fixed: host.fixed.clone(),
        pending: Mutex::default(),
        set_log: setup.set_log,
        key: Arc::new(setup.key),
        history: History::new(setup.state_directory.clone(), host.history),
        state_directory: setup.state_directory,
        audience: setup.audience,
        graph: GraphLoader::new((host.graph.clone(), file), requests.clone(), teller.clone()),
        host: Mutex::new(host),
        ending: Shutdown::new(supervisor.clone(), requests.clone(), stream.clone()),
        requests,
        teller,
        stream,
        log_trouble: setup.log_trouble,
        press: Arc::new(event_log::LogThread::new(scribe)),
        exchange: tokio::sync::Mutex::default(),
        lease: watch::Sender::default(),
        held: local.held(),
        presence: Mutex::default(),
        mending: state_maintenance::MaintenanceQueue::default(),
        #[cfg(debug_assertions)]
        faults: fault_injection::Faults::default(),
    });
    // No worker: whoever follows hears of those that break.
    let beaten = shared.stream.clone();
    tokio::spawn(async move { beaten.send_marks(event_query::TOGETHER).await });
    #[cfg(debug_assertions)]
    let local = shared.faults.losable(local);
    let clerk = request_handler::DaemonRequestHandler { shared: Arc::clone(&shared) };
    let stops = setup.signals.stops();
    let mut workers = vec![
        signals::signals(&shared, setup.signals),
        event_log::events(&shared),
        control::control(&shared, clerk, setup.socket),
        lease::lease(&shared, local),
        store::store(&shared),
        driver::driver(&shared),
        graph_loader::graph(&shared, stops),
        watchdog::watchdog(&shared),
    ];
    workers.extend(declared.into_iter().map(|each| recorders::recorder(&shared, each)));
    workers.extend(setup.until_converged.map(|until| shutdown::when_converged(&shared, until)));
    if let Err(refused) = supervisor.install(workers).await {
        // They do not name each other wrongly: a test holds that.
        tracing::error!(error = %refused, "the workers of the daemon could not be installed");
        supervisor.stop(None);
    }
    for input in supervisor.report().missing_inputs {
        tracing::error!(
            event = "missing_input",
            "input `{input}` is declared, but no such worker exists"
        );
    }
    Ok(supervisor.ended().await)
}
