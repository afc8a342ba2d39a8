//! The larger exploration, which is no part of CI: one command, whose figures stand in docs/model.md.

use super::budget::Budget;
use super::features::{Configuration, FEATURES, Feature, configurations, graphs};
use super::{EVENT, LOAD, SETTLED, explore, pairs, sights, singles};

/// Two events, two turns, and every way to end.
const THOROUGH: Budget = Budget { events: 2, thorough: true, turns: 2, ..SETTLED };
const TWO_EVENTS: Budget = Budget { events: 2, total_events: 2, ..SETTLED };

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_one_vertex_with_every_feature() {
    explore("1 vertex, 2 events", singles(1, THOROUGH), &[]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_one_vertex_with_pairs_of_features() {
    let budget = Budget { turns: 1, ..THOROUGH };
    explore("1 vertex, pairs, 2 events", pairs(1, budget), &[sights::OWING]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_two_vertices_with_every_feature() {
    explore("2 vertices, 2 events", singles(2, TWO_EVENTS), &[sights::STUCK]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_three_vertices_with_every_feature() {
    explore("3 vertices, load", singles(3, Budget { pauses: 0, stops: 0, ..LOAD }), &[]);
    let budget = Budget { failures: 0, ..TWO_EVENTS };
    explore("3 vertices, 2 events", singles(3, budget), &[sights::WOULD_CHANGE]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_two_vertices_with_pairs_of_features() {
    let budget = Budget { events: 1, total_events: 1, ..SETTLED };
    explore("2 vertices, pairs", pairs(2, budget), &[sights::STUCK, sights::OWING]);
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_three_vertices_with_pairs_of_features() {
    explore("3 vertices, pairs", pairs(3, Budget { turns: 1, failures: 0, ..EVENT }), &[]);
}

/// One pause or stop on three vertices with each two features, no swap and no crash; nobody moves anything.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_three_vertices_with_pairs_of_features_paused() {
    let budget =
        Budget { settled: false, events: 0, total_events: 0, failures: 0, turns: 1, ..SETTLED };
    explore("3 vertices, pairs, paused", pairs_without_turns(3, budget), &[sights::PAUSED]);
}

/// Each two features of the graph: no swap, no crash.
fn pairs_without_turns(count: u32, budget: Budget) -> Vec<Configuration> {
    let is_turn = |it: &Feature| matches!(it, Feature::Swap | Feature::Crash);
    let features: Vec<Feature> = FEATURES.into_iter().filter(|it| !is_turn(it)).collect();
    let mut all = Vec::new();
    for graph in graphs(count) {
        for (at, one) in features.iter().enumerate() {
            for other in &features[at + 1..] {
                all.extend(configurations(&graph, &[*one, *other], budget));
            }
        }
    }
    all
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
