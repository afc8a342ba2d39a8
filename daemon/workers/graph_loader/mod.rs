//! The worker that reads the graph: at the start, on request, and with `--watch` when one of its files changes. A graph is a
//! value that is handed to the driver; nobody is started anew for it.

mod settings;
mod stored;
mod watch;

use super::last_good_graph;
use super::last_good_graph::GraphVersion;
use super::request_queue::Requests;
use super::settings::{HostSettings, SettingsChange};
use super::{Shared, sd_notify};
use crate::config::{self, LoadedGraph, Options, Text};
use crate::driver::{DriverEvent, LoadOutcome, Query};
use crate::events::Publisher;
use crate::signals::Stops;
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use watch::GraphWatch;

pub(super) use settings::SettingsFile;

/// How long to wait for the watch of the graph, or for its files to be left alone, before it is read all the same.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How long a graph file that changes by itself must be left alone before it is read: editors write in steps.
const QUIET: Duration = Duration::from_millis(100);

/// How long a graph must have been the newest before it is kept for a later start.
const REST: Duration = Duration::from_millis(200);

const AUTOMATIC: u8 = 1;
const OPERATOR: u8 = 2;
const EMPTYING: u8 = 4;

/// Who asks for a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReloadCause {
    /// A file has changed.
    Nobody,
    /// An operator: budgets of retries are refilled, and what has left the graph may be removed.
    Operator,
    /// One who takes a graph without a single resource too (B-16).
    Emptying,
}

/// How much a graph that is invalid at the start matters beside other fatal failures.
const RANK: u8 = 4;

/// Which graph, and how it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphSource {
    /// Files, or folders.
    pub paths: Vec<PathBuf>,
    /// How they are read.
    pub options: Options,
    /// It is read again when one of its files changes.
    pub watch: bool,
    /// The settings of the host name the paths, not the command line.
    pub by_settings: bool,
    /// Where the graph that was accepted last is kept, to be run where this one is refused at the start; none where it is not.
    pub kept_in: Option<PathBuf>,
}

