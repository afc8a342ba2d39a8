//! The decisions of the supervisor: a value that receives the time and one event, and returns actions. It has no clock
//! and no task.

use super::Name;
use super::backoff::Delays;
use super::dependencies::{Needs, Refused, named_twice, ring};
use super::failure::Kind;
use super::hang_detection::hangs;
use super::heartbeat::TIMES;
use super::manifold::Need;
use super::shutdown::Stop;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The time for which failures are remembered; at most `MANY` per worker.
pub(super) const LATELY: Duration = Duration::from_hours(1);
const MANY: usize = 100;

/// The number that distinguishes one start of a worker from the next.
pub(super) type Attempt = u64;

/// The declaration of a worker, as far as the state machine needs it.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) name: Name,
    pub(super) inputs: Vec<(Name, Need)>,
    pub(super) grace: Duration,
    pub(super) stop_rank: u8,
    /// The longest silence.
    pub(super) silence: Option<Duration>,
}

/// The actions for the runner, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Start the worker with the present outputs of its inputs.
    Start(Name, Attempt),
    /// Ask the worker to end.
    Cancel(Name, Attempt),
    /// Abort the worker.
    Abort(Name, Attempt),
    /// Abort the worker because of its silence of this duration.
    Hangs(Name, Attempt, Duration),
    /// Delete the worker, which is no longer declared.
    Forget(Name),
    /// All workers have ended, or were given up.
    Finished,
}

/// The phase of a worker. Times are counted from the start of the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Waiting {
        until: Duration,
    },
    Starting {
        attempt: Attempt,
    },
    Running {
        attempt: Attempt,
        since: Duration,
    },
    Stopping {
        attempt: Attempt,
        /// True if dependents know that the worker runs.
        published: bool,
        /// The time of the abort; after the abort, the time at which the worker is given up.
        until: Duration,
        cut_off: bool,
        then: AfterStop,
    },
}

/// The next step after a worker has ended that was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterStop {
    Restart,
    /// The worker hung: treated as a failure.
    Retry,
    Forget,
    Rest,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) declared: Declared,
    pub(super) phase: Phase,
    /// The latest time at which a start stops waiting for inputs that are about to change.
    settles: Option<Duration>,
    /// The number of failures in a row.
    failures: u32,
    /// The times of recent failures.
    pub(super) failed: VecDeque<Duration>,
    /// The last failure.
    pub(super) failure: Option<String>,
    /// The time of the last sign of life, and the time since which the worker is suspected to hang.
    pub(super) heard: Duration,
    pub(super) doubted: Option<Duration>,
    /// The time since which the worker is known to hang: it was aborted, and has not ended.
    pub(super) hangs: Option<Duration>,
    pub(super) starts: u64,
    pub(super) error: Option<String>,
}

impl Node {
    pub(super) fn attempt(&self) -> Option<Attempt> {
        match self.phase {
            Phase::Idle | Phase::Waiting { .. } => None,
            Phase::Starting { attempt }
            | Phase::Running { attempt, .. }
            | Phase::Stopping { attempt, .. } => Some(attempt),
        }
    }

    pub(super) fn is_published(&self) -> bool {
        matches!(self.phase, Phase::Running { .. } | Phase::Stopping { published: true, .. })
    }

    /// Resets the failures in a row after a long run.
    pub(super) fn forgive(&mut self, ran: Duration, delays: &Delays) {
        if ran >= delays.reset {
            self.failures = 0;
        }
    }

    fn waits_for(&self, name: &str) -> bool {
        let inputs = self.declared.inputs.iter();
        inputs.filter(|(_, need)| *need != Need::Handle).any(|(input, _)| &**input == name)
    }
}

/// The state of all workers.
#[derive(Debug)]
pub(super) struct SupervisorState {
    pub(super) delays: Delays,
    pub(super) nodes: BTreeMap<Name, Node>,
    pub(super) now: Duration,
    pub(super) stop: Option<Stop>,
    /// The highest rank of a fatal failure, and its worker.
    pub(super) fatal: Option<(u8, Name)>,
    attempts: Attempt,
    pub(super) out: Vec<Action>,
}

impl SupervisorState {
    pub(super) fn new(delays: Delays) -> Self {
        let (nodes, out) = (BTreeMap::new(), Vec::new());
        Self { delays, nodes, now: Duration::ZERO, stop: None, fatal: None, attempts: 0, out }
    }

