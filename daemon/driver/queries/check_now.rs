//! Checks on request: reports present differences without a change. The checks run beside the engine, so they are
//! possible during a pause. For a resume, resources are checked in order, each step on files in the overlay of a plan,
//! after the steps before it.

use crate::api::{Differing, Inspection, Inspections};
use crate::driver::Driver;
use crate::driver::plan::overlaps::{Layer, PlannedStep, check_step};
use crate::driver::runs::guarded;
use crate::driver::values::ReceiverInputs;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use steadfast_engine::{VertexId, VertexStatus};
use steadfast_resources::{CheckRequest, CheckResult, ExecutorKind, Failure, Host, Resource};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The maximum number of checks per query.
const MOST: usize = 500;
/// The maximum number of checks at the same time; they use other threads than runs.
const AT_ONCE: usize = 8;
/// The time limit of one check.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time limit of all checks of a query.
const ALL: Duration = Duration::from_mins(1);

/// Resources that stay at rest when the pause of the daemon ends.
#[derive(Debug, Default)]
struct Resting {
    /// Resources with a check due that are paused on their own.
    paused: Vec<VertexId>,
    /// Resources with a check due that depend on a paused one.
    waiting: Vec<VertexId>,
    /// Engine vertices that stay at rest for this reason.
    blocked: HashSet<VertexId>,
}

impl Resting {
    fn has(&self, id: VertexId) -> bool {
        self.paused.contains(&id) || self.waiting.contains(&id)
    }
}

/// One check to make.
struct CheckNow {
    name: String,
    resource: Arc<dyn Resource>,
    inputs: Result<Option<ReceiverInputs>, Failure>,
    executor: ExecutorKind,
    /// The step in the overlay of a plan, if there is one.
    step: Option<PlannedStep>,
    /// True if no apply may follow.
    held: bool,
}

impl Driver {
    /// Checks these resources, or all that are due, and replies when the checks are done.
    pub(in crate::driver) fn inspect(
        &mut self,
        (names, resume): (&[String], bool),
        to: oneshot::Sender<Result<Inspections, Vec<String>>>,
    ) {
        let mut resting = Resting::default();
        let ids: Vec<VertexId> = if names.is_empty() {
            resting = self.find_resting();
            let is_next = |id: &VertexId| !resting.has(*id) && self.must_be_processed(*id);
            self.graph.ids().filter(is_next).collect()
        } else {
            let strangers = self.strangers(names);
            if !strangers.is_empty() {
                drop(to.send(Err(strangers)));
                return;
            }
            names.iter().filter_map(|name| self.graph.number(name)).collect()
        };
        let asked = ids.len();
        let layer = (resume || names.is_empty()).then(Layer::new).flatten();
        let at_once = if layer.is_some() { 1 } else { AT_ONCE };
        let mut ids: Vec<VertexId> = ids.into_iter().take(MOST).collect();
        if layer.is_some() {
            ids.sort_by_key(|id| self.engine.position(*id));
        }
        let jobs = ids.into_iter().filter_map(|id| self.job(id, layer.as_ref()));
        let jobs: Vec<CheckNow> = jobs.collect();
        let (paused, waiting) = (self.names(&resting.paused), self.names(&resting.waiting));
        let host = self.runtime.host.clone();
        tokio::spawn(async move {
            let looks = stream::iter(jobs).map(|job| look(job, host.clone()).boxed());
            let in_time = tokio::time::sleep(ALL);
            let of: Vec<Inspection> = looks.buffered(at_once).take_until(in_time).collect().await;
            let left = asked.saturating_sub(of.len());
            let of = of.into_iter().filter(|one| one.differs() || one.error.is_some()).collect();
            // The client may have gone.
            drop(to.send(Ok(Inspections { items: of, skipped: left, paused, waiting })));
        });
    }

    /// Returns the resources that the end of the daemon's pause does not release: those paused on their own, and their
    /// dependents.
    fn find_resting(&self) -> Resting {
        let mut resting = Resting::default();
        let paused = self.graph.ids().filter(|id| self.is_resource_paused(*id));
        resting.paused = paused.filter(|id| self.must_be_processed(*id)).collect();
        // A settled resource with a check due blocks nothing.
        let holds = |id: &&VertexId| self.current_status(**id) != Some(VertexStatus::Settled);
        let holding = resting.paused.iter().filter(holds);
        let mut next: Vec<VertexId> = holding.map(|id| self.graph.groups().leader(*id)).collect();
        resting.blocked.extend(&next);
        while let Some(id) = next.pop() {
            let (_, dependents) = self.engine.neighbours(id);
            next.extend(dependents.into_iter().filter(|id| resting.blocked.insert(*id)));
        }
        let waits = |id: &VertexId| {
            resting.blocked.contains(&self.graph.groups().leader(*id))
                && !resting.paused.contains(id)
                && self.must_be_processed(*id)
        };
        resting.waiting = self.graph.ids().filter(waits).collect();
        resting
    }

