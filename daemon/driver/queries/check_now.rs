//! A look on request: what differs now, and so would be changed. Beside the engine, which hears nothing of it: so it is possible
//! at rest. What a resume will change is looked at in order, each step on files over what those before it write into the layer of a
//! plan; nothing of the host is changed.

use crate::driver::Driver;
use crate::driver::plan::overlaps::{Layer, PlannedStep, check_step};
use crate::driver::runs::guarded;
use crate::driver::status::{Differing, Inspection, Inspections};
use crate::driver::values::ReceiverInputs;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use steadfast_engine::{VertexId, VertexStatus};
use steadfast_resources::{CheckRequest, CheckResult, ExecutorKind, Failure, Host, Resource};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// So many are looked at for one question.
const MOST: usize = 500;
/// So many at once: the threads of those who ask are not the threads of the work.
const AT_ONCE: usize = 8;
/// What hangs is not waited for longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Nor are all together.
const ALL: Duration = Duration::from_mins(1);

/// Resources that go on resting when the general pause ends.
#[derive(Debug, Default)]
struct Resting {
    /// Those with a pause of their own that must be processed.
    paused: Vec<VertexId>,
    /// Those that must be processed and depend on them.
    waiting: Vec<VertexId>,
    /// The vertices of the engine that rest for that.
    blocked: HashSet<VertexId>,
}

impl Resting {
    fn has(&self, id: VertexId) -> bool {
        self.paused.contains(&id) || self.waiting.contains(&id)
    }
}

/// One look that is to be done.
struct CheckNow {
    name: String,
    resource: Arc<dyn Resource>,
    meal: Result<Option<ReceiverInputs>, Failure>,
    seat: ExecutorKind,
    /// The step in the layer of a plan, if there is one.
    step: Option<PlannedStep>,
}

impl Driver {
    /// Looks at these, or at all that must be processed, and answers when that is done.
    pub(in crate::driver) fn inspect(
        &mut self,
        names: &[String],
        to: oneshot::Sender<Result<Inspections, Vec<String>>>,
    ) {
        let mut resting = Resting::default();
        let ids: Vec<VertexId> = if names.is_empty() {
            resting = self.find_resting();
            let is_next = |id: &VertexId| !resting.has(*id) && self.must_be_processed(*id);
            self.table.ids().filter(is_next).collect()
        } else {
            let strangers = self.strangers(names);
            if !strangers.is_empty() {
                drop(to.send(Err(strangers)));
                return;
            }
            names.iter().filter_map(|name| self.table.number(name)).collect()
        };
        let asked = ids.len();
        let layer = names.is_empty().then(Layer::new).flatten();
        let at_once = if layer.is_some() { 1 } else { AT_ONCE };
        let mut ids: Vec<VertexId> = ids.into_iter().take(MOST).collect();
        if layer.is_some() {
            ids.sort_by_key(|id| self.engine.position(*id));
        }
        let jobs = ids.into_iter().filter_map(|id| self.job(id, layer.as_ref()));
        let jobs: Vec<CheckNow> = jobs.collect();
        let (paused, waiting) = (self.names(&resting.paused), self.names(&resting.waiting));
        let host = self.host.clone();
        tokio::spawn(async move {
            let looks = stream::iter(jobs).map(|job| look(job, host.clone()).boxed());
            let in_time = tokio::time::sleep(ALL);
            let of: Vec<Inspection> = looks.buffered(at_once).take_until(in_time).collect().await;
            let left = asked.saturating_sub(of.len());
            let of = of.into_iter().filter(|one| one.differs() || one.error.is_some()).collect();
            // Who asked may have gone meanwhile.
            drop(to.send(Ok(Inspections { items: of, skipped: left, paused, waiting })));
        });
    }

    /// The resources that no end of the general pause lets go on: those with a pause of their own, and what depends on them.
    fn find_resting(&self) -> Resting {
        let mut resting = Resting::default();
        let paused = self.table.ids().filter(|id| self.is_parked(*id));
        resting.paused = paused.filter(|id| self.must_be_processed(*id)).collect();
        // One that only may have been changed holds nothing back.
        let holds = |id: &&VertexId| self.current_status(**id) != Some(VertexStatus::Settled);
        let holding = resting.paused.iter().filter(holds);
        let mut next: Vec<VertexId> = holding.map(|id| self.table.groups().leader(*id)).collect();
        resting.blocked.extend(&next);
        while let Some(id) = next.pop() {
            let (_, dependents) = self.engine.neighbours(id);
            next.extend(dependents.into_iter().filter(|id| resting.blocked.insert(*id)));
        }
        let waits = |id: &VertexId| {
            resting.blocked.contains(&self.table.groups().leader(*id))
                && !resting.paused.contains(id)
                && self.must_be_processed(*id)
        };
        resting.waiting = self.table.ids().filter(waits).collect();
        resting
    }

    fn must_be_processed(&self, id: VertexId) -> bool {
        match self.current_status(id) {
            None | Some(VertexStatus::Running(..) | VertexStatus::Stuck(..)) => false,
            Some(VertexStatus::Settled) => {
                self.engine.is_to_be_looked_at(self.table.groups().leader(id))
            }
            Some(VertexStatus::Contended { next, .. }) => next.is_some(),
            Some(_) => true,
        }
    }

    /// Plans a resource, as a step in the layer of a plan, for the time when the driver goes on.
    fn step_on_resume(&self, id: VertexId, layer: &Layer) -> Option<PlannedStep> {
        let entry = self.table.get(id)?;
        let is_step = entry.resource.uses_only_files() && !entry.meta.noop;
        if !is_step || !self.engine.is_allowed(id) {
            return None;
        }
        let permit = self.key.mint(CancellationToken::new());
        Some(PlannedStep { layer: layer.clone(), id, permit })
    }

    fn job(&self, id: VertexId, layer: Option<&Layer>) -> Option<CheckNow> {
        let entry = self.table.get(id)?;
        let meal = entry.recipe.as_ref().map(|r| self.values.meal(&entry.identity, r)).transpose();
        let kept = self.values.stored_value(&entry.identity, entry.definition);
        let resource = kept.and_then(|kept| entry.resource.with_sent(kept));
        Some(CheckNow {
            name: entry.identity.to_string(),
            resource: resource.unwrap_or_else(|| Arc::clone(&entry.resource)),
            meal,
            seat: entry.resource.nature().seat,
            step: layer.and_then(|layer| self.step_on_resume(id, layer)),
        })
    }
}

async fn look(job: CheckNow, host: Host) -> Inspection {
    let CheckNow { name, resource, meal, seat, step } = job;
    // What the host of the daemon notes of files that it has changed must not come from a layer.
    let host = if step.is_some() { Host::default() } else { host };
    let cancel = CancellationToken::new();
    let _when_late = cancel.clone().drop_guard();
    let meal = match meal {
        Ok(meal) => meal,
        Err(trouble) => return told(name, CheckResult::Unknown(trouble)),
    };
    let work = async move {
        let made = OnceLock::new();
        let ask = CheckRequest { cancel, ..CheckRequest::default() };
        guarded(Box::pin(check_step(step, &host, (resource, meal, &made), ask))).await
    };
    let done = match seat {
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
        CheckResult::Unknown(trouble) => found.error = Some(trouble.to_string()),
    }
    found
}

impl Inspection {
    fn differs(&self) -> bool {
        !self.differences.is_empty()
    }
}
