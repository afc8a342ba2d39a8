//! The worker that drives: a thread of its own for the driver's loop, started anew where it breaks.

use super::Shared;
use super::shutdown::Shutdown;
use super::store::Kept;
use crate::driver::{Driver, DriverDeps, DriverEvent, Inbox, PingReply};
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;
use steadfast_resources::Host;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long what a broken driver has left running may take to end. Nothing may run twice at once (E-6): after this the process
/// ends, and with it what hangs.
const LEFTOVERS: Duration = Duration::from_secs(30);

/// How long a stopping driver's loop may stand still.
const HANGS: Duration = Duration::from_secs(10);
/// The same once it is to end at once.
const AT_ONCE: Duration = Duration::from_millis(800);
/// How often that is looked at.
const STEP: Duration = Duration::from_millis(100);

/// How much that matters beside other fatal failures.
const RANK: u8 = 2;

/// The engine decides when a stop is over, for some runs must not be cut off; this is only where patience ends.
const GRACE: Duration = Duration::from_hours(24);

/// Drives the graph.
pub(super) fn driver(shared: &Arc<Shared>) -> Manifold {
    let own = Arc::clone(shared);
    let worker = shared.worker("driver", move |inputs, life: WorkerContext| {
        let shared = Arc::clone(&own);
        async move {
            let begun = tokio::select! {
                begun = begin(&shared, inputs.get("store")?) => begun?,
                // Nothing is driven yet: there is nothing to wait for.
                () = life.stopping().cancelled() => return Ok(()),
            };
            let (mut running, inbox) = begun;
            shared.requests.attach(inbox.clone());
            life.ready(Outputs::none());
            tokio::select! {
                ended = &mut running.ended => {
                    return if ended.is_ok() { Ok(()) } else { Err(running.broken()) };
                }
                () = life.stopping().cancelled() => {
                    if !shared.ending.is_begun() {
                        // Another one follows: what is asked from now on is for that one.
                        inbox.put_first(shared.requests.detach(&inbox));
                    }
                    inbox.put(DriverEvent::Stop(shared.grace()));
                }
                never = life.watch_thread(|| ping(&inbox)) => match never {},
            }
            tokio::select! {
                ended = &mut running.ended => {
                    if ended.is_ok() { Ok(()) } else { Err(running.broken()) }
                }
                never = cut_off(&inbox, &shared.ending) => match never {},
                () = hangs(&inbox, &shared.ending) => {
                    let what = "the driver hangs and was abandoned";
                    tracing::error!(event = "stop_timeout", "{what}");
                    Err(Failure::again(what))
                }
            }
        }
    });
    worker.requires("store").handles("lease").handles("graph").handles("events").grace(GRACE)
}

/// Starts a driver once nothing runs any more of the one before.
async fn begin(
    shared: &Arc<Shared>,
    kept: Kept,
) -> Result<(Running<'_>, Inbox<DriverEvent>), Failure> {
    leftovers(shared).await?;
    let mut running = Running::start(shared, kept)?;
    let Ok((inbox, presence)) = (&mut running.began).await else {
        return Err(running.broken());
    };
    *shared.presence.lock().unwrap_or_else(PoisonError::into_inner) = presence;
    running.inbox = Some(inbox.clone());
    Ok((running, inbox))
}

/// Waits until the driver's loop has not turned for a while. It turns also while it waits for runs that must not be cut off.
/// Who asks for the end a second time waits no longer than a moment.
async fn hangs(inbox: &Inbox<DriverEvent>, ending: &Shutdown) {
    loop {
        let mut answer = ping(inbox);
        let asked = Instant::now();
        loop {
            let patience = if ending.is_now() { AT_ONCE } else { HANGS };
            match tokio::time::timeout(STEP, &mut answer).await {
                Ok(Ok(())) => break,
                // It has ended, or broke: that is heard elsewhere.
                Ok(Err(_)) => return std::future::pending().await,
                Err(_) if asked.elapsed() >= patience => return,
                Err(_) => {}
            }
        }
        tokio::time::sleep(STEP).await;
    }
}