    /// Returns the actions that follow from the events and the time since the last call.
    pub(super) fn actions(&mut self) -> Vec<Action> {
        self.fire();
        std::mem::take(&mut self.out)
    }

    /// Installs all of these workers, or none.
    pub(super) fn install(&mut self, workers: Vec<Declared>) -> Result<(), Refused> {
        if self.stop.is_some() {
            return Err(Refused::ShuttingDown);
        }
        let mut needs: Needs = self.needs();
        for worker in &workers {
            if let Some(input) = named_twice(&worker.inputs) {
                let (worker, input) = (Name::clone(&worker.name), Name::clone(input));
                return Err(Refused::Twice { worker, input });
            }
            if needs.insert(Name::clone(&worker.name), worker.inputs.clone()).is_some() {
                return Err(Refused::Exists(Name::clone(&worker.name)));
            }
        }
        if let Some(ring) = ring(&needs) {
            return Err(Refused::Cycle(ring));
        }
        let names: Vec<Name> = workers.iter().map(|worker| Name::clone(&worker.name)).collect();
        for declared in workers {
            let node = Node {
                phase: Phase::Idle,
                settles: None,
                failures: 0,
                failed: VecDeque::new(),
                failure: None,
                heard: Duration::ZERO,
                doubted: None,
                hangs: None,
                starts: 0,
                error: None,
                declared,
            };
            self.nodes.insert(Name::clone(&node.declared.name), node);
        }
        for name in names {
            self.request(&name, Duration::ZERO);
        }
        Ok(())
    }

    fn needs(&self) -> Needs {
        let inputs =
            |(name, node): (&Name, &Node)| (Name::clone(name), node.declared.inputs.clone());
        self.nodes.iter().map(inputs).collect()
    }

    /// Removes a worker for good.
    pub(super) fn remove(&mut self, name: &str) -> Result<(), Refused> {
        if self.stop.is_some() {
            // The worker stops in its order: others may need it until then.
            return Err(Refused::ShuttingDown);
        }
        let node = self.nodes.get(name).ok_or_else(|| Refused::Unknown(name.into()))?;
        let name = Name::clone(&node.declared.name);
        if node.attempt().is_none() {
            self.forget(&name);
        } else {
            self.cancel(&name, AfterStop::Forget);
        }
        Ok(())
    }

    fn forget(&mut self, name: &Name) {
        self.nodes.remove(name);
        self.out.push(Action::Forget(Name::clone(name)));
    }

    /// Records that a worker is ready. Returns true if its outputs may be offered.
    pub(super) fn ready(&mut self, name: &str, attempt: Attempt) -> bool {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(name) else { return false };
        // The outputs of a worker that was asked to end meanwhile are never offered.
        if node.phase != (Phase::Starting { attempt }) {
            return false;
        }
        node.phase = Phase::Running { attempt, since: now };
        node.starts += 1;
        (node.heard, node.doubted) = (now, None);
        self.bounce_dependents(name);
        true
    }

    /// Records the end of a worker. The end of an earlier attempt is ignored.
    pub(super) fn ended(&mut self, name: &str, attempt: Attempt, failure: Option<(Kind, String)>) {
        let Some(node) = self.nodes.get_mut(name).filter(|n| n.attempt() == Some(attempt)) else {
            return;
        };
        let published = node.is_published();
        let before = std::mem::replace(&mut node.phase, Phase::Idle);
        let ran = match before {
            Phase::Running { since, .. } => self.now.saturating_sub(since),
            _ => Duration::ZERO,
        };
        node.forgive(ran, &self.delays);
        let hung = node.hangs.take().map(|since| self.now.saturating_sub(since));
        let hung =
            hung.filter(|_| matches!(before, Phase::Stopping { then: AfterStop::Retry, .. }));
        let failure = match hung {
            Some(silent) => Some((Kind::Again, hangs(silent))),
            None => failure,
        };
        let kind = failure.as_ref().map(|(kind, _)| *kind);
        node.error = failure.map(|(_, text)| text);
        let name = Name::clone(&node.declared.name);
        let then = match before {
            Phase::Stopping { then, .. } => Some(then),
            _ => None,
        };
        // The end of a worker that was asked to end is not counted as a failure.
        let is_fatal = match kind {
            Some(Kind::Again) if then.is_some() && then != Some(AfterStop::Retry) => false,
            _ => self.is_fatal(&name, kind),
        };
        if is_fatal {
            self.begin_stop(None);
        }
        self.follow(&name, kind, then);
        if published {
            self.bounce_dependents(&name);
        }
    }

