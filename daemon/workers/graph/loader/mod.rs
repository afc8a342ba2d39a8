//! The worker that loads the graph: at the start, on request, and with `--watch` after a change of a file.
//!
//! A loaded graph is a value for the driver; no worker is restarted for a new graph. A rejected graph must never
//! replace the running one. Reading order: this file, `deliver` (the delivery to the driver), `settings` (the settings
//! that a reload reads too), `latest_graph` (in memory) and `stored` (in the state directory), `watch` (the watch of
//! the files), `live` (facts and probes that change), `bundle_link` and `check_instead` (signed bundles).

mod bundle_link;
mod check_instead;
mod deliver;
mod latest_graph;
mod live;
mod settings;
mod stored;
mod watch;

use crate::api::{LoadOutcome, SettingsChange};
use crate::config::{self, CollectedExport, LoadedGraph, Options, Rejected};
use crate::driver::{DriverEvent, LoadError, Query};
use crate::events::Publisher;
use crate::expressions::Value;
use crate::signals::Stops;
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use crate::workers::errors::GraphError;
use crate::workers::graph::fact_watch::FactWatch;
use crate::workers::graph::settings::SettingsChanger;
use crate::workers::reporting::sd_notify;
use crate::workers::requests::queue::Requests;
use crate::workers::worker_factory::WorkerFactory;
use crate::workers::world::host_world::HostWorld;
use crate::world::selector::CollectionSelector;
use latest_graph::LatestGraph;
use live::LiveGraph;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stored::UnstoredGraph;
use tokio::sync::{Notify, oneshot};
use watch::GraphWatch;

pub(in crate::workers) use live::ConditionReport;
pub(in crate::workers) use settings::SettingsFile;

/// The time to wait for the watch of the graph, or for its files to be quiet, before the graph is read anyway.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The time for which a changed file must be quiet before it is read: editors write in steps.
const QUIET: Duration = Duration::from_millis(100);

const AUTOMATIC: u8 = 1;
const OPERATOR: u8 = 2;
const EMPTYING: u8 = 4;

/// The cause of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::workers) enum ReloadCause {
    /// A file has changed.
    Nobody,
    /// An operator's request: retries start anew, and resources removed from the graph may be removed from the host.
    Operator,
    /// An operator's request that also accepts a graph without any resource (B-16).
    Emptying,
}

/// The rank of a rejected first graph among fatal failures.
const RANK: u8 = 4;

/// The source of the graph and the options for reading it.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphSource {
    /// The files or directories.
    pub paths: Vec<PathBuf>,
    /// The options.
    pub options: Options,
    /// True if the graph is read again after a change of a file.
    pub watch: bool,
    /// True if the settings of the host name the paths, and not the command line.
    pub by_settings: bool,
    /// The directory of the last-good graph, which runs if the graph is rejected at the start; `None` if no graph is
    /// stored.
    pub kept_in: Option<PathBuf>,
    /// The link to the running bundle in the state directory, which a load resolves once.
    pub bundle_link: PathBuf,
}

