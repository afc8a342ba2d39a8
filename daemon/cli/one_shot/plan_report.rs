//! The findings of a pass without changes, step by step, for `plan` and `drift`.

use super::plan_dependents::PlannedInputs;
use super::plan_unknowns::Conditions;
use crate::api::{Action, FailedCheck, PlanReport, StayingObject, Step};
use crate::cli::args::Graph;
use crate::cli::exit::Exit;
use crate::cli::output::plain;
use crate::cli::{load_graph, one_shot, output};
use crate::config::LoadedGraph;
use crate::driver::{DriverDeps, DriverExit, Observer as _};
use crate::plan::{Plan, StepCollector, Unusable};
use crate::store::StoredState;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use steadfast_engine::{HeldReason, VertexStatus};
use steadfast_resources::{Host, KindSet, MintKey};
use tokio::runtime::Runtime;

/// Checks a graph against the host and changes nothing; `listen` creates the collector from the names of `noop`
/// resources.
///
/// # Errors
/// The driver rejects the graph: the reason is reported, and the exit code of `apply` for that is returned. Or the file
/// of facts cannot be used.
pub(in crate::cli) fn find(
    (loaded, from): (LoadedGraph, &Graph),
    recalled: StoredState,
    (key, runtime): (Arc<MintKey>, &Runtime),
    listen: fn(BTreeSet<Arc<str>>) -> StepCollector,
) -> Result<Found, Exit> {
    let graph = loaded.name.clone();
    let conditions = Conditions::of(&loaded);
    let inputs = PlannedInputs::new(&loaded, load_graph::options(from)?);
    let names: Vec<String> = loaded.vertices.iter().map(|v| v.identity.to_string()).collect();
    // A map by name: a graph may be large.
    let order: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let (loaded, noop) = loaded.into_plan();
    let steps = listen(noop);
    let is_plan = steps.wants_foresight();
    let observer = Box::new(steps.clone());
    let (host, journal, history) = (Host::default(), None, None);
    let kinds = KindSet::of_this_build();
    let parts =
        DriverDeps { host, key, journal, recalled, history, read_only: None, kinds, observer };
    let finished = runtime.block_on(one_shot::drive(parts, (loaded, from), None, None));
    if let Some(reason) = &finished.rejection {
        return Err(reject_graph(reason));
    }
    let mut found = Found::new(graph, &order, &steps, finished);
    found.conditions = conditions.with_steps(&found.steps);
    if is_plan {
        let dependents = inputs.find_dependents(found.conditions.changed_facts());
        found.conditions.mark_dependents(&dependents);
        found.mark_dependents(&dependents, &order);
    }
    Ok(found)
}

/// Reports that the driver rejects the graph; returns the exit code for it.
pub(in crate::cli) fn reject_graph(reason: &str) -> Exit {
    output::error(reason, None);
    Exit::Graph
}

/// Reports the reason why a plan is not applied, one difference per line.
pub(in crate::cli) fn refuse(reason: &Unusable) {
    output::error(
        reason.to_string(),
        Some("nothing was changed; plan again and review the differences"),
    );
    if let Unusable::Moved(moved) = reason {
        for line in moved.iter().skip(1).take(SHOWN) {
            output::eprint(format!("  {}", plain(line)));
        }
        let more = moved.len().saturating_sub(SHOWN + 1);
        if more > 0 {
            output::eprint(format!("  and {more} more"));
        }
    }
}

/// The number of further differences that are printed.
const SHOWN: usize = 20;

/// The findings.
pub(in crate::cli) struct Found {
    pub(super) graph: String,
    pub(super) total: usize,
    pub(super) steps: Vec<Step>,
    /// The resources that could not be checked.
    pub(super) failed: Vec<FailedCheck>,
    /// The undeclared resources whose objects stay, each with the reason.
    pub(super) left: Vec<(String, String)>,
    /// The inactive resources, and the facts that are unknown until a step.
    pub(super) conditions: Conditions,
}

impl Found {
    /// Collects the findings in the order of the graph, with removals last.
    fn new(
        graph: String,
        order: &HashMap<&str, usize>,
        steps: &StepCollector,
        finished: DriverExit,
    ) -> Self {
        let total = finished.final_statuses.len();
        let failed = finished
            .final_statuses
            .into_iter()
            .filter_map(|stand| {
                let (reason, hint) = match stand.status {
                    VertexStatus::Held(HeldReason::Operator) => {
                        ("waiting for the operator".to_owned(), None)
                    }
                    VertexStatus::Settled | VertexStatus::Held(_) => return None,
                    _ if !stand.waits_for.is_empty() => {
                        (format!("waiting for {}", stand.waits_for.join(", ")), None)
                    }
                    _ => stand.failure.map(|it| (it.what, it.hint)).unwrap_or_default(),
                };
                Some(FailedCheck { resource: stand.identity, reason, hint })
            })
            .collect();
        let left = steps.take_left();
        let mut steps = steps.take();
        for step in &mut steps {
            step.note_leaving(!order.contains_key(step.resource.as_str()));
        }
        let mut found =
            Self { graph, total, steps, failed, left, conditions: Conditions::default() };
        found.sort_steps(order);
        found
    }

    /// Sorts the steps in the order of the graph, with removals last.
    pub(super) fn sort_steps(&mut self, order: &HashMap<&str, usize>) {
        let at = |step: &Step| order.get(step.resource.as_str()).copied();
        self.steps.sort_by_key(|step| (step.is_removal(), step.pending_removal, at(step)));
    }

    /// Returns true if a resource could not be checked.
    pub(in crate::cli) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Returns true if a resource differs.
    pub(in crate::cli) fn differs(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Checks that the findings are those of a plan.
    pub(in crate::cli) fn is_still(&self, plan: &Plan) -> Result<(), Unusable> {
        if let Some(FailedCheck { resource, reason, .. }) = self.failed.first() {
            return Err(Unusable::Moved(vec![format!("{resource}: the check failed: {reason}")]));
        }
        plan.is_still(&self.steps)
    }

    /// Returns the steps, for a file.
    pub(in crate::cli) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    pub(super) fn count(&self, actions: &[Action]) -> usize {
        self.steps.iter().filter(|step| actions.contains(&step.action)).count()
    }

    /// Returns the report as data.
    pub(in crate::cli) fn report(&self) -> PlanReport {
        let stays = self.left.iter();
        let stays = stays.map(|(resource, reason)| StayingObject {
            resource: resource.clone(),
            reason: reason.clone(),
        });
        PlanReport {
            graph: self.graph.clone(),
            total: self.total,
            create: self.creations(),
            change: self.count(&[Action::Change, Action::Refresh]),
            remove: self.count(&[Action::Remove]),
            unknown: self.count(&[Action::Unknown]),
            held: self.count(&[Action::Held]),
            failed: self.failed.clone(),
            stays: stays.collect(),
            resources: self.steps.clone(),
            inactive: self.conditions.inactive_status(),
            unknown_facts: self.conditions.unknown_facts(),
        }
    }
}
