//! The worker of the driver: the driver's loop has its own thread, and is started again after a failure.

use crate::config::probe_answer;
use crate::driver::{Driver, DriverDeps, DriverEvent, Inbox, Notification, Observer, PingReply};
use crate::history::History;
use crate::lease::LeaseStatus;
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use crate::workers::MakeObserver;
use crate::workers::graph::loader::GraphLoader;
use crate::workers::graph::settings::LiveSettings;
use crate::workers::requests::queue::Requests;
use crate::workers::shutdown::Shutdown;
use crate::workers::state::store::StoreOutput;
use crate::workers::worker_factory::WorkerFactory;
use crate::workers::world::host_world::HostWorld;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use steadfast_resources::host::world::SharedWorld;
use steadfast_resources::{Host, MintKey};
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// The time that runs of a failed driver may take to end. No resource may run twice at once (E-6), so that the process
/// ends after this time.
const LEFTOVERS: Duration = Duration::from_secs(30);

/// The time for which the loop of a stopping driver may hang.
const HANGS: Duration = Duration::from_secs(10);
/// The time for which the loop may hang during an immediate stop.
const AT_ONCE: Duration = Duration::from_millis(800);
/// The interval of checks for a hanging loop.
const STEP: Duration = Duration::from_millis(100);

/// The rank among fatal failures.
const RANK: u8 = 2;

/// The upper limit of a stop. The engine decides about its end, because some runs must not be interrupted.
const GRACE: Duration = Duration::from_hours(24);

/// The parts of the worker.
pub(super) struct DriverParts {
    /// The key for minting permits.
    pub(super) key: Arc<MintKey>,
    pub(super) observer: MakeObserver,
    pub(super) lease: watch::Receiver<LeaseStatus>,
    pub(super) graph: GraphLoader,
    pub(super) history: Arc<History>,
    pub(super) requests: Requests,
    pub(super) settings: Arc<LiveSettings>,
    pub(super) shutdown: Arc<Shutdown>,
    pub(super) state_directory: PathBuf,
    pub(super) world: Arc<HostWorld>,
}

/// The parts of the worker, and the last driver.
struct DriverWorker {
    parts: DriverParts,
    /// Alive as long as the last driver or one of its runs is.
    presence: Mutex<Weak<()>>,
}

impl DriverParts {
    /// Waits until the lease was acquired once. A driver may start without a lease that was lost.
    async fn has_lease(&self) {
        let mut lease = self.lease.clone();
        if lease.wait_for(|lease| *lease != LeaseStatus::Wanted).await.is_err() {
            // The worker of the lease has ended for good: the daemon ends.
            std::future::pending::<()>().await;
        }
    }

    /// Returns the time that runs have to end now.
    fn grace(&self) -> Duration {
        if self.shutdown.is_now() { Duration::ZERO } else { self.settings.current().grace }
    }
}

/// Creates the worker that drives the graph.
pub(super) fn driver(factory: &WorkerFactory, parts: DriverParts) -> Manifold {
    let own = Arc::new(DriverWorker { parts, presence: Mutex::default() });
    let manifold = factory.worker("driver", move |inputs, life: WorkerContext| {
        let worker = Arc::clone(&own);
        async move {
            tokio::select! {
                () = life.during(worker.parts.has_lease()) => {}
                () = life.stopping().cancelled() => return Ok(()),
            }
            let begun = tokio::select! {
                begun = begin(&worker, inputs.get("store")?) => begun?,
                // No driver runs yet, so that there is nothing to wait for.
                () = life.stopping().cancelled() => return Ok(()),
            };
            let (mut running, inbox) = begun;
            worker.parts.requests.attach(inbox.clone());
            life.ready(Outputs::none());
            tokio::select! {
                ended = &mut running.ended => {
                    return if ended.is_ok() { Ok(()) } else { Err(running.broken()) };
                }
                () = life.stopping().cancelled() => {
                    if !worker.parts.shutdown.is_begun() {
                        // Another driver follows and receives the pending requests.
                        inbox.put_first(worker.parts.requests.detach(&inbox));
                    }
                    inbox.put(DriverEvent::Stop(worker.parts.grace()));
                }
                never = life.watch_thread(|| ping(&inbox)) => match never {},
            }
            tokio::select! {
                ended = &mut running.ended => {
                    if ended.is_ok() { Ok(()) } else { Err(running.broken()) }
                }
                never = cut_off(&inbox, &worker.parts.shutdown) => match never {},
                () = hangs(&inbox, &worker.parts.shutdown) => {
                    let what = "the driver hangs and was abandoned";
                    tracing::error!(event = "stop_timeout", "{what}");
                    Err(Failure::again(what))
                }
            }
        }
    });
    manifold.requires("store").handles("lease").handles("graph").handles("events").grace(GRACE)
}

