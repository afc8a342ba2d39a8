//! The workers of a daemon, each with its own manifold, under one supervisor.
//!
//! `signals`, `graph` and `control` ask; the driver does. What they ask goes through `requests`, which outlives any
//! driver, so a driver that broke is started anew and nobody else notices. The driver's loop has a thread of its own;
//! all others are tasks on the thread that holds the daemon. In the order in which they need each other: `lease`, `store`, `driver`; needed by
//! nobody, `graph`; stopped after those, `events`, the recorders and the lease; then `signals` and `watchdog`; and `control` last of all.

mod accepted;
mod control;
mod desk;
mod driver;
mod ending;
mod events;
#[cfg(debug_assertions)]
mod faults;
mod graph;
mod health;
mod judging;
mod lease;
mod mending;
mod recorders;
mod requests;
mod signals;
mod store;
mod surroundings;
pub mod systemd;
mod telling;
mod told;
mod watchdog;

pub use accepted::{Generation, generation};
pub use desk::SetLog;
pub use graph::{FirstRefused, GraphSource};
pub use judging::readers;

use crate::config::Recorder;
use crate::control::Address;
use crate::driver::{Audience, Settings};
use crate::events::{Happening, Level, Retention, Scribe, Stream, Teller, what};
use crate::history::{History, Limits};
use crate::lease::{Local, Standing};
use crate::signals::Signals;
use crate::store::Hold;
use crate::supervisor::{Delays, Ended, Failure, Inputs, Life, Manifold, Supervisor};
use ending::Ending;
use graph::Reloader;
use requests::Requests;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use steadfast_resources::MintKey;
use tokio::sync::watch;

/// Makes whoever hears the news of a driver.
pub type MakeAudience = Box<dyn Fn() -> Box<dyn Audience> + Send + Sync>;

/// What a daemon is made of.
pub struct Setup {
    /// How it drives.
    pub settings: Settings,
    /// The one key for permits.
    pub key: MintKey,
    /// Where state is kept.
    pub state_directory: PathBuf,
    /// How much is kept of what is changed.
    pub history: Limits,
    /// Which graph.
    pub graph: GraphSource,
    /// What it is asked by signals.
    pub signals: Signals,
    /// Who hears what happens.
    pub audience: MakeAudience,
    /// Where it tells events, and where they are followed.
    pub events: (Teller, Stream),
    /// How many of them are kept.
    pub retention: Retention,
    /// Who is told all that is recorded.
    pub recorders: Vec<Recorder>,
    /// How its log is changed.
    pub set_log: SetLog,
    /// Where it listens, and for which group too.
    pub socket: (Address, Option<u32>),
    /// How long runs may still take after a stop.
    pub grace: Duration,
    /// It ends when all has been as declared for so long; the channel says whether it is.
    pub until_converged: Option<(watch::Receiver<bool>, Duration)>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("graph", &self.graph).finish_non_exhaustive()
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
    settings: Settings,
    key: Arc<MintKey>,
    state_directory: PathBuf,
    history: Arc<History>,
    audience: MakeAudience,
    requests: Requests,
    graph: Reloader,
    ending: Ending,
    grace: Duration,
    teller: Teller,
    stream: Stream,
    press: Arc<events::Press>,
    /// How the lease stands, and what is held by it.
    lease: watch::Sender<Standing>,
    held: watch::Receiver<Option<Arc<Hold>>>,
    /// The last driver and all that it has started, as long as any of that lives.
    presence: Mutex<Weak<()>>,
    /// What an operator wants done to the state as a whole.
    mending: mending::Mender,
    #[cfg(debug_assertions)]
    faults: faults::Faults,
}

impl Shared {
    /// How long runs may take to end now.
    fn grace(&self) -> Duration {
        if self.ending.is_now() { Duration::ZERO } else { self.grace }
    }

    /// A worker. Where the program was built for tests, faults can be put into it.
    fn worker<W>(
        &self,
        name: &str,
        start: impl Fn(Inputs, Life) -> W + Send + Sync + 'static,
    ) -> Manifold
    where
        W: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        #[cfg(debug_assertions)]
        let start = self.faults.put_into(name, start);
        Manifold::new(name, told::told(&self.teller, name, start)).proves_life(silence())
    }
}

/// How long a worker may do nothing. Where the program was built for tests, they need not wait that long.
fn silence() -> Duration {
    #[cfg(debug_assertions)]
    if let Some(silence) = faults::silence() {
        return silence;
    }
    SILENCE
}

/// Holds the host until it is asked to stop, or something fatal happens.
pub async fn hold(setup: Setup) -> Result<Arc<Ended>, &'static str> {
    let supervisor = Supervisor::start(Delays::default())?;
    let requests = Requests::default();
    let local = Local::new(setup.state_directory.clone());
    let (teller, stream) = setup.events;
    let begins = format!("steadfast {}, process {}", env!("CARGO_PKG_VERSION"), std::process::id());
    teller.tell(Happening::new(what::RUN_START, begins, Level::Info));
    let scribe = Scribe::new(&stream, setup.state_directory.clone(), setup.retention);
    let shared = Arc::new(Shared {
        settings: setup.settings,
        key: Arc::new(setup.key),
        history: History::new(setup.state_directory.clone(), setup.history),
        state_directory: setup.state_directory,
        audience: setup.audience,
        graph: Reloader::new(setup.graph, requests.clone(), teller.clone()),
        ending: Ending::new(supervisor.clone(), requests.clone(), stream.clone()),
        requests,
        grace: setup.grace,
        teller,
        stream,
        press: Arc::new(events::Press::new(scribe)),
        lease: watch::Sender::default(),
        held: local.held(),
        presence: Mutex::default(),
        mending: mending::Mender::default(),
        #[cfg(debug_assertions)]
        faults: faults::Faults::default(),
    });
    // No worker: whoever follows hears of those that break.
    let beaten = shared.stream.clone();
    tokio::spawn(async move { beaten.beat(telling::TOGETHER).await });
    #[cfg(debug_assertions)]
    let local = shared.faults.losable(local);
    let clerk = desk::Clerk { shared: Arc::clone(&shared), set_log: setup.set_log };
    let stops = setup.signals.stops();
    let mut workers = vec![
        signals::signals(&shared, setup.signals),
        events::events(&shared),
        control::control(&shared, clerk, setup.socket),
        lease::lease(&shared, local),
        store::store(&shared),
        driver::driver(&shared),
        graph::graph(&shared, stops),
        watchdog::watchdog(&shared),
    ];
    workers.extend(setup.recorders.into_iter().map(|each| recorders::recorder(&shared, each)));
    workers.extend(setup.until_converged.map(|until| ending::when_converged(&shared, until)));
    if let Err(refused) = supervisor.install(workers).await {
        // They do not name each other wrongly: a test holds that.
        tracing::error!(error = %refused, "the daemon's own workers are not installed");
        supervisor.stop(None);
    }
    for input in supervisor.report().nobody {
        tracing::error!(event = "nobody", "no worker of this daemon offers `{input}`");
    }
    Ok(supervisor.ended().await)
}
