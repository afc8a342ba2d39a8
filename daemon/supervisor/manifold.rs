//! The declaration of a worker.

use super::Name;
use super::failure::Failure;
use super::heartbeat::Heartbeat;
use super::outputs::{Inputs, Outputs};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The future of a running worker; it ends when the worker does.
pub(super) type Work = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

type Start = Arc<dyn Fn(Inputs, WorkerContext) -> Work + Send + Sync>;
pub(super) type Filter = Arc<dyn Fn(Failure) -> Failure + Send + Sync>;

/// The strength of a dependency on an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The worker is not started without the input, and restarted when the input starts or stops.
    Required,
    /// The worker is started without the input as well, and restarted when the input starts or stops.
    Optional,
    /// The worker looks the input up on its own ([`Inputs::handle`]) and is not restarted.
    Handle,
}

/// The declaration of a worker: its name, its inputs, and the function that runs it.
#[derive(Clone)]
pub struct Manifold {
    pub(super) name: Name,
    pub(super) inputs: Vec<(Name, Need)>,
    pub(super) grace: Duration,
    pub(super) stop_rank: u8,
    pub(super) silence: Option<Duration>,
    pub(super) start: Start,
    pub(super) filter: Filter,
}

impl std::fmt::Debug for Manifold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manifold")
            .field("name", &self.name)
            .field("inputs", &self.inputs)
            .finish_non_exhaustive()
    }
}

impl Manifold {
    /// The default time in which a worker must end after a request.
    const GRACE: Duration = Duration::from_secs(5);

    /// Declares a worker. Its future sets itself up, calls [`WorkerContext::ready`], and works until
    /// [`WorkerContext::stopping`] or until nothing is left to do.
    pub fn new<W>(
        name: &str,
        start: impl Fn(Inputs, WorkerContext) -> W + Send + Sync + 'static,
    ) -> Self
    where
        W: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        Self {
            name: name.into(),
            inputs: Vec::new(),
            grace: Self::GRACE,
            stop_rank: 0,
            silence: None,
            start: Arc::new(move |inputs, life| Box::pin(start(inputs, life))),
            filter: Arc::new(|failure| failure),
        }
    }

    /// Adds an input that the worker requires.
    #[must_use]
    pub fn requires(self, name: &str) -> Self {
        self.input(name, Need::Required)
    }

    /// Adds an input that the worker uses if it is there.
    #[must_use]
    pub fn uses(self, name: &str) -> Self {
        self.input(name, Need::Optional)
    }

    /// Adds an input that may start and stop while the worker runs.
    #[must_use]
    pub fn handles(self, name: &str) -> Self {
        self.input(name, Need::Handle)
    }

    fn input(mut self, name: &str, need: Need) -> Self {
        self.inputs.push((name.into(), need));
        self
    }

    /// Sets the time in which the worker must end after a request, before it is aborted.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the stop rank: the worker is stopped after all others of a lower rank, whatever their inputs are. The
    /// default is 0.
    #[must_use]
    pub fn stop_rank(mut self, rank: u8) -> Self {
        self.stop_rank = rank;
        self
    }

    /// Requires signs of life ([`WorkerContext::prove_alive`]): a worker that is silent for this long is aborted and
    /// started again.
    #[must_use]
    pub fn heartbeat_within(mut self, within: Duration) -> Self {
        self.silence = Some(within);
        self
    }

    /// Sets a filter that every failure of the worker passes first. The filter runs in a task of its own.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(Failure) -> Failure + Send + Sync + 'static) -> Self {
        self.filter = Arc::new(filter);
        self
    }
}

/// The connection of a running worker to its supervisor.
#[derive(Clone)]
pub struct WorkerContext {
    pub(super) stopping: CancellationToken,
    pub(super) ready: Arc<dyn Fn(Outputs) + Send + Sync>,
    pub(super) status: StatusText,
    pub(super) pulse: Heartbeat,
}

/// The status text that a worker has set last.
#[derive(Clone, Debug, Default)]
pub(super) struct StatusText(Arc<Mutex<Option<String>>>);

impl StatusText {
    pub(super) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn put(&self, text: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl std::fmt::Debug for WorkerContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Life")
            .field("stopping", &self.stopping.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl WorkerContext {
    /// Reports that the worker runs, and offers its outputs. Must be called once; workers that need this one are not
    /// started before.
    pub fn ready(&self, outputs: Outputs) {
        (self.ready)(outputs);
    }

    /// Returns a token that is cancelled when the worker must end. The worker may finish work in progress until its
    /// grace is over.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Returns the context with a callback that runs when the worker reports to be ready.
    #[must_use]
    pub fn on_ready(self, also: impl Fn() + Send + Sync + 'static) -> Self {
        let ready = self.ready;
        let both = move |outputs| {
            ready(outputs);
            also();
        };
        Self { ready: Arc::new(both), ..self }
    }

    /// Sends a sign of life, and returns when the next one is due: a branch in the loop of a worker.
    pub async fn prove_alive(&self) {
        self.pulse.prove_alive().await;
    }

    /// Sends a sign of life, for a loop that runs often enough by itself.
    pub fn alive(&self) {
        self.pulse.alive();
    }

    /// Waits for `work`, and sends signs of life meanwhile.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = self.prove_alive() => {}
            }
        }
    }

    /// Checks again and again that a thread of the worker replies. A thread that does not is shown in the report; it
    /// cannot be aborted.
    pub async fn watch_thread(&self, ask: impl Fn() -> oneshot::Receiver<()>) -> Infallible {
        loop {
            self.prove_alive().await;
            let asked = Instant::now();
            let mut answer = ask();
            loop {
                tokio::select! {
                    // A dropped sender means that the thread has ended, which other code reports.
                    _answered = &mut answer => break,
                    () = self.prove_alive() => self.pulse.waits(asked),
                }
            }
            self.pulse.answered();
        }
    }

    /// Sets the status text of the worker in the report, until the next call.
    pub fn set_status(&self, text: impl Into<String>) {
        self.status.put(Some(text.into()));
    }
}