    fn is_fatal(&mut self, name: &Name, kind: Option<Kind>) -> bool {
        let now = self.now;
        let rank = match kind {
            Some(Kind::Fatal(rank)) => rank,
            Some(Kind::Again) => {
                let Some(node) = self.nodes.get_mut(name) else { return false };
                node.failure.clone_from(&node.error);
                let budget = self.delays.budget.map(|(most, time)| (most as usize, time));
                let (most, time) = budget.unwrap_or((usize::MAX, LATELY));
                node.failed.push_back(now);
                node.failed.retain(|at| now.saturating_sub(*at) < time.max(LATELY));
                let in_time = node.failed.iter().filter(|at| now.saturating_sub(**at) < time);
                if in_time.count() < most {
                    let kept = budget.map_or(MANY, |(most, _)| most.max(MANY));
                    let much = node.failed.len().saturating_sub(kept);
                    node.failed.drain(..much);
                    return false;
                }
                0
            }
            _ => return false,
        };
        if self.fatal.as_ref().is_none_or(|(before, _)| *before < rank) {
            self.fatal = Some((rank, Name::clone(name)));
        }
        true
    }

    fn follow(&mut self, name: &Name, kind: Option<Kind>, then: Option<AfterStop>) {
        if then == Some(AfterStop::Forget) || (kind == Some(Kind::Uninstall) && self.stop.is_none())
        {
            self.forget(name);
            return;
        }
        match (then, kind) {
            (Some(AfterStop::Restart), _) | (None, Some(Kind::Bounce)) => {
                self.request(name, self.delays.bounce);
            }
            (Some(AfterStop::Retry), _) | (None, Some(Kind::Again)) => {
                let Some(node) = self.nodes.get_mut(name) else { return };
                node.failures = node.failures.saturating_add(1);
                let wait = self.delays.after(node.failures, jitter(name, node.failures));
                self.request(name, wait);
            }
            // Ended, waiting for an input, or stopping: final until an input starts or stops.
            _ => {}
        }
    }

    /// Schedules a start after `wait`, if the required inputs run.
    fn request(&mut self, name: &Name, wait: Duration) {
        if self.stop.is_some() {
            return;
        }
        let missing = self.missing(name);
        let (now, settle) = (self.now, self.delays.settle);
        let Some(node) = self.nodes.get_mut(name) else { return };
        if let Some(missing) = missing {
            node.phase = Phase::Idle;
            // The last failure is more informative than the missing input.
            node.error.get_or_insert_with(|| format!("`{missing}` is not running"));
            return;
        }
        // The limit for changing inputs is not extended, however often they start and stop.
        let before = matches!(node.phase, Phase::Waiting { .. }).then_some(node.settles).flatten();
        let settles = now + wait + settle;
        node.settles = Some(before.map_or(settles, |before| before.min(settles)));
        node.phase = Phase::Waiting { until: now + wait };
    }

    fn missing(&self, name: &str) -> Option<Name> {
        let inputs = &self.nodes.get(name)?.declared.inputs;
        let runs = |input: &Name| {
            self.nodes.get(input).is_some_and(|n| matches!(n.phase, Phase::Running { .. }))
        };
        let required = inputs.iter().filter(|(_, need)| *need == Need::Required);
        required.map(|(input, _)| input).find(|input| !runs(input)).cloned()
    }

    /// Returns true if an input of the worker is about to start or stop: a start now would have to be repeated.
    fn is_unsettled(&self, node: &Node) -> bool {
        let inputs = node.declared.inputs.iter().filter(|(_, need)| *need != Need::Handle);
        inputs.filter_map(|(input, _)| self.nodes.get(input)).any(|input| self.is_moving(input))
    }

    /// Returns true if a worker is about to start or stop, or lacks only such a worker. There are no cycles, so the
    /// recursion ends.
    fn is_moving(&self, node: &Node) -> bool {
        match node.phase {
            Phase::Starting { .. } | Phase::Stopping { .. } => true,
            Phase::Waiting { .. } => node.failures == 0,
            Phase::Idle => {
                let missing = self.missing(&node.declared.name);
                let missing = missing.and_then(|missing| self.nodes.get(&missing));
                missing.is_some_and(|missing| self.is_moving(missing))
            }
            Phase::Running { .. } => false,
        }
    }