impl GraphSource {
    /// Returns the paths that a stored graph must have; `None` if the settings name the paths, because they may be
    /// wrong.
    fn named(&self) -> Option<&[PathBuf]> {
        (!self.by_settings).then_some(self.paths.as_slice())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of a rejected first graph: its problems as text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct FirstRefused(pub String);

/// A handle for requesting reloads of the graph. Clones share one loader.
#[derive(Clone, Debug)]
pub(in crate::workers) struct GraphLoader(Arc<ReloadRequest>);

#[derive(Debug)]
struct ReloadRequest {
    graph: Mutex<GraphSource>,
    settings: SettingsFile,
    requests: Requests,
    /// True if a graph was delivered before.
    had_one: AtomicBool,
    /// True if the last graph had no resources, and that was requested.
    is_empty: AtomicBool,
    /// The causes of the reload that has not begun yet.
    who: AtomicU8,
    /// The senders of the results of that reload.
    answers: Mutex<Vec<oneshot::Sender<Result<LoadOutcome, LoadError>>>>,
    /// The number of reload requests.
    events: AtomicU64,
    wake: Notify,
    publisher: Publisher,
    /// The reason why the last-good graph runs instead of the present one, if so.
    instead: Mutex<Option<String>>,
    /// The number of delivered graphs, and the number of the last stored one.
    handed: AtomicU64,
    stored_version: Mutex<u64>,
    /// The last accepted graph.
    latest: Mutex<LatestGraph>,
    /// The accepted graph that could not be stored yet.
    unstored: Mutex<Option<UnstoredGraph>>,
    /// The reason for which the newest graph is rejected, if it is.
    rejected: Mutex<Option<String>>,
    /// The exports of other hosts, for collections.
    exports: Mutex<Option<Arc<[CollectedExport]>>>,
    /// The hash of the delivered graph.
    hash: Mutex<String>,
    /// The collections of the delivered graph; none before the first one.
    collections: Mutex<Option<Arc<[CollectionSelector]>>>,
    /// The facts and probes that the running graph uses.
    live: LiveGraph,
    /// The last read of the files.
    last_read: Mutex<LastRead>,
}

/// The last read of the graph files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LastRead {
    /// The hash of the graph, or the message of its rejection.
    result: String,
    /// True if a graph without resources was accepted.
    allow_empty: bool,
    /// The files and folders that the expansion looked for. After a rejection, those of the previous read too.
    sought: BTreeSet<PathBuf>,
}

/// Creates the worker that loads the graph.
pub(in crate::workers) fn graph(
    factory: &WorkerFactory,
    loader: &GraphLoader,
    own: (Arc<SettingsChanger>, Arc<HostWorld>),
    stops: Stops,
) -> Manifold {
    let loader = loader.clone();
    factory.worker("graph", move |_, life: WorkerContext| {
        let (own, stops, loader) = (own.clone(), stops.clone(), loader.clone());
        async move {
            let stopping = life.stopping().clone();
            tokio::select! {
                result = loader.work((&own.0, &own.1), &life, &stops) => result,
                () = stopping.cancelled() => {
                    loader.rest().await;
                    Ok(())
                }
            }
        }
    })
}

impl GraphLoader {
    /// Creates a loader for a graph source, the settings and the requests of the driver.
    #[must_use]
    pub(in crate::workers) fn new(
        (graph, settings): (GraphSource, SettingsFile),
        requests: Requests,
        publisher: Publisher,
    ) -> Self {
        Self(Arc::new(ReloadRequest {
            graph: Mutex::new(graph),
            settings,
            requests,
            had_one: AtomicBool::new(false),
            is_empty: AtomicBool::new(false),
            who: AtomicU8::new(0),
            answers: Mutex::default(),
            events: AtomicU64::new(0),
            wake: Notify::new(),
            publisher,
            instead: Mutex::default(),
            handed: AtomicU64::new(0),
            stored_version: Mutex::default(),
            latest: Mutex::default(),
            unstored: Mutex::default(),
            rejected: Mutex::default(),
            exports: Mutex::default(),
            hash: Mutex::default(),
            collections: Mutex::default(),
            live: LiveGraph::new(),
            last_read: Mutex::default(),
        }))
    }

