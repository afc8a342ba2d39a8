//! The larger exploration, which is no part of CI: one command, whose figures stand in docs/model.md.

use super::budget::Budget;
use super::features::{FEATURES, configurations, graphs};
use super::{EVENT, LOAD, SETTLED, explore, pairs, sights, singles};

/// Two events a vertex on up to two vertices, one of each turn, and every way to end.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_small_graphs_with_every_feature() {
    let thorough = Budget { thorough: true, turns: 2, ..SETTLED };
    explore("1 vertex, 2 events", singles(1, Budget { events: 2, ..thorough }), &[]);
    explore("1 vertex, pairs", pairs(1, Budget { events: 2, ..thorough }), &[sights::OWING]);
    let two = Budget { events: 2, total_events: 2, ..SETTLED };
    explore("2 vertices, 2 events", singles(2, two), &[sights::STUCK]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_three_vertices_with_every_feature() {
    explore("3 vertices, load", singles(3, Budget { pauses: 0, stops: 0, ..LOAD }), &[]);
    let budget = Budget { events: 2, total_events: 2, failures: 0, ..SETTLED };
    explore("3 vertices, 2 events", singles(3, budget), &[sights::WOULD_CHANGE]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_pairs_of_features() {
    let budget = Budget { events: 1, total_events: 1, ..SETTLED };
    explore("2 vertices, pairs", pairs(2, budget), &[sights::STUCK, sights::OWING]);
    explore("3 vertices, pairs", pairs(3, Budget { turns: 1, failures: 0, ..EVENT }), &[]);
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
    explore("4 vertices, each feature", all, &[sights::WOULD_CHANGE]);
}
