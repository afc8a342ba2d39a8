//! The task that executes the decisions of the state machine: starts workers, asks them to end, waits for them. It must
//! never call code of a worker itself.

use super::Name;
use super::backoff::Delays;
use super::dependencies::Refused;
use super::failure::{Failure, Kind};
use super::heartbeat::Heartbeat;
use super::manifold::{Filter, Manifold, Need, StatusText, Work, WorkerContext};
use super::outputs::{OutputRegistry, Outputs};
use super::state_machine::{Action, Attempt, Declared, LATELY, Node, Phase, SupervisorState};
use crate::api::{Report, State, WorkerReport};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The end of a supervisor.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The fatal failure and its worker, if there was one.
    pub fatal: Option<(Name, Failure)>,
    /// The workers that did not end in time.
    pub late: Vec<Name>,
}

/// A supervisor. Clones share it, and dropping them does not stop it.
#[derive(Clone, Debug)]
pub struct Supervisor {
    orders: mpsc::UnboundedSender<Order>,
    reports: watch::Receiver<Snapshot>,
    ended: watch::Receiver<Option<Arc<Ended>>>,
}

enum Order {
    Install(Vec<Manifold>, Answer),
    Remove(Name, Answer),
    Stop(Option<Duration>),
    Ready(Name, Attempt, Outputs),
    /// The failure comes with its text: formatting it is foreign code.
    Ended(Name, Attempt, Result<(), (Failure, String)>),
}

/// The data of a report. Status texts are read at the time of a request.
#[derive(Clone, Debug, Default)]
struct Snapshot {
    report: Report,
    status: BTreeMap<String, StatusText>,
    /// The time of the next start, by worker.
    next: BTreeMap<String, Instant>,
    /// The times of recent failures, by worker.
    failed: BTreeMap<String, Vec<Instant>>,
    /// The time since which an aborted worker hangs, by worker.
    hangs: BTreeMap<String, Instant>,
    pulses: BTreeMap<String, Heartbeat>,
}

/// The channel for the reply to an order.
type Answer = oneshot::Sender<Result<(), Refused>>;

/// A worker that was started.
struct Live {
    attempt: Attempt,
    stopping: CancellationToken,
    abort: AbortHandle,
    pulse: Heartbeat,
}

struct Runner {
    brain: SupervisorState,
    began: Instant,
    manifolds: HashMap<Name, Manifold>,
    live: HashMap<Name, Live>,
    status: HashMap<Name, StatusText>,
    started: HashMap<Name, u64>,
    removals: HashMap<Name, Vec<Answer>>,
    fatal: Option<(u8, Name, Failure)>,
    board: OutputRegistry,
    orders: mpsc::UnboundedReceiver<Order>,
    /// The sender for workers.
    mouth: mpsc::UnboundedSender<Order>,
    reports: watch::Sender<Snapshot>,
    over: bool,
    /// Replies to send once the report contains the changes.
    answers: Vec<(Answer, Result<(), Refused>)>,
}

