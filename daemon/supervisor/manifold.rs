//! How a worker is declared.

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

/// What a start answers when the worker has ended.
pub(super) type Work = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

type Start = Arc<dyn Fn(Inputs, WorkerContext) -> Work + Send + Sync>;
pub(super) type Filter = Arc<dyn Fn(Failure) -> Failure + Send + Sync>;

/// How much a worker needs an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It is not started without it, and restarted when it comes or goes.
    Required,
    /// It is started without it as well, and restarted when it comes or goes.
    Optional,
    /// It looks by itself whether it is there ([`Inputs::handle`]); nothing follows when it comes or goes.
    Handle,
}

/// A worker: its name, its inputs, and how it is run.
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
    /// How long a worker may take to end when it is asked to, where nothing else is said.
    const GRACE: Duration = Duration::from_secs(5);

    /// A worker. The future sets itself up, says [`WorkerContext::ready`], and works until [`WorkerContext::stopping`] or until it has nothing left to do.
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

    /// With an input that it cannot do without.
    #[must_use]
    pub fn requires(self, name: &str) -> Self {
        self.input(name, Need::Required)
    }

    /// With an input that it can do without.
    #[must_use]
    pub fn uses(self, name: &str) -> Self {
        self.input(name, Need::Optional)
    }

    /// With an input that may come and go while it runs.
    #[must_use]
    pub fn handles(self, name: &str) -> Self {
        self.input(name, Need::Handle)
    }

    fn input(mut self, name: &str, need: Need) -> Self {
        self.inputs.push((name.into(), need));
        self
    }

    /// How long it may take to end when it is asked to; then it is cut off.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// It is stopped after all others of a lower rank, whatever their inputs are. Who says nothing has rank 0.
    #[must_use]
    pub fn stop_rank(mut self, rank: u8) -> Self {
        self.stop_rank = rank;
        self
    }

    /// While it runs it proves that it lives ([`WorkerContext::beat`]): one that does not for so long hangs, and is cut off and tried again.
    #[must_use]
    pub fn heartbeat_within(mut self, within: Duration) -> Self {
        self.silence = Some(within);
        self
    }

    /// Every failure of it goes through this first. Called in a task of its own.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(Failure) -> Failure + Send + Sync + 'static) -> Self {
        self.filter = Arc::new(filter);
        self
    }
}

/// What a running worker has of its supervisor.
#[derive(Clone)]
pub struct WorkerContext {
    pub(super) stopping: CancellationToken,
    pub(super) ready: Arc<dyn Fn(Outputs) + Send + Sync>,
    pub(super) status: StatusText,
    pub(super) pulse: Heartbeat,
}

/// What a worker last said of itself.
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
    /// It runs, and offers this. Said once; before that nobody who needs it is started.
    pub fn ready(&self, outputs: Outputs) {
        (self.ready)(outputs);
    }

    /// Cancelled when it is to end. Until its grace is over it may finish what it has begun.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// The same life; this is called too when it says that it is ready.
    #[must_use]
    pub fn on_ready(self, also: impl Fn() + Send + Sync + 'static) -> Self {
        let ready = self.ready;
        let both = move |outputs| {
            ready(outputs);
            also();
        };
        Self { ready: Arc::new(both), ..self }
    }

    /// Proves that it lives, and ends when that is due again: a branch in the loop of a worker.
    pub async fn prove_alive(&self) {
        self.pulse.prove_alive().await;
    }

    /// Proves that it lives, from a loop that turns often enough by itself.
    pub fn alive(&self) {
        self.pulse.alive();
    }

    /// Does something whose end it can only wait for, and proves meanwhile that it does.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = self.prove_alive() => {}
            }
        }
    }

    /// Asks a thread of its own again and again whether it lives. One that does not answer is named in the report; it cannot be cut off.
    pub async fn watch_thread(&self, ask: impl Fn() -> oneshot::Receiver<()>) -> Infallible {
        loop {
            self.prove_alive().await;
            let asked = Instant::now();
            let mut answer = ask();
            loop {
                tokio::select! {
                    // Where nobody is left to answer, that is heard elsewhere.
                    _answered = &mut answer => break,
                    () = self.prove_alive() => self.pulse.waits(asked),
                }
            }
            self.pulse.answered();
        }
    }

    /// What the report tells of it, until it says something else.
    pub fn set_status(&self, text: impl Into<String>) {
        self.status.put(Some(text.into()));
    }
}
