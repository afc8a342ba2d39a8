//! Plans (`plan`, `apply --plan`): nothing is applied, and findings may become uncertain at any time (E-11).

use crate::environment::World;
use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::{Configuration, Feature, configurations, graphs};
use crate::model::exploration::explorer::State;
use crate::model::exploration::sights::Sights;
use crate::model::{LOAD, explore_in_ci};
use crate::step::Step;
use steadfast_engine::{HeldReason, VertexId, VertexStatus};

const SETTLED: &str = "what was found right is in doubt";
const CHANGING: &str = "what would be changed is in doubt";
const FAILED: &str = "what could not be checked is in doubt";
const IN_RUN: &str = "a doubt comes while the vertex is checked, or waits for that";
const TWICE: &str = "what is unknown is doubted again";
const ASKED: &str = "whom it would refresh is asked again";
const FREED: &str = "who waited for what could not be checked is asked";
const PERHAPS: &str = "who is refreshed by what nobody knows is unknown until that";

/// Offers the events that may happen now: a finding becomes uncertain because of another vertex, or of itself if there
/// is only one.
pub(super) fn offer(state: &State, actions: &mut Vec<Step>) {
    if state.left.doubts_left == 0 {
        return;
    }
    let order = &state.world.oracle.books.order;
    for vertex in order.iter().copied() {
        let others = order.iter().filter(|until| **until != vertex || order.len() == 1);
        actions.extend(others.map(|until| Step::Doubt { vertex, until: *until }));
    }
}

/// Adds the situations that this step shows.
pub(super) fn see(before: &World, step: &Step, after: &World, seen: &mut Sights) {
    let Step::Doubt { vertex, .. } = *step else {
        return see_perhaps(before, step, after, seen);
    };
    let was = before.engine.vertex_status(vertex);
    let unknown = matches!(was, Some(VertexStatus::Held(HeldReason::UnknownUntil(_))));
    let starts =
        |id: &VertexId| before.in_progress(*id).is_none() && after.in_progress(*id).is_some();
    let (_, below) = after.engine.neighbours(vertex);
    let waited = |id: &VertexId| {
        matches!(before.engine.vertex_status(*id), Some(VertexStatus::WaitingFor(_)))
    };
    let all = [
        (was == Some(VertexStatus::Settled), SETTLED),
        (was == Some(VertexStatus::Held(HeldReason::WouldChange)), CHANGING),
        (was == Some(VertexStatus::Failed), FAILED),
        (matches!(was, Some(VertexStatus::Running(..) | VertexStatus::WaitingFor(_))), IN_RUN),
        (unknown, TWICE),
        (below.iter().any(|id| starts(id) && !waited(id)), ASKED),
        (
            was == Some(VertexStatus::Failed) && below.iter().any(|id| starts(id) && waited(id)),
            FREED,
        ),
    ];
    seen.extend(all.into_iter().filter_map(|(was, what)| was.then_some(what)));
}

fn see_perhaps(before: &World, step: &Step, after: &World, seen: &mut Sights) {
    let Step::Checked(id, steadfast_engine::RunVerdict::Differs) = *step else { return };
    let refreshed = before.in_progress(id).is_some_and(|(_, run)| run.start.refresh);
    let unknown = matches!(
        after.engine.vertex_status(id),
        Some(VertexStatus::Held(HeldReason::UnknownUntil(_)))
    );
    if refreshed && unknown {
        seen.insert(PERHAPS);
    }
}

/// Returns a plan for each of these graphs and sets of features.
fn plans(count: u32, budget: Budget, sets: &[&[Feature]]) -> Vec<Configuration> {
    let with = |set: &&[Feature]| [&[Feature::Plan], *set].concat();
    let sets: Vec<Vec<Feature>> = sets.iter().map(with).collect();
    let all = graphs(count);
    let each = |graph| sets.iter().flat_map(move |set| configurations(graph, set, budget));
    all.iter().flat_map(each).collect()
}

/// E-11: an uncertain finding is unknown, or checked again, and nothing is begun.
#[test]
fn model_plans() {
    use Feature::{Fixed, Limit, Notify, Once, Retry, Semaphore, Slot, Timeout, Timer, Window};
    let features: [&[Feature]; 14] = [
        &[],
        &[Notify],
        &[Semaphore(1)],
        &[Limit],
        &[Retry],
        &[Once],
        &[Timer],
        &[Timeout],
        &[Fixed],
        &[Slot],
        &[Window],
        &[Notify, Once],
        &[Notify, Timer],
        &[Notify, Window],
    ];
    let mut all = plans(1, LOAD, &features);
    all.extend(plans(2, LOAD, &features));
    let calm = Budget { turns: 0, pauses: 0, stops: 0, ..LOAD };
    all.extend(plans(3, calm, &[&[], &[Notify], &[Notify, Timer]]));
    let wanted = [SETTLED, CHANGING, FAILED, IN_RUN, TWICE, ASKED, FREED, PERHAPS];
    explore_in_ci("plans of 1 to 3 vertices, what they find is doubted", all, &wanted);
}