/// Starts a driver after all runs of the previous one have ended.
async fn begin(
    worker: &Arc<DriverWorker>,
    kept: StoreOutput,
) -> Result<(Running<'_>, Inbox<DriverEvent>), Failure> {
    leftovers(worker).await?;
    let mut running = Running::start(worker, kept)?;
    let Ok((inbox, presence)) = (&mut running.began).await else {
        // The failure is known when the thread has ended.
        drop((&mut running.ended).await);
        return Err(running.broken());
    };
    *worker.presence.lock().unwrap_or_else(PoisonError::into_inner) = presence;
    running.inbox = Some(inbox.clone());
    Ok((running, inbox))
}

/// Waits until the driver's loop hangs. The loop also turns while the driver waits for runs that must not be
/// interrupted. An immediate stop shortens the limit.
async fn hangs(inbox: &Inbox<DriverEvent>, shutdown: &Shutdown) {
    loop {
        let mut answer = ping(inbox);
        let asked = Instant::now();
        loop {
            let patience = if shutdown.is_now() { AT_ONCE } else { HANGS };
            match tokio::time::timeout(STEP, &mut answer).await {
                Ok(Ok(())) => break,
                // The driver has ended or failed; the worker notices that elsewhere.
                Ok(Err(_)) => return std::future::pending().await,
                Err(_) if asked.elapsed() >= patience => return,
                Err(_) => {}
            }
        }
        tokio::time::sleep(STEP).await;
    }
}

/// Stops a driver at once when the daemon stops at once, even if the driver no longer accepts requests.
async fn cut_off(inbox: &Inbox<DriverEvent>, shutdown: &Shutdown) -> Infallible {
    shutdown.at_once().await;
    inbox.put(DriverEvent::Stop(Duration::ZERO));
    std::future::pending().await
}

/// Sends a ping to a driver's loop; the receiver completes when the loop has answered.
fn ping(inbox: &Inbox<DriverEvent>) -> oneshot::Receiver<()> {
    let (turned, answer) = oneshot::channel();
    // The receiver may be dropped: the answer was late, or the worker has ended.
    inbox.put(DriverEvent::Ping(PingReply(Box::new(move |_| turned.send(()).unwrap_or_default()))));
    answer
}

