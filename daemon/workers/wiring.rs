//! The values that outlive a worker, and the parts of each worker. No worker gets this file's values as a whole.

use super::graph::loader::{self, GraphLoader, SettingsFile};
use super::graph::settings::{HostSettings, LiveSettings, SettingsChanger};
use super::reporting::event_log::{self, EventLogParts, LogThread};
use super::reporting::health::HealthSources;
use super::reporting::metrics::{self, MetricsSources};
use super::reporting::recorders::RecorderWorkers;
use super::reporting::watchdog;
use super::requests::handler::{DaemonRequestHandler, SetLog};
use super::requests::parts::HandlerParts;
use super::requests::queue::Requests;
use super::requests::{control, event_query, signals};
use super::shutdown::{self, Shutdown};
use super::state::lease;
use super::state::lock::SharedStateLock;
use super::state::maintenance::MaintenanceQueue;
use super::state::store::{self, StoreParts};
use super::worker_factory::WorkerFactory;
use super::world::host_world::HostWorld;
use super::world::offered_exports::OfferedExports;
use super::world::{self, WorldParts, stored_exports};
use super::{MakeObserver, Setup, driver};
use crate::events::{LogWriter, Publisher, Retention, Stream};
use crate::history::History;
#[cfg(feature = "fault-injection")]
use crate::lease::Lease;
use crate::lease::LeaseStatus;
use crate::supervisor::{Manifold, Supervisor};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use steadfast_resources::MintKey;
use tokio::sync::watch;

/// The values that outlive a worker.
struct Wiring {
    factory: WorkerFactory,
    publisher: Publisher,
    stream: Stream,
    state_directory: PathBuf,
    requests: Requests,
    shutdown: Arc<Shutdown>,
    lock: Arc<SharedStateLock>,
    maintenance: Arc<MaintenanceQueue>,
    history: Arc<History>,
    world: Arc<HostWorld>,
    graph: GraphLoader,
    settings: Arc<LiveSettings>,
    lease: watch::Sender<LeaseStatus>,
    log_thread: Arc<LogThread>,
}

/// Declares all workers of a daemon.
pub(super) fn declare_workers(supervisor: &Supervisor, setup: Setup) -> Vec<Manifold> {
    let file = SettingsFile {
        read: setup.read_settings,
        path: setup.settings_file,
        text: Mutex::new(setup.host.text.clone()),
        instead: Mutex::new(setup.settings_instead),
        ..SettingsFile::default()
    };
    let (declared, wanted) = (setup.host.recorders.clone(), setup.host.metrics.clone());
    let own = Wiring::new(
        (supervisor, setup.events),
        (setup.host, file, setup.set_log),
        (setup.state_directory, setup.retention),
    );
    own.send_marks();
    let factory = &own.factory;
    let lease = (setup.lease)(own.lock.epoch());
    #[cfg(feature = "fault-injection")]
    let lease: Box<dyn Lease> = Box::new(factory.faults.losable(lease));
    let stops = setup.signals.stops();
    let (address, group) = setup.socket;
    let recorders = own.recorders();
    let sources = own.metrics(setup.dropped_lines);
    let handler = own.handler(setup.log_problem);
    let of_signals = (own.graph.clone(), own.requests.clone(), Arc::clone(&own.shutdown));
    let of_loader = (own.changer(&recorders), Arc::clone(&own.world));
    let until = setup
        .until_converged
        .map(|until| shutdown::when_converged(factory, until, (&own.graph, &own.shutdown)));
    let mut workers = vec![
        metrics::metrics_socket(factory, &sources, (&address, group), &wanted),
        signals::signals(factory, setup.signals, of_signals),
        event_log::events(factory, own.event_log()),
        control::control(factory, handler, (address, group), own.lease.subscribe()),
        lease::lease(factory, lease, (own.lease.clone(), own.requests.clone())),
        store::store(factory, own.store()),
        driver::driver(factory, own.driver(setup.key, setup.observer)),
        loader::graph(factory, &own.graph, of_loader, stops),
        watchdog::watchdog(factory, (&own.shutdown, &own.requests)),
        world::world(factory, own.world()),
    ];
    workers.extend(declared.into_iter().map(|each| recorders.worker(each)));
    workers.extend(metrics::optional_metrics(factory, &sources, &wanted));
    workers.extend(until);
    workers
}

