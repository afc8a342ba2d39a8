//! The comparison of a plan with the apply that follows: lists every difference between the two.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use steadfast::api::Differing;
use steadfast::api::{Action, Step};
use steadfast::config::LoadedGraph;
use steadfast::driver::{DriverExit, Notification, Observer};
use steadfast_engine::VertexStatus;

/// An observer that records the changes and the failures of one apply, by resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done(pub(crate) Arc<Mutex<Deeds>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Deeds {
    pub(crate) changed: BTreeMap<String, Vec<Vec<Differing>>>,
    pub(crate) failures: BTreeMap<String, String>,
}

impl Observer for Done {
    fn hear(&mut self, news: &Notification<'_>) {
        let mut deeds = self.0.lock().expect("one thread");
        match news {
            Notification::Changed { identity, differences, .. } => {
                let differences = differences.iter().map(Differing::from).collect();
                deeds.changed.entry((*identity).to_owned()).or_default().push(differences);
            }
            Notification::Failed { identity, failure, .. } => {
                let what = failure.map(|failure| failure.what.clone()).unwrap_or_default();
                deeds.failures.insert((*identity).to_owned(), what);
            }
            _ => {}
        }
    }
}

/// Returns the resources with an unknown result: those that failed, and those after a failed one.
pub(crate) fn untold(finished: &DriverExit) -> BTreeSet<&str> {
    let ill = finished
        .final_statuses
        .iter()
        .filter(|stand| !matches!(stand.status, VertexStatus::Settled | VertexStatus::Held(_)));
    ill.map(|stand| stand.identity.as_str()).collect()
}

/// Returns the resources that an apply could not reach, and all their descendants.
pub(crate) fn not_done<'l>(loaded: &'l LoadedGraph, applied: &'l DriverExit) -> BTreeSet<&'l str> {
    let untold = untold(applied);
    let below = with_all_below(loaded, &untold);
    // A removal is no vertex of the graph, so `below` does not contain it.
    untold.into_iter().chain(below).collect()
}

/// Returns these resources and all their descendants.
pub(crate) fn with_all_below<'l>(
    loaded: &'l LoadedGraph,
    names: &BTreeSet<&str>,
) -> BTreeSet<&'l str> {
    let vertices = loaded.vertices.iter().enumerate();
    let mut found: BTreeSet<usize> =
        vertices.filter(|(_, v)| names.contains(&*v.identity)).map(|(at, _)| at).collect();
    let mut left: Vec<usize> = found.iter().copied().collect();
    while let Some(at) = left.pop() {
        for edge in loaded.edges.iter().filter(|edge| edge.from == at) {
            if found.insert(edge.to) {
                left.push(edge.to);
            }
        }
    }
    found.into_iter().map(|at| &*loaded.vertices[at].identity).collect()
}

/// Lists the differences between the planned and the applied changes of a host that nobody else changed in between.
pub(crate) fn unequal(
    loaded: &LoadedGraph,
    (steps, planned): (&[Step], &DriverExit),
    (deeds, applied): (&Deeds, &DriverExit),
) -> Vec<String> {
    let mut wrong = Vec::new();
    let not_planned = untold(planned);
    let not_done = not_done(loaded, applied);
    let by_name: BTreeMap<&str, &Step> =
        steps.iter().map(|step| (step.resource.as_str(), step)).collect();
    for (name, runs) in &deeds.changed {
        let same = |step: &Step| runs.len() == 1 && step.differences == runs[0];
        match by_name.get(name.as_str()) {
            None if not_planned.contains(name.as_str()) => {}
            None => wrong.push(format!("{name} was changed, and not planned: {runs:?}")),
            Some(step) => match step.action {
                Action::Unknown => {}
                // A refresh of a converged resource changes nothing, so it is not reported.
                Action::Refresh => wrong.push(format!("{name}: planned a refresh, done {runs:?}")),
                Action::Held => wrong.push(format!("{name} was to be held, and changed: {runs:?}")),
                Action::Change | Action::Remove if same(step) => {}
                Action::Change | Action::Remove => {
                    wrong.push(format!("{name}: planned {:?}, done {runs:?}", step.differences));
                }
            },
        }
    }
    for step in steps.iter().filter(|s| matches!(s.action, Action::Change | Action::Remove)) {
        let name = step.resource.as_str();
        if !deeds.changed.contains_key(name) && !not_done.contains(name) {
            wrong.push(format!("{name} was planned, and not done: {:?}", step.differences));
        }
    }
    wrong
}

/// Lists the applied changes that were not planned, for a host that was changed between plan and apply.
pub(crate) fn unplanned(steps: &[Step], deeds: &Deeds) -> Vec<String> {
    let by_name: BTreeMap<&str, &Step> =
        steps.iter().map(|step| (step.resource.as_str(), step)).collect();
    let mut wrong = Vec::new();
    for (name, runs) in &deeds.changed {
        let known = by_name.get(name.as_str());
        let is_planned = |one: &Differing| match known {
            None => false,
            Some(step) => match step.action {
                Action::Unknown => true,
                // A plan cannot predict the outcome of a guard of a command, only the state of a file.
                Action::Refresh => !name.starts_with("file["),
                Action::Held => false,
                Action::Change | Action::Remove => step.differences.contains(one),
            },
        };
        if let Some(one) = runs.iter().flatten().find(|one| !is_planned(one)) {
            wrong.push(format!("{name}: done, and not planned: {one:?} of {known:?}"));
        }
    }
    wrong
}

/// Lists the planned refreshes that did not happen and the unplanned ones that did. The parameters are the refreshes
/// owed before and after the apply, and the resources that the plan or the apply could not reach.
pub(crate) fn misplanned_refreshes(
    steps: &[Step],
    (before, after): (&BTreeSet<String>, &BTreeSet<String>),
    (not_planned, not_done): (&BTreeSet<&str>, &BTreeSet<&str>),
) -> Vec<String> {
    let mut wrong = Vec::new();
    for step in steps.iter().filter(|step| step.action == Action::Refresh) {
        let name = &step.resource;
        if !before.contains(name) {
            wrong.push(format!("{name}: a refresh was planned, and none is owed"));
        }
        if after.contains(name) && !not_done.contains(name.as_str()) {
            wrong.push(format!("{name}: a refresh was planned, and has not happened"));
        }
    }
    let is_planned = |name: &str| {
        let step = steps.iter().find(|step| step.resource == name);
        step.is_some_and(|step| step.action != Action::Held)
    };
    for name in before.difference(after) {
        if !is_planned(name) && !not_planned.contains(name.as_str()) {
            wrong.push(format!("{name}: a refresh was paid, and none was planned"));
        }
    }
    wrong
}