    fn must_be_processed(&self, id: VertexId) -> bool {
        match self.current_status(id) {
            None | Some(VertexStatus::Running(..) | VertexStatus::Stuck(..)) => false,
            Some(VertexStatus::Settled) => {
                self.engine.is_to_be_looked_at(self.graph.groups().leader(id))
            }
            Some(VertexStatus::Contended { next, .. }) => next.is_some(),
            Some(_) => true,
        }
    }

    /// Returns the step of a resource in the overlay; `None` if the resource is checked on the host.
    fn step_on_resume(&self, id: VertexId, layer: &Layer) -> Option<PlannedStep> {
        let entry = self.graph.get(id)?;
        // A footprint may examine paths, so it is computed last.
        let is_step = !entry.meta.noop && self.engine.is_allowed(id);
        if !is_step || !entry.resource.footprint().uses_only_files {
            return None;
        }
        let permit = self.permission.mint_unrecorded(CancellationToken::new());
        Some(PlannedStep { layer: layer.clone(), id, permit })
    }

    fn job(&self, id: VertexId, layer: Option<&Layer>) -> Option<CheckNow> {
        let entry = self.graph.get(id)?;
        let inputs = entry
            .recipe
            .as_ref()
            .map(|r| self.values.receiver_inputs(&entry.identity, r))
            .transpose();
        let kept = self.values.stored_value(&entry.identity, entry.definition);
        let resource = kept.and_then(|kept| entry.resource.with_sent(kept));
        Some(CheckNow {
            name: entry.identity.to_string(),
            resource: resource.unwrap_or_else(|| Arc::clone(&entry.resource)),
            inputs,
            executor: entry.resource.traits().executor,
            step: layer.and_then(|layer| self.step_on_resume(id, layer)),
            held: entry.meta.noop || !self.engine.is_allowed(id),
        })
    }
}

async fn look(job: CheckNow, host: Host) -> Inspection {
    let held = job.held;
    Inspection { held, ..check_now(job, host).await }
}

async fn check_now(job: CheckNow, host: Host) -> Inspection {
    let CheckNow { name, resource, inputs, executor, step, held: _ } = job;
    // The daemon's host records facts about changed files, and must not take them from an overlay.
    let host = if step.is_some() { Host::default() } else { host };
    let cancel = CancellationToken::new();
    let _when_late = cancel.clone().drop_guard();
    let inputs = match inputs {
        Ok(inputs) => inputs,
        Err(failure) => return told(name, CheckResult::Unknown(failure)),
    };
    let work = async move {
        let made = OnceLock::new();
        let ask = CheckRequest { cancel, ..CheckRequest::default() };
        guarded(Box::pin(check_step(step, &host, (resource, inputs, &made), ask))).await
    };
    let done = match executor {
        ExecutorKind::Command => tokio::time::timeout(PATIENCE, work).await.ok(),
        ExecutorKind::Thread => {
            let handle = tokio::runtime::Handle::current();
            let thread = tokio::task::spawn_blocking(move || handle.block_on(work));
            let ended = tokio::time::timeout(PATIENCE, thread).await.ok();
            ended.map(|ended| ended.unwrap_or_else(|why| Err(Failure::new(why.to_string()))))
        }
    };
    let late = || Err(Failure::new(format!("no answer within {} s", PATIENCE.as_secs())));
    told(name, done.unwrap_or_else(late).unwrap_or_else(CheckResult::Unknown))
}

fn told(resource: String, verdict: CheckResult) -> Inspection {
    let mut found = Inspection { resource, ..Inspection::default() };
    match verdict {
        CheckResult::Same => {}
        CheckResult::Differs(change) => {
            found.destructive = change.destructive;
            found.differences = change.differences.iter().map(Differing::from).collect();
        }
        CheckResult::Unknown(failure) => found.error = Some(failure.to_string()),
    }
    found
}

impl Inspection {
    fn differs(&self) -> bool {
        !self.differences.is_empty()
    }
}
