//! Runs whose inputs differ from those of the last good run (a rotated secret): their changes are intentional, and
//! nothing else differs (E-20, docs/decisions/0012). A second engine verifies that the rest of the schedule is equal
//! (`remade_equivalence.rs`).

use crate::environment::{Station, World};
use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::{
    Configuration, Feature, HOLDING, configurations, graphs,
};
use crate::model::exploration::explorer::State;
use crate::model::exploration::sights::{self, Sights};
use crate::model::{EVENT, SETTLED, explore_in_ci};
use crate::step::Step;
use steadfast_engine::{Class, Outcome, RunVerdict, VertexId};

pub(super) const REMADE: &str =
    "what is made of something else is changed, and that is intentional";
const LOOKED: &str = "a look is made of something else";
const HELD: &str = "what is made of something else is held, in noop or by its window";
const FAILED: &str = "a run fails that is made of something else";
const CUT_OFF: &str = "a run is cut off that is made of something else";
pub(super) const REFRESHED: &str =
    "who is refreshed by what is made of something else is intentional, too";
const LATER: &str = "a later run of it is drift";
const CONTENDED: &str = "what is contended is changed for what it is made of";
const MADE_A_CONTENTION: &str =
    "the repair that makes a contention is of what is made of something else";
const MADE_THE_SUSPENSION: &str =
    "the repair that brings the repair limit is of what is made of something else";
const REPAIRS_SUSPENDED: &str = "what is made of something else waits for the repair limit";

/// The situations to be seen wherever the event happens to single vertices with each feature.
pub(super) const SEEN: [&str; 4] = [REMADE, LOOKED, HELD, FAILED];

/// Offers the events that may happen now: once per run, before the check ends.
pub(super) fn offer(state: &State, actions: &mut Vec<Step>) {
    let world = &state.world;
    if state.left.remakes == 0 {
        return;
    }
    let checks = world.runs.values().filter(|run| run.station == Station::Check);
    let ids = checks.map(|run| run.start.vertex).filter(|id| !is_remade(world, *id));
    actions.extend(ids.map(Step::Remade));
}

fn is_remade(world: &World, id: VertexId) -> bool {
    let run = world.oracle.books.vertices.get(&id).and_then(|vertex| vertex.running.as_ref());
    run.is_some_and(|run| run.remade)
}

/// Adds the situations that this step shows. `spent`: a run of this history had changed inputs.
pub(super) fn see(before: &World, step: &Step, after: &World, spent: bool, seen: &mut Sights) {
    if !spent {
        return;
    }
    let all = match *step {
        Step::Remade(id) => {
            vec![(before.in_progress(id).is_some_and(|(_, run)| run.start.look), LOOKED)]
        }
        Step::Checked(id, RunVerdict::Differs) => found(before, id, after),
        Step::Ended(id, outcome) if is_remade(before, id) => {
            let is_contended = |world: &World| world.engine.is_contended(id);
            let is_suspended = |world: &World| world.engine.repairs_suspended_until().is_some();
            let changed = outcome == Outcome::Changed;
            vec![
                (changed && !is_contended(before) && is_contended(after), MADE_A_CONTENTION),
                (changed && !is_suspended(before) && is_suspended(after), MADE_THE_SUSPENSION),
                (matches!(outcome, Outcome::Failed { .. }), FAILED),
                (outcome == Outcome::Interrupted, CUT_OFF),
            ]
        }
        _ => Vec::new(),
    };
    seen.extend(all.into_iter().filter_map(|(was, what)| was.then_some(what)));
}

fn found(before: &World, id: VertexId, after: &World) -> Vec<(bool, &'static str)> {
    let Some(vertex) = before.oracle.books.vertices.get(&id) else { return Vec::new() };
    let Some(run) = vertex.running.as_ref().filter(|run| !run.look) else { return Vec::new() };
    let was_right = vertex.done && !run.asked;
    let begins = after.oracle.books.vertices.get(&id).and_then(|it| it.running.as_ref()?.class);
    let is = |class: Class| begins == Some(class);
    if !run.remade {
        return vec![
            (after.twin.follows, REFRESHED),
            (was_right && is(Class::Corrective) && before.oracle.books.order.len() == 1, LATER),
        ];
    }
    let is_suspended =
        before.engine.repairs_suspended_until().is_some_and(|until| until > before.now);
    let is_held =
        matches!(after.engine.vertex_status(id), Some(steadfast_engine::VertexStatus::Held(_)));
    vec![
        (was_right && is(Class::Intentional), REMADE),
        (before.engine.is_contended(id) && begins.is_some(), CONTENDED),
        (is_suspended && begins.is_none() && !is_held, REPAIRS_SUSPENDED),
        (is_held, HELD),
    ]
}

/// One event, one failure, and one turn.
const ONE: Budget = Budget { events: 1, total_events: 1, ..SETTLED };
/// One event and one turn without pauses and stops.
const CALM: Budget = Budget { turns: 1, ..EVENT };
/// Two events, and all outcomes.
const TWO: Budget = Budget { events: 2, total_events: 2, looks: 1, thorough: true, ..SETTLED };
/// Three events.
const OFTEN: Budget = Budget { events: 3, total_events: 3, ..EVENT };
/// No failures.
const WELL: Budget = Budget { failures: 0, ..CALM };

/// Returns these features together with `Feature::Remade`, on each graph of `count` vertices.
fn with(sets: &[&[Feature]], count: u32, budget: Budget) -> Vec<Configuration> {
    let sets = sets.iter().map(|set| [&[Feature::Remade], *set].concat()).collect::<Vec<_>>();
    let all = graphs(count);
    let each = |graph| sets.iter().flat_map(move |set| configurations(graph, set, budget));
    all.iter().flat_map(each).collect()
}

/// Adds a second run with changed inputs to each configuration.
fn again(mut all: Vec<Configuration>) -> Vec<Configuration> {
    for configuration in &mut all {
        configuration.budget.remakes = 2;
    }
    all
}

/// E-20: in contentions, under the repair limit, and with all other delays; alone also by a look, and twice.
#[test]
fn model_what_is_made_of_something_else() {
    let holding: Vec<&[Feature]> = HOLDING.iter().map(std::slice::from_ref).collect();
    let (contentions, repair_limit) = (&holding[..3], &holding[3..4]);
    let mut all = again(with(&[&[]], 1, TWO));
    all.extend(again(with(&holding[..4], 1, OFTEN)));
    all.extend(with(&holding, 1, ONE));
    all.extend(with(&[contentions, repair_limit].concat(), 2, WELL));
    let wanted = [
        REMADE,
        LOOKED,
        HELD,
        FAILED,
        CUT_OFF,
        LATER,
        CONTENDED,
        MADE_A_CONTENTION,
        MADE_THE_SUSPENSION,
        REPAIRS_SUSPENDED,
        sights::CALM,
        sights::RELEASED,
        sights::MUTED,
    ];
    explore_in_ci(
        "1 and 2 vertices, made of something else: in contentions, under the repair limit, with all that holds",
        all,
        &wanted,
    );
}