    /// Returns the reason why the last-good graph or settings apply instead of the present ones, if so.
    pub(in crate::workers) fn instead(&self) -> Option<String> {
        let settings = lock(&self.0.settings.instead).clone();
        let all: Vec<String> = settings.into_iter().chain(lock(&self.0.instead).clone()).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    /// Returns the change of the settings that the last reload made.
    pub(in crate::workers) fn settings_change(&self) -> SettingsChange {
        lock(&self.0.settings.change).clone()
    }

    /// Sets the exports of other hosts for the next load.
    pub(in crate::workers) fn set_exports(&self, exports: Arc<[CollectedExport]>) {
        *lock(&self.0.exports) = Some(exports);
    }

    /// Returns the exports of other hosts that the next load uses.
    pub(in crate::workers) fn exports(&self) -> Arc<[CollectedExport]> {
        lock(&self.0.exports).clone().unwrap_or_default()
    }

    /// Returns the hash of the graph that was delivered last.
    pub(in crate::workers) fn running_hash(&self) -> String {
        lock(&self.0.hash).clone()
    }

    /// Returns the collections of other hosts' exports in the graph; none before the first graph.
    pub(in crate::workers) fn collections(&self) -> Option<Arc<[CollectionSelector]>> {
        lock(&self.0.collections).clone()
    }

    /// Returns the inactive resources, and the inputs that do not apply.
    pub(in crate::workers) fn conditions(&self) -> ConditionReport {
        self.0.live.report()
    }

    /// Takes the answer of a probe: the expressions that use it are evaluated again.
    pub(in crate::workers) fn take_answer(&self, probe: &str, value: Value) {
        self.0.live.take_answer(probe, value);
    }

    /// Returns true if the running graph does not use the last answers of the probes yet: the host is not converged.
    pub(in crate::workers) fn has_unused_answers(&self) -> bool {
        self.0.live.has_unused_answers()
    }

    /// Returns the first path of the graph.
    pub(in crate::workers) fn first_path(&self) -> Option<PathBuf> {
        self.0.graph().paths.first().cloned()
    }

    /// Requests a reload, or joins one that has not begun. An operator's reload gives failed resources new retries.
    pub(in crate::workers) fn reload(&self, asker: ReloadCause) {
        self.ask(asker, None);
    }

    /// Requests a reload and optionally its result. The result is that of a reload that begins after this call.
    pub(in crate::workers) fn ask(
        &self,
        asker: ReloadCause,
        answer: Option<oneshot::Sender<Result<LoadOutcome, LoadError>>>,
    ) {
        self.0.answers().extend(answer);
        let who = match asker {
            ReloadCause::Nobody => AUTOMATIC,
            ReloadCause::Operator => OPERATOR,
            ReloadCause::Emptying => OPERATOR | EMPTYING,
        };
        self.0.events.fetch_add(1, Ordering::SeqCst);
        if self.0.who.fetch_or(who, Ordering::SeqCst) == 0 {
            sd_notify::reloading();
        }
        self.0.wake.notify_one();
    }

    /// Begins the use of the world if the graph collects exports.
    fn use_world(&self, world: &HostWorld) {
        if self.collections().is_some_and(|it| !it.is_empty()) {
            world.begin_use();
        }
    }

    /// Waits until an active write of the last-good graph is complete, and prevents later ones.
    async fn rest(&self) {
        let this = Arc::clone(&self.0);
        let rests = tokio::task::spawn_blocking(move || {
            this.store_before_rest();
            *this.stored_version() = u64::MAX;
        });
        drop(rests.await);
    }

    async fn work(
        &self,
        (changer, world): (&SettingsChanger, &HostWorld),
        life: &WorkerContext,
        stops: &Stops,
    ) -> Result<(), Failure> {
        let this = &self.0;
        let mut drivers = this.requests.drivers();
        drivers.mark_changed();
        // The watch starts before the files are read, so that no change is missed.
        let broken = Arc::new(Notify::new());
        let mut watch = None;
        self.follow(&this.graph(), &mut watch, &broken).await;
        if !this.had_one.load(Ordering::SeqCst) {
            ReloadRequest::read_first(this, stops).await?;
        } else if watch.is_some() {
            // The files may have changed while there was no watch.
            self.reload(ReloadCause::Nobody);
        }
        self.follow_inputs(this.graph(), &mut watch, &broken).await;
        self.use_world(world);
        life.ready(Outputs::none());
        let mut facts = FactWatch::new();
        loop {
            this.live.follow(&mut facts, &this.graph());
            tokio::select! {
                biased;
                () = broken.notified() => return Err(Failure::again("the watch of the graph ended")),
                () = this.wake.notified() => {}
                Ok(()) = drivers.changed() => {}
                () = GraphWatch::mounts(watch.as_ref()) => continue,
                () = this.live.changed(&mut facts) => {
                    ReloadRequest::expand_again(this, life).await;
                    continue;
                }
                () = life.prove_alive() => continue,
            }
            if this.requests.lacks_graph() {
                // A new driver has replaced a failed one.
                life.during(ReloadRequest::hand_again(changer, this)).await;
            }
            if this.who.load(Ordering::SeqCst) == 0 {
                continue;
            }
            life.during(this.left_alone()).await;
            let who = this.who.swap(0, Ordering::SeqCst);
            let answers = std::mem::take(&mut *this.answers());
            life.set_status("reads");
            let settings = life.during(this.read_settings()).await;
            let source = settings.as_ref().ok().map(|new| this.graph_of(new.as_ref()));
            if let Some(source) = &source {
                life.during(self.follow(source, &mut watch, &broken)).await;
            }
            life.during(Box::pin(ReloadRequest::reload(changer, this, (settings, who)))).await;
            if let Some(source) = source {
                life.during(self.follow_inputs(source, &mut watch, &broken)).await;
            }
            if !answers.is_empty() {
                this.requests.put(DriverEvent::Query(Query::LoadResult(answers)));
            }
            self.use_world(world);
            life.set_status(format!("{} requested reloads", this.events.load(Ordering::SeqCst)));
        }
    }
}

impl ReloadRequest {
    fn answers(&self) -> MutexGuard<'_, Vec<oneshot::Sender<Result<LoadOutcome, LoadError>>>> {
        lock(&self.answers)
    }