impl Wiring {
    fn new(
        (supervisor, (publisher, stream)): (&Supervisor, (Publisher, Stream)),
        (host, file, set_log): (HostSettings, SettingsFile, SetLog),
        (state_directory, retention): (PathBuf, Retention),
    ) -> Self {
        let requests = Requests::default();
        let shutdown = Shutdown::new(supervisor.clone(), requests.clone(), stream.clone());
        let log_writer = LogWriter::new(&stream, state_directory.clone(), retention);
        let source = (host.graph.clone(), file);
        let graph = GraphLoader::new(source, requests.clone(), publisher.clone());
        graph.set_exports(stored_exports(&state_directory));
        Self {
            factory: WorkerFactory::new(publisher.clone()),
            shutdown: Arc::new(shutdown),
            lock: Arc::new(SharedStateLock::new(state_directory.clone())),
            maintenance: Arc::new(MaintenanceQueue::default()),
            history: History::new(state_directory.clone(), host.history),
            world: Arc::new(HostWorld::new(host.world.clone(), &state_directory)),
            graph,
            settings: Arc::new(LiveSettings::new(host, set_log)),
            lease: watch::Sender::default(),
            log_thread: Arc::new(LogThread::new(log_writer)),
            publisher,
            stream,
            state_directory,
            requests,
        }
    }

    /// Marks the ends of batches of events. This is a task and no worker: subscribers must receive the events of
    /// failing workers.
    fn send_marks(&self) {
        let stream = self.stream.clone();
        tokio::spawn(async move { stream.send_marks(event_query::TOGETHER).await });
    }

    fn recorders(&self) -> Arc<RecorderWorkers> {
        Arc::new(RecorderWorkers {
            factory: self.factory.clone(),
            log_thread: Arc::clone(&self.log_thread),
            shutdown: Arc::clone(&self.shutdown),
            state_directory: self.state_directory.clone(),
            stream: self.stream.clone(),
            exchange: tokio::sync::Mutex::default(),
        })
    }

    fn changer(&self, recorders: &Arc<RecorderWorkers>) -> Arc<SettingsChanger> {
        Arc::new(SettingsChanger {
            settings: Arc::clone(&self.settings),
            requests: self.requests.clone(),
            history: Arc::clone(&self.history),
            publisher: self.publisher.clone(),
            recorders: Arc::clone(recorders),
        })
    }

    fn metrics(&self, dropped_lines: fn() -> u64) -> MetricsSources {
        MetricsSources {
            shutdown: Arc::clone(&self.shutdown),
            lease: self.lease.subscribe(),
            started: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
            requests: self.requests.clone(),
            world: Arc::clone(&self.world),
            dropped_lines,
            stream: self.stream.clone(),
        }
    }

    fn handler(&self, log_problem: fn() -> Option<String>) -> DaemonRequestHandler {
        let health = HealthSources {
            shutdown: Arc::clone(&self.shutdown),
            stream: self.stream.clone(),
            log_problem,
            history: Arc::clone(&self.history),
            world: Arc::clone(&self.world),
            settings: Arc::clone(&self.settings),
        };
        DaemonRequestHandler::new(HandlerParts {
            requests: self.requests.clone(),
            graph: self.graph.clone(),
            shutdown: Arc::clone(&self.shutdown),
            stream: self.stream.clone(),
            state_directory: self.state_directory.clone(),
            lock: Arc::clone(&self.lock),
            maintenance: Arc::clone(&self.maintenance),
            history: Arc::clone(&self.history),
            world: Arc::clone(&self.world),
            settings: Arc::clone(&self.settings),
            health,
            #[cfg(feature = "fault-injection")]
            faults: self.factory.faults.clone(),
        })
    }

    fn driver(&self, key: MintKey, observer: MakeObserver) -> driver::DriverParts {
        driver::DriverParts {
            key: Arc::new(key),
            observer,
            lease: self.lease.subscribe(),
            graph: self.graph.clone(),
            history: Arc::clone(&self.history),
            requests: self.requests.clone(),
            settings: Arc::clone(&self.settings),
            shutdown: Arc::clone(&self.shutdown),
            state_directory: self.state_directory.clone(),
            world: Arc::clone(&self.world),
        }
    }

    fn event_log(&self) -> EventLogParts {
        EventLogParts {
            lock: Arc::clone(&self.lock),
            log_thread: Arc::clone(&self.log_thread),
            shutdown: Arc::clone(&self.shutdown),
            stream: self.stream.clone(),
        }
    }

    fn store(&self) -> StoreParts {
        StoreParts {
            history: Arc::clone(&self.history),
            lock: Arc::clone(&self.lock),
            maintenance: Arc::clone(&self.maintenance),
            publisher: self.publisher.clone(),
            requests: self.requests.clone(),
            settings: Arc::clone(&self.settings),
            state_directory: self.state_directory.clone(),
        }
    }

    fn world(&self) -> WorldParts {
        WorldParts {
            world: Arc::clone(&self.world),
            graph: self.graph.clone(),
            requests: self.requests.clone(),
            publisher: self.publisher.clone(),
            state_directory: self.state_directory.clone(),
            offered: tokio::sync::Mutex::new(OfferedExports::new(&self.graph.exports())),
        }
    }
}