/// Waits until all runs of an earlier driver have ended.
async fn leftovers(worker: &DriverWorker) -> Result<(), Failure> {
    let deadline = Instant::now() + LEFTOVERS;
    let presence = worker.presence.lock().unwrap_or_else(PoisonError::into_inner).clone();
    while presence.strong_count() > 0 {
        if Instant::now() > deadline {
            return Err(Failure::fatal(RANK, "commands of the failed driver do not end"));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// The thread of a driver, as seen by its worker.
struct Running<'a> {
    worker: &'a DriverWorker,
    began: oneshot::Receiver<(Inbox<DriverEvent>, Weak<()>)>,
    ended: oneshot::Receiver<()>,
    inbox: Option<Inbox<DriverEvent>>,
    failure: Arc<Mutex<Option<Failure>>>,
}

impl<'a> Running<'a> {
    fn start(worker: &'a Arc<DriverWorker>, kept: StoreOutput) -> Result<Self, Failure> {
        let (told, began) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let failure = Arc::new(Mutex::new(None));
        let failed = Arc::clone(&failure);
        let of_thread = Arc::clone(worker);
        let thread = std::thread::Builder::new().name("driver".to_owned());
        thread
            .spawn(move || match drive(&of_thread, &kept, told) {
                // The worker may have been dropped.
                Ok(()) => end.send(()).unwrap_or_default(),
                Err(why) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why),
            })
            .map_err(Failure::again)?;
        Ok(Self { worker, began, ended, inbox: None, failure })
    }

    fn broken(&self) -> Failure {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure
            .unwrap_or_else(|| Failure::again("the driver panicked; see the log for the location"))
    }
}

/// Stops the driver when the worker ends for any reason; pending requests wait for the next driver.
impl Drop for Running<'_> {
    fn drop(&mut self) {
        // The driver may have begun just now.
        self.began.close();
        if let Ok((inbox, _)) = self.began.try_recv() {
            inbox.put(DriverEvent::Stop(Duration::ZERO));
        }
        if let Some(inbox) = &self.inbox {
            // Queries of the stopped driver end without a reply.
            drop(self.worker.parts.requests.detach(inbox));
            inbox.put(DriverEvent::Stop(Duration::ZERO));
        }
    }
}

/// A runtime that ends within a short time, even if its thread panics.
struct Brief(Option<Runtime>);

impl Drop for Brief {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(Duration::from_millis(100));
        }
    }
}

/// An observer that passes the answers of probes to the graph loader, and everything to another observer.
struct AnswerObserver {
    inner: Box<dyn Observer>,
    loader: GraphLoader,
}

impl Observer for AnswerObserver {
    fn hear(&mut self, news: &Notification<'_>) {
        if let Notification::Answered { identity, values } = news
            && let Some((probe, value)) = probe_answer(identity, values)
        {
            self.loader.take_answer(&probe, value);
        }
        self.inner.hear(news);
    }

    fn wants_progress(&self) -> bool {
        self.inner.wants_progress()
    }

    fn wants_foresight(&self) -> bool {
        self.inner.wants_foresight()
    }
}

fn drive(
    worker: &DriverWorker,
    kept: &StoreOutput,
    told: oneshot::Sender<(Inbox<DriverEvent>, Weak<()>)>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let brief = Brief(Some(runtime.map_err(Failure::again)?));
    let runtime = brief.0.as_ref().ok_or_else(|| Failure::again(io::Error::other("no runtime")))?;
    let recalled = kept.recall().map_err(Failure::again)?;
    runtime.block_on(async {
        let parts = DriverDeps {
            host: Host::default()
                .with_command_records(&worker.parts.state_directory)
                .with_world(Arc::clone(&worker.parts.world) as Arc<dyn SharedWorld>),
            key: Arc::clone(&worker.parts.key),
            journal: Some(kept.journal.clone()),
            recalled,
            history: Some(Arc::clone(&worker.parts.history)),
            read_only: kept.read_only.clone(),
            kinds: worker.parts.settings.current().graph.options.kinds,
            observer: Box::new(AnswerObserver {
                inner: (worker.parts.observer)(),
                loader: worker.parts.graph.clone(),
            }),
        };
        worker.parts.world.reset_permits();
        let driver = Driver::new(worker.parts.settings.current().driver, parts);
        if let Some(lease) = crate::workers::state::lease::right(&worker.parts.lease.borrow()) {
            driver.inbox().put(DriverEvent::Lease(lease));
        }
        if told.send((driver.inbox(), driver.presence())).is_err() {
            return Ok(());
        }
        driver.run().await.broken.map_or(Ok(()), |why| Err(Failure::again(why)))
    })
}