/// Has a driver end at once when the daemon is to, also one that takes no requests any more.
async fn cut_off(inbox: &Inbox<DriverEvent>, ending: &Shutdown) -> Infallible {
    ending.at_once().await;
    inbox.put(DriverEvent::Stop(Duration::ZERO));
    std::future::pending().await
}

/// Asks a driver's loop whether it turns.
fn ping(inbox: &Inbox<DriverEvent>) -> oneshot::Receiver<()> {
    let (turned, answer) = oneshot::channel();
    // Nobody listens any more: it was too late, or has ended.
    inbox.put(DriverEvent::Ping(PingReply(Box::new(move |_| turned.send(()).unwrap_or_default()))));
    answer
}

/// Waits until nothing runs any more that an earlier driver has started.
async fn leftovers(shared: &Shared) -> Result<(), Failure> {
    let deadline = Instant::now() + LEFTOVERS;
    let presence = shared.presence.lock().unwrap_or_else(PoisonError::into_inner).clone();
    while presence.strong_count() > 0 {
        if Instant::now() > deadline {
            return Err(Failure::fatal(RANK, "commands of the failed driver do not end"));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// A driver's thread, as its worker sees it.
struct Running<'a> {
    shared: &'a Shared,
    began: oneshot::Receiver<(Inbox<DriverEvent>, Weak<()>)>,
    ended: oneshot::Receiver<()>,
    inbox: Option<Inbox<DriverEvent>>,
    failure: Arc<std::sync::Mutex<Option<Failure>>>,
}

impl<'a> Running<'a> {
    fn start(shared: &'a Arc<Shared>, kept: Kept) -> Result<Self, Failure> {
        let (told, began) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let failure = Arc::new(std::sync::Mutex::new(None));
        let failed = Arc::clone(&failure);
        let of_thread = Arc::clone(shared);
        let thread = std::thread::Builder::new().name("driver".to_owned());
        thread
            .spawn(move || match drive(&of_thread, &kept, told) {
                // The worker may have been cut off.
                Ok(()) => end.send(()).unwrap_or_default(),
                Err(why) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why),
            })
            .map_err(Failure::again)?;
        Ok(Self { shared, began, ended, inbox: None, failure })
    }

    fn broken(&self) -> Failure {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure
            .unwrap_or_else(|| Failure::again("the driver panicked; see the log for the location"))
    }
}

/// However the worker ends: requests wait for the next driver, and this one ends at once, unless it has ended already.
impl Drop for Running<'_> {
    fn drop(&mut self) {
        // It may have begun in this very moment.
        self.began.close();
        if let Ok((inbox, _)) = self.began.try_recv() {
            inbox.put(DriverEvent::Stop(Duration::ZERO));
        }
        if let Some(inbox) = &self.inbox {
            // Who has asked it something else hears that there is none.
            drop(self.shared.requests.detach(inbox));
            inbox.put(DriverEvent::Stop(Duration::ZERO));
        }
    }
}

/// A runtime whose end waits for nobody, also where its thread unwinds.
struct Brief(Option<Runtime>);

impl Drop for Brief {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(Duration::from_millis(100));
        }
    }
}

fn drive(
    shared: &Shared,
    kept: &Kept,
    told: oneshot::Sender<(Inbox<DriverEvent>, Weak<()>)>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let brief = Brief(Some(runtime.map_err(Failure::again)?));
    let runtime = brief.0.as_ref().ok_or_else(|| Failure::again(io::Error::other("no runtime")))?;
    let recalled = kept.recall().map_err(Failure::again)?;
    runtime.block_on(async {
        let parts = DriverDeps {
            host: Host::default().with_command_records(&shared.state_directory),
            key: Arc::clone(&shared.key),
            journal: Some(kept.journal.clone()),
            recalled,
            history: Some(Arc::clone(&shared.history)),
            observing: kept.observing.clone(),
            audience: (shared.audience)(),
        };
        let driver = Driver::new(shared.host().driver, parts);
        if let Some(lease) = super::lease::right(&shared.lease.borrow()) {
            driver.inbox().put(DriverEvent::Lease(lease));
        }
        if told.send((driver.inbox(), driver.presence())).is_err() {
            return Ok(());
        }
        driver.run().await.broken.map_or(Ok(()), |why| Err(Failure::again(why)))
    })
}
