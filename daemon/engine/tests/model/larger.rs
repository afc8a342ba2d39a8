//! The larger exploration, which CI does not run: one command, with its results in docs/model.md.

use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::{
    Configuration, FEATURES, Feature, configurations, graphs,
};
use crate::model::exploration::sights;
use crate::model::{EVENT, LOAD, SETTLED, explore, pairs, singles};

/// Two events, two turns, and every outcome.
const THOROUGH: Budget = Budget { events: 2, thorough: true, turns: 2, ..SETTLED };
/// Two events, both of one vertex or one of each of two.
const TWO_EVENTS: Budget = Budget { events: 2, total_events: 2, ..SETTLED };
/// Two events of each vertex.
const TWO_EACH: Budget = Budget { events: 2, total_events: u8::MAX, ..EVENT };

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_one_vertex_with_every_feature() {
    let wanted = [
        sights::LIMITED,
        sights::DELAYED,
        sights::FAILED,
        sights::WOULD_CHANGE,
        sights::STUCK,
        sights::SUSPENDED,
        sights::CANCELLED,
        sights::LOOKED,
        sights::DRAINING,
        sights::PAUSED,
        sights::STOPPED,
        sights::SWAPPED,
        sights::CRASH_IN_PAUSE,
        sights::CRASH_IN_STOP,
        sights::SWAP_IN_PAUSE,
        sights::PAUSE_IN_SWAP,
        sights::STOP_IN_SWAP,
        sights::PAUSE_IN_RESTART,
    ];
    explore("1 vertex, 2 events", singles(1, THOROUGH), &wanted);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_one_vertex_with_pairs_of_features() {
    let budget = Budget { turns: 1, ..THOROUGH };
    explore("1 vertex, pairs, 2 events", pairs(1, budget), &[sights::LIMITED, sights::STUCK]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_two_vertices_with_every_feature() {
    explore("2 vertices, 2 events", singles(2, TWO_EVENTS), &[sights::STUCK]);
}

/// Two events of each of two vertices, and the turn of the feature, if any: a swap or a crash. Nothing fails.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_two_events_of_each_of_two_vertices() {
    let mut all = singles(2, Budget { turns: 1, failures: 0, ..TWO_EACH });
    // Retries need failures, so configurations with failures are dropped.
    all.retain(|it| it.budget.failures == 0);
    explore("2 vertices, 2 events each", all, &[sights::REFRESHED, sights::SWAPPED]);
}

/// Two events of each of two vertices, with one failure, or with one pause or stop.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_two_events_of_each_of_two_vertices_that_fail_or_rest() {
    let plain = |budget| {
        let sets: [&[Feature]; 2] = [&[], &[Feature::Notify]];
        let each = move |graph| sets.map(|set| configurations(&graph, set, budget));
        graphs(2).into_iter().flat_map(each).flatten().collect::<Vec<_>>()
    };
    explore("2 vertices, 2 events each, 1 failure", plain(TWO_EACH), &[sights::FAILED]);
    let turned = Budget { turns: 1, pauses: 1, stops: 1, failures: 0, ..TWO_EACH };
    let wanted = [sights::PAUSED, sights::DRAINING, sights::STOPPED];
    explore("2 vertices, 2 events each, a pause or stop", plain(turned), &wanted);
}

/// Two events of each of three vertices with one slot for all, without failures, swaps, crashes and pauses.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_two_events_of_each_of_three_vertices() {
    let budget = Budget { failures: 0, ..TWO_EACH };
    let sets: [&[Feature]; 2] = [&[Feature::Slot], &[Feature::Slot, Feature::Notify]];
    let each = |graph| sets.map(|set| configurations(&graph, set, budget));
    let all = graphs(3).into_iter().flat_map(each).flatten().collect();
    explore("3 vertices, 2 events each", all, &[sights::REFRESHED, sights::NO_SLOT]);
}

/// The situations of waiting vertices if several run at once.
const QUEUES: [&str; 2] = [sights::NO_SEMAPHORE, sights::NO_SLOT];
/// The situations that each feature shows on several vertices, each in its place.
pub(super) const THREE: [&str; 10] = [
    sights::CONVERGED,
    sights::REFRESHED,
    sights::FAILED,
    sights::WAITS_FOR_PARENT,
    sights::WOULD_CHANGE,
    sights::LOOKED,
    sights::STUCK,
    sights::SWAP_WAITS,
    sights::SWAPPED,
    sights::AT_ONCE,
];

fn without_turns(mut all: Vec<Configuration>) -> Vec<Configuration> {
    all.retain(|it| it.budget.swaps == 0 && it.budget.crashes == 0);
    all
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_three_vertices_with_every_feature() {
    let loaded = singles(3, Budget { pauses: 0, stops: 0, ..LOAD });
    explore("3 vertices, load", loaded, &[&THREE[..], &QUEUES].concat());
    let budget = Budget { failures: 0, ..TWO_EVENTS };
    explore("3 vertices, 2 events", singles(3, budget), &[sights::WOULD_CHANGE]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_two_vertices_with_pairs_of_features() {
    let budget = Budget { events: 1, total_events: 1, ..SETTLED };
    explore("2 vertices, pairs, turns", pairs(2, budget), &[sights::STUCK, sights::OWING]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_three_vertices_with_pairs_of_features() {
    let all = pairs(3, Budget { turns: 1, failures: 0, ..EVENT });
    let together = [sights::LIMITED, sights::WOULD_REFRESH];
    explore("3 vertices, pairs", all, &[&THREE[..], &QUEUES, &together].concat());
}

/// One pause on three vertices with each two features, from the converged state, with one event.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_three_vertices_with_pairs_of_features_paused() {
    let budget = Budget { turns: 1, pauses: 1, failures: 0, ..EVENT };
    let all = without_turns(pairs(3, budget));
    explore("3 vertices, pairs, paused", all, &[sights::PAUSED]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_four_vertices_with_each_feature() {
    let budget = Budget { events: 1, total_events: 1, failures: 0, ..SETTLED };
    let mut all = Vec::new();
    for graph in graphs(4) {
        all.extend(configurations(&graph, &[], budget));
        for feature in FEATURES {
            all.extend(configurations(&graph, &[feature], budget));
        }
    }
    explore("4 vertices, each feature", all, &THREE);
}
