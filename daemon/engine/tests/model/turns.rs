//! Several turns in one history: a swap, a crash with its restart, and a pause or a stop, each before, within or after
//! the others.

use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::{
    Configuration, FEATURES, Feature, configurations, graphs,
};
use crate::model::exploration::sights;
use crate::model::{explore, explore_in_ci};

/// Returns a budget for a swap, a crash, a pause and a stop, at most `count` in one history, without failures and
/// events.
const fn turns(count: u8) -> Budget {
    Budget { turns: count, pauses: 1, stops: 1, ..Budget::NONE }
}

/// A swap and a crash, without pauses and stops.
const BOTH: Budget = Budget { pauses: 0, stops: 0, ..turns(2) };

/// Returns the budget from the converged state, with one event.
const fn moved(budget: Budget) -> Budget {
    Budget { settled: true, events: 1, total_events: 1, ..budget }
}

/// Returns a swap and a crash on each graph of `count` vertices, plain and with each feature.
fn swapped_and_crashed(count: u32, budget: Budget) -> Vec<Configuration> {
    let others = FEATURES.iter().filter(|it| !matches!(it, Feature::Swap | Feature::Crash));
    let mut sets = vec![vec![Feature::Swap, Feature::Crash]];
    sets.extend(others.map(|feature| vec![*feature, Feature::Swap, Feature::Crash]));
    let mut all = Vec::new();
    for graph in graphs(count) {
        all.extend(sets.iter().flat_map(|set| configurations(&graph, set, budget)));
    }
    all
}

/// The situations of each turn within each other.
pub(super) const WITHIN: [&str; 9] = [
    sights::CRASH_IN_SWAP,
    sights::CRASH_AFTER_SWAP,
    sights::CRASH_IN_PAUSE,
    sights::CRASH_IN_STOP,
    sights::SWAP_IN_PAUSE,
    sights::SWAP_IN_RESTART,
    sights::PAUSE_IN_SWAP,
    sights::PAUSE_IN_RESTART,
    sights::STOP_IN_SWAP,
];

/// The situations of two turns from the converged state.
const TURNS_WITHIN: [&str; 6] = [
    sights::CRASH_AFTER_SWAP,
    sights::CRASH_IN_PAUSE,
    sights::CRASH_IN_STOP,
    sights::SWAP_IN_PAUSE,
    sights::SWAP_IN_RESTART,
    sights::PAUSE_IN_RESTART,
];

/// The situations of a crash and a swap within each other.
const BOTH_WITHIN: [&str; 3] =
    [sights::CRASH_IN_SWAP, sights::CRASH_AFTER_SWAP, sights::SWAP_IN_RESTART];

/// E-9, E-15, E-17: one vertex with each feature, and three turns.
#[test]
fn model_turns_of_one_vertex() {
    let mut all = swapped_and_crashed(1, turns(3));
    all.extend(swapped_and_crashed(1, Budget { failures: 1, ..turns(2) }));
    all.extend(swapped_and_crashed(1, moved(turns(2))));
    explore_in_ci(
        "1 vertex, each feature: a swap, a crash, and a pause or stop (3 turns); 2 of them with a failure; 2 with an event",
        all,
        &WITHIN,
    );
}

/// E-9, E-17: two vertices side by side with each feature, a swap and a crash.
#[test]
fn model_turns_of_two_vertices() {
    let mut all = swapped_and_crashed(2, BOTH);
    all.retain(|it| !has_edges(it));
    explore_in_ci(
        "2 vertices side by side, each feature, from the load on: a swap and a crash",
        all,
        &BOTH_WITHIN,
    );
}

/// E-9, E-17: one vertex below another with each feature, a swap and a crash.
#[test]
fn model_turns_of_two_vertices_in_order() {
    let mut all = swapped_and_crashed(2, BOTH);
    all.retain(has_edges);
    explore_in_ci("2 vertices in order, the same", all, &BOTH_WITHIN);
}

fn has_edges(configuration: &Configuration) -> bool {
    configuration.shapes.iter().any(|shape| !shape.edges.is_empty())
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_turns_of_one_vertex() {
    let failing = swapped_and_crashed(1, Budget { failures: 1, ..turns(3) });
    explore("1 vertex, 3 turns, 1 failure", failing, &WITHIN);
    explore("1 vertex, 3 turns, 1 event", swapped_and_crashed(1, moved(turns(3))), &WITHIN);
}

/// Two turns from the converged state: only the first turn starts runs.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_turns_of_two_vertices() {
    let budget = Budget { settled: true, ..turns(2) };
    explore("2 vertices, 2 turns of all", swapped_and_crashed(2, budget), &TURNS_WITHIN);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_turns_of_two_vertices_with_an_event() {
    let each = [
        sights::OWING,
        sights::REFRESHED,
        sights::WAITS_FOR_PARENT,
        sights::LIMITED,
        sights::NO_SEMAPHORE,
        sights::NO_SLOT,
        sights::WOULD_CHANGE,
        sights::LOOKED,
        sights::DELAYED,
        sights::FAILED,
        sights::STUCK,
        sights::SUSPENDED,
    ];
    let all = swapped_and_crashed(2, moved(BOTH));
    let wanted = [&BOTH_WITHIN[..], &each].concat();
    explore("2 vertices, a swap and a crash, 1 event", all, &wanted);
}
