//! The harness: a supervisor with workers that follow a test's instructions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::supervisor::{
    Delays, Failure, Inputs, Manifold, Outputs, State, Supervisor, WorkerContext,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// An instruction for a worker.
#[derive(Clone, Debug)]
pub(crate) enum Cue {
    /// The worker ends with this result.
    End(Result<(), Failure>),
    Panic,
}

/// The test's handle of a worker.
#[derive(Clone)]
pub(crate) struct Actor {
    name: &'static str,
    cues: mpsc::UnboundedSender<Cue>,
    /// The number of calls of the worker, successful or not.
    pub(crate) calls: Arc<AtomicU32>,
    /// The times of these calls.
    pub(crate) times: Arc<Mutex<Vec<Instant>>>,
    /// The inputs at each call.
    pub(crate) seen: Arc<Mutex<Vec<Inputs>>>,
    /// The failures that the next starts return, in order; then the worker becomes ready.
    refusals: Arc<Mutex<Vec<Failure>>>,
    /// The time until the worker is ready, and the time until it ends on request.
    pub(crate) takes: Arc<Mutex<(Duration, Duration)>>,
}

pub(crate) struct Stage {
    pub(crate) supervisor: Supervisor,
    actors: Arc<Mutex<BTreeMap<&'static str, Actor>>>,
    /// The starts and ends of all workers, in order.
    pub(crate) log: Arc<Mutex<Vec<String>>>,
}

/// Returns delays that differ clearly from each other.
pub(crate) fn delays() -> Delays {
    Delays { error: Duration::from_secs(3), bounce: Duration::from_millis(50), ..Delays::default() }
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(delays())
    }

    pub(crate) fn with(delays: Delays) -> Self {
        let supervisor = Supervisor::start(delays).expect("valid delays");
        Self { supervisor, actors: Arc::default(), log: Arc::default() }
    }

    /// Creates a worker without declared inputs.
    pub(crate) fn worker(&self, name: &'static str) -> Manifold {
        let (cues, heard) = mpsc::unbounded_channel();
        let actor = Actor {
            name,
            cues,
            calls: Arc::default(),
            times: Arc::default(),
            seen: Arc::default(),
            refusals: Arc::default(),
            takes: Arc::default(),
        };
        self.actors.lock().expect("whole").insert(name, actor.clone());
        let heard = Arc::new(tokio::sync::Mutex::new(heard));
        let log = Arc::clone(&self.log);
        Manifold::new(name, move |inputs, life| {
            let (actor, heard, log) = (actor.clone(), Arc::clone(&heard), Arc::clone(&log));
            async move {
                log.lock().expect("whole").push(format!("+{name}"));
                let result = actor.play(inputs, life, heard).await;
                log.lock().expect("whole").push(format!("-{name}"));
                result
            }
        })
    }

    pub(crate) async fn install(&self, workers: Vec<Manifold>) {
        self.supervisor.install(workers).await.expect("installed");
    }

    pub(crate) fn actor(&self, name: &str) -> Actor {
        self.actors.lock().expect("whole")[name].clone()
    }

    pub(crate) fn calls(&self, name: &str) -> u32 {
        self.actor(name).calls.load(Ordering::SeqCst)
    }

    pub(crate) fn starts(&self, name: &str) -> u64 {
        self.supervisor.report().workers.get(name).map_or(0, |worker| worker.starts)
    }

    pub(crate) fn state(&self, name: &str) -> Option<State> {
        self.supervisor.report().workers.get(name).map(|worker| worker.state)
    }

    pub(crate) fn error(&self, name: &str) -> String {
        let report = self.supervisor.report();
        report.workers.get(name).and_then(|worker| worker.last_error.clone()).unwrap_or_default()
    }

    pub(crate) fn cue(&self, name: &str, cue: Cue) {
        self.actor(name).cues.send(cue).expect("heard");
    }

    pub(crate) fn fail(&self, name: &str) {
        self.cue(name, Cue::End(Err(Failure::again(format!("{name} broke")))));
    }

    pub(crate) fn end(&self, name: &str) {
        self.cue(name, Cue::End(Ok(())));
    }

    /// Makes the next starts of a worker return these failures.
    pub(crate) fn refuse(&self, name: &str, failures: Vec<Failure>) {
        *self.actor(name).refusals.lock().expect("whole") = failures;
    }

    pub(crate) fn takes(&self, name: &str, to_start: u64, to_end: u64) {
        let of = Duration::from_millis;
        *self.actor(name).takes.lock().expect("whole") = (of(to_start), of(to_end));
    }

    /// Advances virtual time until the condition is true.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        for _ in 0..200_000 {
            if is_so() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let report = self.supervisor.report();
        panic!("waited in vain until {what}: {report:#?} {:?}", self.log.lock().expect("whole"));
    }

    pub(crate) async fn runs(&self, names: &[&str]) {
        for name in names {
            self.until(name, || self.state(name) == Some(State::Running)).await;
        }
    }

    /// Waits until all effects without a back-off have happened.
    pub(crate) async fn quiet(&self) {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

impl Actor {
    async fn play(
        self,
        inputs: Inputs,
        life: WorkerContext,
        heard: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Cue>>>,
    ) -> Result<(), Failure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.times.lock().expect("whole").push(Instant::now());
        self.seen.lock().expect("whole").push(inputs);
        let (to_start, _) = *self.takes.lock().expect("whole");
        tokio::select! {
            () = tokio::time::sleep(to_start) => {}
            () = life.stopping().cancelled() => return Ok(()),
        }
        let refusal = {
            let mut refusals = self.refusals.lock().expect("whole");
            (!refusals.is_empty()).then(|| refusals.remove(0))
        };
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        life.ready(Outputs::none().with(self.name).with(self.calls.load(Ordering::SeqCst)));
        let mut heard = heard.lock().await;
        let cue = tokio::select! {
            cue = heard.recv() => cue,
            () = life.stopping().cancelled() => None,
        };
        match cue {
            Some(Cue::End(result)) => result,
            Some(Cue::Panic) => panic!("on cue"),
            None => {
                let (_, to_end) = *self.takes.lock().expect("whole");
                tokio::time::sleep(to_end).await;
                Ok(())
            }
        }
    }
}