impl GraphSource {
    /// The paths under which a stored graph must have been read; none where the settings name them, which may be mistaken.
    fn named(&self) -> Option<&[PathBuf]> {
        (!self.by_settings).then_some(self.paths.as_slice())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first graph was refused: its problems, as they are shown.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct FirstRefused(pub String);

/// Where it is asked that the graph be read again. Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct GraphLoader(Arc<ReloadRequest>);

#[derive(Debug)]
struct ReloadRequest {
    graph: Mutex<GraphSource>,
    settings: SettingsFile,
    requests: Requests,
    /// A graph was handed over before.
    had_one: AtomicBool,
    /// It had no resource, and that was asked for.
    is_empty: AtomicBool,
    /// Who has asked for the reload that has not begun yet.
    who: AtomicU8,
    /// Where those who wait for an answer are told.
    answers: Mutex<Vec<oneshot::Sender<Result<LoadOutcome, String>>>>,
    /// How often anybody has.
    events: AtomicU64,
    wake: Notify,
    teller: Publisher,
    /// Why the graph that was accepted last runs instead of the one that is there, where that is so.
    instead: Mutex<Option<String>>,
    /// How many graphs that were read were handed over, and the last of them that was kept.
    handed: AtomicU64,
    stored_version: Mutex<u64>,
    /// Which of them was taken last.
    taken: Mutex<LatestGraph>,
}

/// The graph that was taken last: a driver that starts anew gets it again, whatever lies there now.
#[derive(Debug, Default)]
enum LatestGraph {
    /// None was taken yet.
    #[default]
    Nothing,
    /// These texts, of the graph with this number.
    Here(u64, Arc<[Text]>),
    /// What is kept in the state directory.
    Kept,
}

/// Reads the graph.
pub(super) fn graph(shared: &Arc<Shared>, stops: Stops) -> Manifold {
    let own = Arc::clone(shared);
    shared.worker("graph", move |_, life: WorkerContext| {
        let (own, stops) = (Arc::clone(&own), stops.clone());
        let reloader = own.graph.clone();
        async move {
            let stopping = life.stopping().clone();
            tokio::select! {
                result = reloader.work(&own, &life, &stops) => result,
                () = stopping.cancelled() => {
                    reloader.rest().await;
                    Ok(())
                }
            }
        }
    })
}

impl GraphLoader {
    /// For this graph and whoever drives.
    #[must_use]
    pub(super) fn new(
        (graph, settings): (GraphSource, SettingsFile),
        requests: Requests,
        teller: Publisher,
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
            teller,
            instead: Mutex::default(),
            handed: AtomicU64::new(0),
            stored_version: Mutex::default(),
            taken: Mutex::default(),
        }))
    }

    /// Why the graph that was accepted last runs instead of the one that is there, where that is so.
    pub(super) fn instead(&self) -> Option<String> {
        let settings = lock(&self.0.settings.instead).clone();
        let all: Vec<String> = settings.into_iter().chain(lock(&self.0.instead).clone()).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    /// The change of the settings that the last reload made.
    pub(super) fn settings_change(&self) -> SettingsChange {
        lock(&self.0.settings.change).clone()
    }

    /// The first path of the graph.
    pub(super) fn first_path(&self) -> Option<PathBuf> {
        self.0.graph().paths.first().cloned()
    }

    /// Asks for a reload, or joins one that has not begun to read yet. An operator's one refills the budgets of retries.
    pub(super) fn reload(&self, asker: ReloadCause) {
        self.ask(asker, None);
    }

    /// The same, with where it is answered what became of it: of a reading that begins after this.
    pub(super) fn ask(
        &self,
        asker: ReloadCause,
        answer: Option<oneshot::Sender<Result<LoadOutcome, String>>>,
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

    /// Lets what is being kept be kept, whole; nothing is from now on.
    async fn rest(&self) {
        let this = Arc::clone(&self.0);
        let rests = tokio::task::spawn_blocking(move || *this.stored_version() = u64::MAX);
        drop(rests.await);
    }

    async fn work(
        &self,
        shared: &Arc<Shared>,
        life: &WorkerContext,
        stops: &Stops,
    ) -> Result<(), Failure> {
        let this = &self.0;
        let mut drivers = this.requests.drivers();
        drivers.mark_changed();
        // Before anything is read: what changes while it is read is seen.
        let broken = Arc::new(Notify::new());
        let mut watch = None;
        self.follow(&this.graph(), &mut watch, &broken).await;
        if !this.had_one.load(Ordering::SeqCst) {
            ReloadRequest::read_first(this, stops).await?;
        } else if watch.is_some() {
            // What has changed while nobody watched.
            self.reload(ReloadCause::Nobody);
        }
        life.ready(Outputs::none());
        loop {
            tokio::select! {
                biased;
                () = broken.notified() => return Err(Failure::again("the watch of the graph ended")),
                () = this.wake.notified() => {}
                Ok(()) = drivers.changed() => {}
                () = GraphWatch::mounts(watch.as_ref()) => continue,
                () = life.prove_alive() => continue,
            }
            if this.requests.lacks_graph() {
                // It has come after one that broke.
                life.during(ReloadRequest::hand_again(shared, this)).await;
            }
            if this.who.load(Ordering::SeqCst) == 0 {
                continue;
            }
            life.during(this.left_alone()).await;
            let who = this.who.swap(0, Ordering::SeqCst);
            let answers = std::mem::take(&mut *this.answers());
            life.set_status("reads");
            let settings = life.during(this.read_settings()).await;
            if let Ok(graph) = &settings.as_ref().map(|new| this.graph_of(new.as_ref())) {
                life.during(self.follow(graph, &mut watch, &broken)).await;
            }
            life.during(ReloadRequest::reload(shared, this, (settings, who))).await;
            if !answers.is_empty() {
                this.requests.put(DriverEvent::Ask(Query::Taken(answers)));
            }
            life.set_status(format!("{} requested reloads", this.events.load(Ordering::SeqCst)));
        }
    }
}

impl ReloadRequest {
    fn answers(&self) -> MutexGuard<'_, Vec<oneshot::Sender<Result<LoadOutcome, String>>>> {
        lock(&self.answers)
    }

    /// Waits until the files have been left alone for a while: the beginning of a graph is a graph, with fewer resources (F-20).
    /// An operator has said that they are complete.
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

    /// The graph that the daemon is started with: without any there is nothing to do. A stop while it is read wins.
    async fn read_first(this: &Arc<Self>, stops: &Stops) -> Result<(), Failure> {
        let source = this.graph();
        let allow_empty = !source.options.refuse_empty;
        let graph = match this.read(source, allow_empty).await {
            Ok(first) => first,
            Err(why) => match this.accepted(&why).await {
                Some(kept) => kept,
                None => return Err(Failure::fatal(RANK, FirstRefused(why))),
            },
        };
        if stops.is_asked().unwrap_or(true) {
            std::future::pending::<()>().await;
        }
        // Nobody has asked for it: a host may boot in the middle of a deploy, and half a graph must remove nothing (B-16).
        Self::put(this, graph, false);
        this.had_one.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// For a driver that starts anew: the graph that was taken last, for nobody has asked for what may lie there by now. Where none
    /// was taken yet, what is there.
    async fn hand_again(shared: &Arc<Shared>, this: &Arc<Self>) {
        match this.latest().await {
            Some(graph) => Self::put(this, graph, false),
            None => Self::hand_over(shared, this, (None, AUTOMATIC, true)).await,
        }
    }

    fn graph(&self) -> GraphSource {
        lock(&self.graph).clone()
    }

    /// The graph that was taken last, as it was read then.
    async fn latest(&self) -> Option<Box<LoadedGraph>> {
        let here = match &*self.taken() {
            LatestGraph::Nothing => return None,
            LatestGraph::Here(_, texts) => Some(Arc::clone(texts)),
            LatestGraph::Kept => None,
        };
        let graph = self.graph();
        let read = tokio::task::spawn_blocking(move || {
            let texts = match (here, &graph.kept_in) {
                (Some(texts), _) => texts.to_vec(),
                (None, Some(directory)) => last_good_graph::read(directory, graph.named())?.texts,
                (None, None) => return None,
            };
            let options = Options { refuse_empty: false, ..graph.options };
            let loaded = config::load_texts(texts, &options).inspect_err(|rejected| {
                tracing::warn!(event = "warning", "the running graph is now rejected: {rejected}");
            });
            loaded.ok()
        });
        // Its texts are known already.
        Some(Box::new(LoadedGraph { texts: Vec::new(), ..read.await.ok()?? }))
    }

    /// Hands over what is there now. A driver that has none yet gets the one that was accepted last where that is refused.
    async fn hand_over(
        shared: &Arc<Shared>,
        this: &Arc<Self>,
        (settings, who, is_first): (Option<HostSettings>, u8, bool),
    ) {
        let source = this.graph_of(settings.as_ref());
        let is_empty = this.is_empty.load(Ordering::SeqCst);
        let operator = who & OPERATOR != 0;
        match this.read(source, is_empty || who & EMPTYING != 0).await {
            Ok(graph) => {
                if let Some(settings) = settings {
                    this.apply_settings(shared, settings).await;
                }
                Self::put(this, graph, operator);
            }
            Err(why) => {
                if is_first && let Some(kept) = this.accepted(&why).await {
                    return Self::put(this, kept, false);
                }
                this.requests.put(DriverEvent::Graph { graph: Err(why), operator });
            }
        }
    }

    /// Gives it to the driver; when that has taken it, it is kept, unless it is only looked at.
    fn put(this: &Arc<Self>, mut graph: Box<LoadedGraph>, operator: bool) {
        let texts: Arc<[Text]> = std::mem::take(&mut graph.texts).into();
        let generation = GraphVersion::of(&graph);
        this.requests.put(DriverEvent::Graph { graph: Ok(graph), operator });
        if texts.is_empty() {
            return;
        }
        let number = this.handed.fetch_add(1, Ordering::SeqCst) + 1;
        let (to, fate) = oneshot::channel();
        this.requests.put(DriverEvent::Ask(Query::Taken(vec![to])));
        let this = Arc::clone(this);
        tokio::spawn(async move {
            let taken = match fate.await {
                Ok(Ok(taken)) => taken,
                Ok(Err(why)) => return this.hold(&why).await,
                Err(_) => return,
            };
            *lock(&this.instead) = None;
            this.take(number, Arc::clone(&texts));
            let Some(directory) = this.graph().kept_in else { return };
            this.store_settings(&directory).await;
            if taken.looks_only {
                return;
            }
            this.clear(&directory).await;
            // One that is replaced at once need not be kept.
            tokio::time::sleep(REST).await;
            if this.handed.load(Ordering::SeqCst) != number {
                return;
            }
            let keep = move || this.keep(&directory, number, (&generation, &texts));
            drop(tokio::task::spawn_blocking(keep).await);
        });
    }

    fn stored_version(&self) -> MutexGuard<'_, u64> {
        lock(&self.stored_version)
    }

    fn taken(&self) -> MutexGuard<'_, LatestGraph> {
        lock(&self.taken)
    }

    async fn read(
        &self,
        mut graph: GraphSource,
        allow_empty: bool,
    ) -> Result<Box<LoadedGraph>, String> {
        graph.options.refuse_empty = !allow_empty;
        let read = tokio::task::spawn_blocking(move || config::load(&graph.paths, &graph.options));
        match read.await {
            Ok(Ok(loaded)) => {
                for warning in &loaded.warnings {
                    tracing::warn!(event = "warning", "{warning}");
                }
                self.is_empty.store(loaded.vertices.is_empty(), Ordering::SeqCst);
                Ok(Box::new(loaded))
            }
            Ok(Err(rejected)) => Err(rejected.to_string()),
            Err(panic) => Err(format!("reading the graph panicked: {panic}")),
        }
    }
}