    /// Waits until the files are quiet: the beginning of a graph is a valid graph with fewer resources (F-20). A reload
    /// by an operator does not wait.
    async fn left_alone(&self) {
        let began = tokio::time::Instant::now();
        let is_automatic = || self.who.load(Ordering::SeqCst) == AUTOMATIC;
        while is_automatic() && began.elapsed() < LONGEST_WAIT {
            let before = self.events.load(Ordering::SeqCst);
            tokio::time::sleep(QUIET).await;
            if self.events.load(Ordering::SeqCst) == before {
                return;
            }
        }
    }

    /// Loads the first graph; without one the daemon fails. A stop during the read takes precedence.
    async fn read_first(this: &Arc<Self>, stops: &Stops) -> Result<(), Failure> {
        let source = this.graph();
        let allow_empty = !source.options.refuse_empty;
        let graph = match this.read(source, allow_empty).await {
            Ok(first) => first,
            Err(why) => match this.accepted(&why.to_string()).await {
                Some(kept) => kept,
                None => return Err(Failure::fatal(RANK, FirstRefused(why.to_string()))),
            },
        };
        if stops.is_asked() {
            std::future::pending::<()>().await;
        }
        this.live.take_graph(&graph);
        // The first graph is automatic: a host may boot during a deployment, and half a graph must remove nothing
        // (B-16).
        Self::put(this, graph, false);
        this.had_one.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn graph(&self) -> GraphSource {
        let mut graph = lock(&self.graph).clone();
        graph.options.exports.clone_from(&lock(&self.exports));
        graph
    }

    fn stored_version(&self) -> MutexGuard<'_, u64> {
        lock(&self.stored_version)
    }

    async fn read(
        &self,
        mut graph: GraphSource,
        allow_empty: bool,
    ) -> Result<Box<LoadedGraph>, GraphError> {
        graph.options.refuse_empty = !allow_empty;
        graph.options.exports.clone_from(&lock(&self.exports));
        graph.options = self.live.reload_options(graph.options);
        let load = move || config::load(&graph.resolved_paths(), &graph.options);
        let read = tokio::task::spawn_blocking(load).await;
        if let Ok(loaded) = &read {
            lock(&self.last_read).take(loaded, allow_empty);
        }
        match read {
            Ok(Ok(loaded)) => {
                for warning in &loaded.warnings {
                    tracing::warn!(event = "warning", "{warning}");
                }
                self.is_empty.store(loaded.vertices.is_empty(), Ordering::SeqCst);
                Ok(Box::new(loaded))
            }
            Ok(Err(rejected)) => Err(rejected.into()),
            Err(panic) => Err(GraphError::Panicked(panic)),
        }
    }

    /// Reads the files once more; returns true if the result differs from that of the last read.
    async fn reads_differently(&self, mut graph: GraphSource) -> bool {
        let last = lock(&self.last_read).clone();
        graph.options.refuse_empty = !last.allow_empty;
        graph.options.exports.clone_from(&lock(&self.exports));
        graph.options = self.live.reload_options(graph.options);
        let load = move || config::load(&graph.resolved_paths(), &graph.options);
        let read = tokio::task::spawn_blocking(load);
        read.await.is_ok_and(|loaded| LastRead::result_of(&loaded) != last.result)
    }
}

impl LastRead {
    fn take(&mut self, loaded: &Result<LoadedGraph, Rejected>, allow_empty: bool) {
        self.result = Self::result_of(loaded);
        self.allow_empty = allow_empty;
        match loaded {
            Ok(graph) => self.sought = graph.sought.iter().cloned().collect(),
            Err(rejected) => self.sought.extend(rejected.sought.iter().cloned()),
        }
    }

    fn result_of(loaded: &Result<LoadedGraph, Rejected>) -> String {
        match loaded {
            Ok(graph) => format!("{:016x}", graph.hash),
            Err(rejected) => rejected.without_values(),
        }
    }
}