impl Supervisor {
    /// Starts a supervisor without workers, on the current runtime.
    ///
    /// # Errors
    ///
    /// Returns the first problem of the delays.
    pub fn start(delays: Delays) -> Result<Self, &'static str> {
        if let Some(fault) = delays.fault() {
            return Err(fault);
        }
        let (mouth, orders) = mpsc::unbounded_channel();
        let snapshot = Snapshot::default();
        let (reports, seen) = watch::channel(snapshot);
        let (end, ended) = watch::channel(None);
        let runner = Runner {
            brain: SupervisorState::new(delays),
            began: Instant::now(),
            manifolds: HashMap::new(),
            live: HashMap::new(),
            status: HashMap::new(),
            started: HashMap::new(),
            removals: HashMap::new(),
            fatal: None,
            board: OutputRegistry::default(),
            orders,
            mouth: mouth.clone(),
            reports,
            over: false,
            answers: Vec::new(),
        };
        tokio::spawn(async move {
            let how = runner.run().await;
            end.send_replace(Some(Arc::new(how)));
        });
        Ok(Self { orders: mouth, reports: seen, ended })
    }

    /// Installs all of these workers, or none. Each is started when its inputs run.
    ///
    /// # Errors
    ///
    /// Returns an error for duplicates, cycles, or a supervisor that is shutting down.
    pub async fn install(&self, workers: Vec<Manifold>) -> Result<(), Refused> {
        let (answer, answered) = oneshot::channel();
        self.order(Order::Install(workers, answer));
        answered.await.unwrap_or(Err(Refused::ShuttingDown))
    }

    /// Removes a worker for good, and returns when it has ended. Workers that require it rest until one of that name is
    /// installed again.
    ///
    /// # Errors
    ///
    /// Returns an error if the worker is unknown, or the supervisor is shutting down.
    pub async fn remove(&self, name: &str) -> Result<(), Refused> {
        let (answer, answered) = oneshot::channel();
        self.order(Order::Remove(name.into(), answer));
        answered.await.unwrap_or(Err(Refused::ShuttingDown))
    }

    /// Stops all workers, each before its inputs. After the time `within` the remaining ones are given up.
    pub fn stop(&self, within: Option<Duration>) {
        self.order(Order::Stop(within));
    }

    /// Returns the report on all workers, without waiting.
    #[must_use]
    pub fn report(&self) -> Report {
        let seen = self.reports.borrow();
        let mut report = seen.report.clone();
        let now = Instant::now();
        for (name, worker) in &mut report.workers {
            worker.message = seen.status.get(name).and_then(StatusText::get);
            let left = seen.next.get(name).map(|at| at.saturating_duration_since(now));
            worker.next_attempt_in = left.map(milliseconds);
            let failed = seen.failed.get(name).into_iter().flatten();
            let ages = failed.map(|at| now.saturating_duration_since(*at));
            let ages: Vec<Duration> = ages.filter(|ago| *ago < LATELY).collect();
            worker.failures = u64::try_from(ages.len()).unwrap_or(u64::MAX);
            worker.failed_ago = ages.iter().min().copied().map(milliseconds);
            let thread = seen.pulses.get(name).and_then(Heartbeat::hangs);
            let hangs = seen.hangs.get(name).copied().or(thread);
            worker.hangs_for =
                hangs.map(|since| milliseconds(now.saturating_duration_since(since)));
        }
        report
    }

    /// Waits until all workers have ended.
    pub async fn ended(&self) -> Arc<Ended> {
        let mut ended = self.ended.clone();
        // The channel closes without a value only if the supervisor's own loop panics.
        let broken = || {
            let fatal = Failure::fatal(u8::MAX, "the supervisor failed");
            Arc::new(Ended { fatal: Some(("supervisor".into(), fatal)), late: Vec::new() })
        };
        match ended.wait_for(Option::is_some).await {
            Ok(how) => how.clone().unwrap_or_else(broken),
            Err(_) => broken(),
        }
    }

    fn order(&self, order: Order) {
        // After the end of the loop there is no receiver, and callers get an error from the dropped reply channel.
        let _over = self.orders.send(order);
    }
}