    fn bounce_dependents(&mut self, name: &str) {
        if self.stop.is_some() {
            // In a shutdown all workers end in their order, without restarts.
            return;
        }
        let dependents = self.nodes.iter().filter(|(_, node)| node.waits_for(name));
        let dependents: Vec<Name> = dependents.map(|(name, _)| Name::clone(name)).collect();
        for dependent in dependents {
            self.bounce(&dependent);
        }
    }

    fn bounce(&mut self, name: &Name) {
        let Some(node) = self.nodes.get(name) else { return };
        match node.phase {
            Phase::Idle | Phase::Waiting { .. } => self.request(name, self.delays.bounce),
            Phase::Starting { .. } | Phase::Running { .. } => self.cancel(name, AfterStop::Restart),
            // The restart is decided when the worker has ended.
            Phase::Stopping { .. } => {}
        }
    }

    /// Asks a worker to end.
    pub(super) fn cancel(&mut self, name: &Name, then: AfterStop) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(name) else { return };
        let Some(attempt) = node.attempt() else { return };
        if let Phase::Stopping { then: before, .. } = &mut node.phase {
            // `Forget` and `Rest` take precedence over a restart.
            if matches!(before, AfterStop::Restart | AfterStop::Retry) {
                *before = then;
            }
            return;
        }
        if let Phase::Running { since, .. } = node.phase {
            node.forgive(now.saturating_sub(since), &self.delays);
        }
        let (published, until) = (node.is_published(), now + node.declared.grace);
        node.phase = Phase::Stopping { attempt, published, until, cut_off: false, then };
        self.out.push(Action::Cancel(Name::clone(name), attempt));
    }

    /// Performs everything that is due.
    fn fire(&mut self) {
        self.cut_off_late();
        if self.stop.is_some() {
            self.stop_next();
            return;
        }
        self.cut_off_silent();
        let now = self.now;
        let due = |(_, node): &(&Name, &Node)| match node.phase {
            Phase::Waiting { until } if until <= now => {
                !self.is_unsettled(node) || node.settles.is_none_or(|settles| settles <= now)
            }
            _ => false,
        };
        let due: Vec<Name> =
            self.nodes.iter().filter(due).map(|(name, _)| Name::clone(name)).collect();
        for name in due {
            // A worker that was started just now may be an input of the next.
            let waits = self.nodes.get(&name).is_some_and(|node| {
                self.is_unsettled(node) && node.settles.is_some_and(|settles| settles > now)
            });
            if waits {
                continue;
            }
            if let Some(missing) = self.missing(&name) {
                // The input is ending; dependents are bounced when it has ended, and when it runs again.
                if let Some(node) = self.nodes.get_mut(&name) {
                    node.phase = Phase::Idle;
                    node.error = Some(format!("`{missing}` is not running"));
                }
                continue;
            }
            self.attempts += 1;
            let attempt = self.attempts;
            if let Some(node) = self.nodes.get_mut(&name) {
                node.phase = Phase::Starting { attempt };
                (node.settles, node.error) = (None, None);
                self.out.push(Action::Start(name, attempt));
            }
        }
    }

    /// Returns the time at which something is due without an event.
    pub(super) fn next_wakeup(&self) -> Option<Duration> {
        let of = |node: &Node| match node.phase {
            Phase::Waiting { until } if until > self.now => Some(until),
            Phase::Waiting { .. } => node.settles,
            Phase::Stopping { until, cut_off, .. } if !cut_off || self.stop.is_some() => {
                Some(until)
            }
            Phase::Running { .. } if self.stop.is_none() => {
                let limit = node.declared.silence?;
                Some(node.doubted.map_or(node.heard + limit, |at| at + limit / TIMES))
            }
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Running { .. }
            | Phase::Stopping { .. } => None,
        };
        let stop = self.stop.as_ref().and_then(Stop::wakeup);
        self.nodes.values().filter_map(of).chain(stop).min()
    }
}

/// Returns a jitter that is constant for a worker and count, so that decisions are reproducible, and differs between
/// workers.
fn jitter(name: &str, failures: u32) -> u8 {
    let seed =
        name.bytes().fold(failures, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    seed.wrapping_mul(2_654_435_769).to_be_bytes()[0]
}
