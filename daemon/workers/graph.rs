//! The worker that reads the graph: at the start, on request, and with `--watch` when one of its files changes. A graph is a
//! value that is handed to the driver; nobody is started anew for it.

use super::accepted::{self, Generation};
use super::requests::Requests;
use super::{Shared, systemd};
use crate::config::{self, Loaded, Options, Text};
use crate::driver::watch::{Hub, Signal};
use crate::driver::{Answer, Input, Pulse, Question, Taken};
use crate::events::{Happening, Level, Teller};
use crate::signals::Stops;
use crate::supervisor::{Failure, Life, Manifold, Outputs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::{Source, printable};
use tokio::sync::{Notify, oneshot};

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
pub(super) enum Asker {
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
#[derive(Clone, Debug)]
pub struct GraphSource {
    /// Files, or folders.
    pub paths: Vec<PathBuf>,
    /// How they are read.
    pub options: Options,
    /// It is read again when one of its files changes.
    pub watch: bool,
    /// Where the graph that was accepted last is kept, to be run where this one is refused at the start; none where it is not.
    pub kept_in: Option<PathBuf>,
}

/// The first graph was refused: its problems, as they are shown.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct FirstRefused(pub String);

/// Where it is asked that the graph be read again. Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Reloader(Arc<Asked>);

#[derive(Debug)]
struct Asked {
    graph: GraphSource,
    requests: Requests,
    /// A graph was handed over before.
    had_one: AtomicBool,
    /// It had no resource, and that was asked for.
    is_empty: AtomicBool,
    /// Who has asked for the reload that has not begun yet.
    who: AtomicU8,
    /// Where those who wait for an answer are told.
    answers: Mutex<Vec<oneshot::Sender<Result<Taken, String>>>>,
    /// How often anybody has.
    events: AtomicU64,
    wake: Notify,
    teller: Teller,
    /// Why the graph that was accepted last runs instead of the one that is there, where that is so.
    instead: Mutex<Option<String>>,
    /// How many graphs that were read were handed over, and the last of them that was kept.
    handed: AtomicU64,
    kept: Mutex<u64>,
    /// Which of them was taken last.
    taken: Mutex<Latest>,
}

/// The graph that was taken last: a driver that starts anew gets it again, whatever lies there now.
#[derive(Debug, Default)]
enum Latest {
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
    shared.worker("graph", move |_, life: Life| {
        let (reloader, stops) = (own.graph.clone(), stops.clone());
        async move {
            let stopping = life.stopping().clone();
            tokio::select! {
                result = reloader.work(&life, &stops) => result,
                () = stopping.cancelled() => {
                    reloader.rest().await;
                    Ok(())
                }
            }
        }
    })
}

impl Reloader {
    /// For this graph and whoever drives.
    #[must_use]
    pub(super) fn new(graph: GraphSource, requests: Requests, teller: Teller) -> Self {
        Self(Arc::new(Asked {
            graph,
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
            kept: Mutex::default(),
            taken: Mutex::default(),
        }))
    }

    /// Why the graph that was accepted last runs instead of the one that is there, where that is so.
    pub(super) fn instead(&self) -> Option<String> {
        self.0.instead.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the graph lies.
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.0.graph.paths
    }

    /// Asks for a reload, or joins one that has not begun to read yet. An operator's one refills the budgets of retries.
    pub(super) fn reload(&self, asker: Asker) {
        self.ask(asker, None);
    }

    /// The same, with where it is answered what became of it: of a reading that begins after this.
    pub(super) fn ask(&self, asker: Asker, answer: Option<oneshot::Sender<Result<Taken, String>>>) {
        self.0.answers().extend(answer);
        let who = match asker {
            Asker::Nobody => AUTOMATIC,
            Asker::Operator => OPERATOR,
            Asker::Emptying => OPERATOR | EMPTYING,
        };
        self.0.events.fetch_add(1, Ordering::SeqCst);
        if self.0.who.fetch_or(who, Ordering::SeqCst) == 0 {
            systemd::reloading();
        }
        self.0.wake.notify_one();
    }

    /// Lets what is being kept be kept, whole; nothing is from now on.
    async fn rest(&self) {
        let this = Arc::clone(&self.0);
        let rests = tokio::task::spawn_blocking(move || *this.kept() = u64::MAX);
        drop(rests.await);
    }

    async fn work(&self, life: &Life, stops: &Stops) -> Result<(), Failure> {
        let this = &self.0;
        let mut drivers = this.requests.drivers();
        drivers.mark_changed();
        // Before anything is read: what changes while it is read is seen.
        let broken = Arc::new(Notify::new());
        let _watch = if this.graph.watch { Some(self.watch(&broken).await) } else { None };
        if !this.had_one.load(Ordering::SeqCst) {
            Asked::read_first(this, stops).await?;
        } else if this.graph.watch {
            // What has changed while nobody watched.
            self.reload(Asker::Nobody);
        }
        life.ready(Outputs::none());
        loop {
            tokio::select! {
                biased;
                () = broken.notified() => return Err(Failure::again("nobody watches the graph any more")),
                () = this.wake.notified() => {}
                Ok(()) = drivers.changed() => {}
                () = life.beat() => continue,
            }
            if this.requests.lacks_graph() {
                // It has come after one that broke.
                life.during(Asked::hand_again(this)).await;
            }
            if this.who.load(Ordering::SeqCst) == 0 {
                continue;
            }
            life.during(this.left_alone()).await;
            let who = this.who.swap(0, Ordering::SeqCst);
            let answers = std::mem::take(&mut *this.answers());
            life.say("reads");
            life.during(Asked::hand_over(this, who, false)).await;
            if !answers.is_empty() {
                this.requests.put(Input::Ask(Question::Taken(answers)));
            }
            life.say(format!("read {} times on request", this.events.load(Ordering::SeqCst)));
        }
    }

    /// Reloads whenever one of the files that were named, or an entry of a folder that was, changes; as long as the answer
    /// lives. It answers when the watch stands.
    async fn watch(&self, broken: &Arc<Notify>) -> Hub {
        let this = self.clone();
        let stands = Arc::new(Notify::new());
        let (answered, broken) = (Arc::clone(&stands), Arc::clone(broken));
        let hub = Hub::through_notify(tokio::runtime::Handle::current(), move |signals| {
            let moves = |s: &Signal| {
                matches!(s, Signal::Changed(_) | Signal::Supplied(_) | Signal::Suspect(_))
            };
            if signals.iter().any(moves) {
                this.reload(Asker::Nobody);
            }
            for signal in &signals {
                match signal {
                    Signal::Absent(_, why) => {
                        tracing::warn!(event = "unwatched", "the graph: {}", printable(why));
                    }
                    Signal::Broken(_) => broken.notify_one(),
                    Signal::Established(_)
                    | Signal::Changed(_)
                    | Signal::Supplied(_)
                    | Signal::Suspect(_) => {}
                }
            }
            if signals.iter().any(|s| matches!(s, Signal::Established(_) | Signal::Absent(..))) {
                answered.notify_one();
            }
        });
        let named = self.0.graph.paths.iter().filter(|path| path.as_os_str() != "-");
        let sources = named.filter_map(|path| {
            let path = std::path::absolute(path).ok()?;
            Some(Source::Path { below: path.is_dir(), path })
        });
        hub.arm(VertexId(0), sources.collect());
        if tokio::time::timeout(LONGEST_WAIT, stands.notified()).await.is_err() {
            tracing::warn!(event = "unwatched", "the graph: its watch does not answer");
        }
        hub
    }
}

impl Asked {
    fn answers(&self) -> MutexGuard<'_, Vec<oneshot::Sender<Result<Taken, String>>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
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
        let graph = match this.read(!this.graph.options.refuse_empty).await {
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
    async fn hand_again(this: &Arc<Self>) {
        match this.latest().await {
            Some(graph) => Self::put(this, graph, false),
            None => Self::hand_over(this, AUTOMATIC, true).await,
        }
    }

    /// The graph that was taken last, as it was read then.
    async fn latest(&self) -> Option<Box<Loaded>> {
        let here = match &*self.taken() {
            Latest::Nothing => return None,
            Latest::Here(_, texts) => Some(Arc::clone(texts)),
            Latest::Kept => None,
        };
        let graph = self.graph.clone();
        let read = tokio::task::spawn_blocking(move || {
            let texts = match (here, &graph.kept_in) {
                (Some(texts), _) => texts.to_vec(),
                (None, Some(directory)) => accepted::read(directory, &graph.paths)?.texts,
                (None, None) => return None,
            };
            let options = Options { refuse_empty: false, ..graph.options };
            let loaded = config::load_texts(texts, &options).inspect_err(|rejected| {
                tracing::warn!(event = "warning", "the graph that ran is refused now: {rejected}");
            });
            loaded.ok()
        });
        // Its texts are known already.
        Some(Box::new(Loaded { texts: Vec::new(), ..read.await.ok()?? }))
    }

    /// Hands over what is there now. A driver that has none yet gets the one that was accepted last where that is refused.
    async fn hand_over(this: &Arc<Self>, who: u8, is_first: bool) {
        let is_empty = this.is_empty.load(Ordering::SeqCst);
        let operator = who & OPERATOR != 0;
        match this.read(is_empty || who & EMPTYING != 0).await {
            Ok(graph) => Self::put(this, graph, operator),
            Err(why) => {
                if is_first && let Some(kept) = this.accepted(&why).await {
                    return Self::put(this, kept, false);
                }
                this.requests.put(Input::Graph { graph: Err(why), operator });
            }
        }
    }

    /// Gives it to the driver; when that has taken it, it is kept, unless it is only looked at.
    fn put(this: &Arc<Self>, mut graph: Box<Loaded>, operator: bool) {
        let texts: Arc<[Text]> = std::mem::take(&mut graph.texts).into();
        let generation = Generation::of(&graph);
        this.requests.put(Input::Graph { graph: Ok(graph), operator });
        if texts.is_empty() {
            return;
        }
        let number = this.handed.fetch_add(1, Ordering::SeqCst) + 1;
        let (to, fate) = oneshot::channel();
        this.requests.put(Input::Ask(Question::Taken(vec![to])));
        let this = Arc::clone(this);
        tokio::spawn(async move {
            let taken = match fate.await {
                Ok(Ok(taken)) => taken,
                Ok(Err(why)) => return this.hold(&why).await,
                Err(_) => return,
            };
            *this.instead.lock().unwrap_or_else(PoisonError::into_inner) = None;
            this.take(number, Arc::clone(&texts));
            let Some(directory) = this.graph.kept_in.clone().filter(|_| !taken.looks_only) else {
                return;
            };
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

    /// A graph was refused by the driver. One that has none yet runs the one that was taken last: a host is not left alone because
    /// something protected would leave it.
    async fn hold(&self, why: &str) {
        let (to, pulse) = oneshot::channel();
        let tell = move |pulse: Pulse| to.send(pulse.counts.total).unwrap_or_default();
        self.requests.put(Input::Ping(Answer(Box::new(tell))));
        if pulse.await != Ok(0) {
            return;
        }
        let graph = match self.latest().await {
            Some(graph) => Some(graph),
            None => self.accepted(why).await,
        };
        if let Some(graph) = graph {
            self.requests.put(Input::Again(graph));
        }
    }

    /// This one was taken.
    fn take(&self, number: u64, texts: Arc<[Text]>) {
        let mut latest = self.taken();
        if !matches!(&*latest, Latest::Here(other, _) if *other > number) {
            *latest = Latest::Here(number, texts);
        }
    }

    /// Removes what a daemon left that was killed while it kept a graph.
    async fn clear(self: &Arc<Self>, directory: &Path) {
        let (this, directory) = (Arc::clone(self), directory.to_owned());
        let cleared = tokio::task::spawn_blocking(move || {
            let _alone = this.kept();
            accepted::clear(&directory)
        });
        if let Ok(Err(error)) = cleared.await {
            tracing::warn!(event = "warning", "what was left of a graph stays: {error}");
        }
    }

    /// Keeps what was taken, unless what came after it is kept already.
    fn keep(&self, directory: &Path, number: u64, given: (&Generation, &[Text])) {
        let mut last = self.kept();
        if *last >= number {
            return;
        }
        *last = number;
        match accepted::write(directory, &self.graph.paths, given) {
            Ok(false) => {}
            Ok(true) => {
                let mut latest = self.taken();
                if matches!(&*latest, Latest::Here(here, _) if *here == number) {
                    *latest = Latest::Kept;
                }
            }
            Err(error) => tracing::warn!(event = "warning", "the graph is not kept: {error}"),
        }
    }

    fn kept(&self) -> MutexGuard<'_, u64> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> MutexGuard<'_, Latest> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The graph that was accepted last, where it is to be run instead of one that is refused.
    async fn accepted(&self, why: &str) -> Option<Box<Loaded>> {
        let directory = self.graph.kept_in.clone()?;
        let graph = self.graph.clone();
        let read = tokio::task::spawn_blocking(move || {
            let kept = accepted::read(&directory, &graph.paths)?;
            let options = Options { refuse_empty: false, ..graph.options };
            let loaded = config::load_texts(kept.texts, &options);
            let loaded = loaded.inspect_err(|rejected| {
                tracing::warn!(event = "warning", "nor can the graph be run that was: {rejected}");
            });
            Some((kept.at, loaded.ok()?))
        });
        // Its texts are kept already.
        let (at, loaded) = read.await.ok()??;
        let loaded = Loaded { texts: Vec::new(), ..loaded };
        let time = i64::try_from(at).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
        let time = time.map(|time| time.to_string()).unwrap_or_default();
        let says = format!(
            "running the graph `{}` that was accepted at {time}, because the one that is there is refused:\n{}",
            loaded.name,
            why.trim_end()
        );
        tracing::error!(event = "kept_graph", "{says}");
        self.teller.tell(Happening::new("kept_graph", says.as_str(), Level::Error));
        *self.instead.lock().unwrap_or_else(PoisonError::into_inner) = Some(says);
        *self.taken() = Latest::Kept;
        self.is_empty.store(loaded.vertices.is_empty(), Ordering::SeqCst);
        Some(Box::new(loaded))
    }

    async fn read(&self, allow_empty: bool) -> Result<Box<Loaded>, String> {
        let mut graph = self.graph.clone();
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