impl Runner {
    async fn run(mut self) -> Ended {
        while !self.over {
            let wake = self.brain.next_wakeup().map(|at| self.began + at);
            let order = match wake {
                Some(at) => tokio::select! {
                    biased;
                    order = self.orders.recv() => order,
                    () = tokio::time::sleep_until(at) => None,
                },
                None => self.orders.recv().await,
            };
            self.brain.now = self.began.elapsed();
            if let Some(order) = order {
                self.take(order);
            }
            for (name, live) in &self.live {
                self.brain.heard(name, live.attempt, live.pulse.heard());
            }
            let actions = self.brain.actions();
            for action in actions {
                self.perform(action);
            }
            self.publish();
            for (answer, result) in self.answers.drain(..) {
                let _gone = answer.send(result);
            }
        }
        let late = self.brain.stop.take().map(|stop| stop.late).unwrap_or_default();
        let fatal = self.fatal.take().map(|(_, name, failure)| (name, failure));
        let ended = Ended { fatal, late: late.into_iter().collect() };
        discard(self);
        ended
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Install(workers, answer) => {
                let declared = workers.iter().map(|worker| Declared {
                    name: Name::clone(&worker.name),
                    inputs: worker.inputs.clone(),
                    grace: worker.grace,
                    stop_rank: worker.stop_rank,
                    silence: worker.silence,
                });
                let result = self.brain.install(declared.collect());
                if result.is_ok() {
                    let named = workers.into_iter().map(|w| (Name::clone(&w.name), w));
                    self.manifolds.extend(named);
                }
                self.answers.push((answer, result));
            }
            Order::Remove(name, answer) => match self.brain.remove(&name) {
                Ok(()) => self.removals.entry(name).or_default().push(answer),
                Err(refused) => self.answers.push((answer, Err(refused))),
            },
            Order::Stop(within) => self.brain.begin_stop(within),
            Order::Ready(name, attempt, outputs) => {
                // Registered before any dependent worker is started.
                if self.brain.ready(&name, attempt) {
                    self.board.put(&name, outputs);
                    self.started.insert(name, unix_ms());
                }
            }
            Order::Ended(name, attempt, result) => self.ended(name, attempt, result),
        }
    }

    fn ended(&mut self, name: Name, attempt: Attempt, result: Result<(), (Failure, String)>) {
        if self.live.get(&name).is_some_and(|live| live.attempt == attempt) {
            self.live.remove(&name);
            discard(self.board.take(&name));
            self.started.remove(&name);
            if let Some(says) = self.status.get(&name) {
                says.put(None);
            }
        }
        let failure = result.err();
        let told = failure.as_ref().map(|(failure, words)| (failure.kind, words.clone()));
        self.brain.ended(&name, attempt, told);
        let Some((failure, _)) = failure else { return };
        if let Some((rank, whose)) = &self.brain.fatal
            && *whose == name
            && self.fatal.as_ref().is_none_or(|(before, ..)| before < rank)
        {
            self.fatal = Some((*rank, name, failure));
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Start(name, attempt) => self.begin(name, attempt),
            Action::Cancel(name, attempt) => {
                if let Some(live) = self.live.get(&name).filter(|live| live.attempt == attempt) {
                    live.stopping.cancel();
                }
            }
            Action::Abort(name, attempt) => {
                if let Some(live) = self.live.get(&name).filter(|live| live.attempt == attempt) {
                    tracing::warn!(worker = &*name, "did not stop in time and is aborted");
                    live.abort.abort();
                }
            }
            Action::Hangs(name, attempt, silent) => {
                if let Some(live) = self.live.get(&name).filter(|live| live.attempt == attempt) {
                    let seconds = silent.as_secs();
                    tracing::error!(
                        event = "worker_hangs",
                        worker = &*name,
                        "{name} has done nothing for {seconds} s and is aborted"
                    );
                    live.abort.abort();
                }
            }
            Action::Forget(name) => {
                discard(self.manifolds.remove(&name));
                self.status.remove(&name);
                let waiting = self.removals.remove(&name).unwrap_or_default();
                self.answers.extend(waiting.into_iter().map(|answer| (answer, Ok(()))));
            }
            Action::Finished => self.over = true,
        }
    }

    fn begin(&mut self, name: Name, attempt: Attempt) {
        let Some(manifold) = self.manifolds.get(&name) else { return };
        let stopping = CancellationToken::new();
        let says = self.status.entry(Name::clone(&name)).or_default().clone();
        let ready = {
            let (mouth, name) = (self.mouth.clone(), Name::clone(&name));
            move |outputs| drop(mouth.send(Order::Ready(Name::clone(&name), attempt, outputs)))
        };
        let pulse = Heartbeat::new(Name::clone(&name), self.began, manifold.silence);
        let life = WorkerContext {
            stopping: stopping.clone(),
            ready: Arc::new(ready),
            status: says,
            pulse: pulse.clone(),
        };
        let inputs = self.board.inputs(&manifold.inputs);
        let start = Arc::clone(&manifold.start);
        // Code of the worker before its first wait runs in its own task, too.
        let task = tokio::spawn(async move { work(start(inputs, life)).await });
        let abort = task.abort_handle();
        let (mouth, filter) = (self.mouth.clone(), Arc::clone(&manifold.filter));
        let whose = Name::clone(&name);
        tokio::spawn(async move {
            let result = match task.await {
                Ok(result) => result,
                Err(error) if error.is_panic() => {
                    Err(Failure::again(format!("the worker panicked: {}", panic_words(error))))
                }
                Err(_) => Err(Failure::new(Kind::Again, "the worker was aborted")),
            };
            let result = match result {
                Ok(()) => Ok(()),
                Err(failure) => Err(judge(failure, filter).await),
            };
            drop(mouth.send(Order::Ended(whose, attempt, result)));
        });
        self.live.insert(name, Live { attempt, stopping, abort, pulse });
    }

    fn publish(&self) {
        let nodes = &self.brain.nodes;
        let state = match &self.brain.stop {
            None => State::Running,
            Some(_) if self.over => State::Stopped,
            Some(_) => State::Stopping,
        };
        let of = |(name, node): (&Name, &Node)| (name.to_string(), self.worker(name, node));
        let inputs = nodes.values().flat_map(|node| &node.declared.inputs);
        let strangers = inputs.map(|(name, _)| name).filter(|name| !nodes.contains_key(*name));
        let mut nobody: Vec<String> = strangers.map(ToString::to_string).collect();
        nobody.sort();
        nobody.dedup();
        let report =
            Report { state, workers: nodes.iter().map(of).collect(), missing_inputs: nobody };
        let says = self.status.iter().map(|(name, says)| (name.to_string(), says.clone()));
        let next = nodes.iter().filter_map(|(name, node)| match node.phase {
            Phase::Waiting { until } => Some((name.to_string(), self.began + until)),
            _ => None,
        });
        let failed = nodes.iter().filter(|(_, node)| !node.failed.is_empty());
        let failed = failed.map(|(name, node)| {
            (name.to_string(), node.failed.iter().map(|at| self.began + *at).collect::<Vec<_>>())
        });
        let hangs = nodes.iter().filter_map(|(name, node)| {
            node.hangs.map(|since| (name.to_string(), self.began + since))
        });
        let pulses = self.live.iter().map(|(name, live)| (name.to_string(), live.pulse.clone()));
        let snapshot = Snapshot {
            report,
            status: says.collect(),
            next: next.collect(),
            failed: failed.collect(),
            hangs: hangs.collect(),
            pulses: pulses.collect(),
        };
        self.reports.send_replace(snapshot);
    }

    fn worker(&self, name: &Name, node: &Node) -> WorkerReport {
        let is_there = |input: &Name| self.brain.nodes.get(input).is_some_and(Node::is_published);
        WorkerReport {
            state: match node.phase {
                Phase::Idle => State::Stopped,
                Phase::Waiting { .. } => State::Waiting,
                Phase::Starting { .. } => State::Starting,
                Phase::Running { .. } => State::Running,
                Phase::Stopping { .. } => State::Stopping,
            },
            inputs: inputs_of(node).map(|name| (name.to_string(), is_there(name))).collect(),
            starts: node.starts,
            started: self.started.get(name).copied(),
            last_error: node.error.clone(),
            next_attempt_in: None,
            message: None,
            failures: 0,
            failed_ago: None,
            last_failure: node.failure.clone(),
            hangs_for: None,
        }
    }
}

fn inputs_of(node: &Node) -> impl Iterator<Item = &Name> {
    node.declared.inputs.iter().map(|(name, _): &(Name, Need)| name)
}

async fn work(work: Work) -> Result<(), Failure> {
    work.await
}

/// Applies the filter to a failure and formats it. Both are foreign code, which may panic.
async fn judge(failure: Failure, filter: Filter) -> (Failure, String) {
    let judging = tokio::spawn(async move {
        let failure = filter(failure);
        let words = failure.to_string();
        (failure, words)
    });
    match judging.await {
        Ok(judged) => judged,
        Err(error) if error.is_panic() => {
            let words = format!("the failure filter panicked: {}", panic_words(error));
            (Failure::again(words.clone()), words)
        }
        Err(_) => (Failure::again("the worker was aborted"), "the worker was aborted".to_owned()),
    }
}

/// Drops a value of a worker in a task of its own, since dropping is foreign code.
fn discard(foreign: impl Send + 'static) {
    drop(tokio::spawn(async move { drop(foreign) }));
}

fn panic_words(error: tokio::task::JoinError) -> String {
    let panic = error.into_panic();
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without words".to_owned())
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn unix_ms() -> u64 {
    milliseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
