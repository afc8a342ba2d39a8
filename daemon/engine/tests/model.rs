//! A model checker that explores every order of all possible events, through the real `handle`.
//!
//! The state is the engine, the world and the oracle. E-1 to E-20 are its properties. In addition, no path may loop (a
//! livelock) or end early (a deadlock, or a vertex that starves): at the end all is as declared, or the reason is
//! reported. CI explores a small part. The whole of docs/model.md, with printed coverage, is explored by `cargo test -p
//! steadfast-engine --release --test engine explore -- --ignored --nocapture --test-threads 1`.

use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::{
    Configuration, FEATURES, Feature, configurations, graphs,
};
use crate::model::exploration::explorer::{Explorer, Found};
use crate::model::exploration::sights;
use crate::model::exploration::sights::Sights;
use std::time::Instant;

mod configurations;
mod documented;
mod exploration;
mod happening;
mod holding;
mod larger;
mod planning;
mod remaking;
mod semaphores;
mod turns;
mod walks;

/// Explores each configuration, prints the coverage, and checks that all wanted situations were seen.
#[expect(clippy::disallowed_methods, reason = "how long it took is told, and matters to nothing")]
fn explore(name: &str, all: Vec<Configuration>, wanted: &[&'static str]) -> Found {
    let begun = Instant::now();
    let mut found = Found::default();
    for configuration in all {
        found.add(Explorer::new(&configuration).explore());
    }
    report(name, &found, begun);
    must_have_seen(name, &found.sights, wanted);
    found
}

/// Explores configurations in every test run, and compares the coverage with docs/model.md.
fn explore_in_ci(name: &str, all: Vec<Configuration>, wanted: &[&'static str]) {
    documented::compare(name, &explore(name, all, wanted));
}

/// Fails for a wanted situation that never happened: it would prove nothing.
fn must_have_seen(name: &str, seen: &Sights, wanted: &[&'static str]) {
    let missing: Vec<_> = wanted.iter().filter(|what| !seen.contains(**what)).collect();
    assert!(missing.is_empty(), "{name}: never seen: {missing:?}");
}

#[expect(clippy::print_stdout, reason = "what was covered is for whoever started it by hand")]
fn report(name: &str, found: &Found, begun: Instant) {
    let (row, seconds) = (documented::row(name, found), begun.elapsed().as_secs_f32());
    println!("{row} {seconds:.1} s |");
}

/// Returns each graph of `count` vertices, plain and with each feature in each place.
fn singles(count: u32, budget: Budget) -> Vec<Configuration> {
    let each = |graph| {
        let features = FEATURES.iter().map(std::slice::from_ref).chain([[].as_slice()]);
        let all = features.flat_map(|feature| configurations(&graph, feature, budget));
        all.collect::<Vec<_>>()
    };
    graphs(count).into_iter().flat_map(each).collect()
}

/// Returns each graph of `count` vertices with each two features in each pair of places.
fn pairs(count: u32, budget: Budget) -> Vec<Configuration> {
    let mut all = Vec::new();
    for graph in graphs(count) {
        for (at, one) in FEATURES.iter().enumerate() {
            for other in &FEATURES[at + 1..] {
                all.extend(configurations(&graph, &[*one, *other], budget));
            }
        }
    }
    all
}

/// From the load on; one failure, and one pause, stop, swap or crash.
const LOAD: Budget = Budget { failures: 1, turns: 1, pauses: 1, stops: 1, ..Budget::NONE };
/// From the converged state.
const SETTLED: Budget = Budget { settled: true, ..LOAD };
/// One event, and no other external action.
const EVENT: Budget =
    Budget { settled: true, events: 1, total_events: 1, failures: 1, ..Budget::NONE };

/// One and two vertices with each feature, from the load on.
#[test]
fn model_the_load() {
    let all = singles(1, LOAD).into_iter().chain(singles(2, LOAD)).collect();
    let wanted = [
        sights::CONVERGED,
        sights::REFRESHED,
        sights::FAILED,
        sights::DELAYED,
        sights::WAITS_FOR_PARENT,
        sights::NO_SEMAPHORE,
        sights::NO_SLOT,
        sights::WOULD_CHANGE,
        sights::UNKNOWN,
        sights::STUCK,
        sights::SUSPENDED,
        sights::CANCELLED,
        sights::LOOKED,
        sights::DRAINING,
        sights::PAUSED,
        sights::STOPPED,
        sights::SWAP_WAITS,
        sights::SWAPPED,
        sights::AT_ONCE,
        sights::UNSAVED,
    ];
    explore_in_ci("1 and 2 vertices, each feature, from the load on", all, &wanted);
}

/// The replies to watches in any order, each established or absent.
#[test]
fn model_watches() {
    let budget = Budget { watches: true, ..LOAD };
    let calm = Budget { turns: 0, pauses: 0, stops: 0, ..budget };
    let plain = |graph| configurations(&graph, &[], calm);
    let mut all: Vec<Configuration> = graphs(2).into_iter().flat_map(plain).collect();
    all.extend(configurations(&graphs(2)[1], &[Feature::Swap], Budget { failures: 0, ..budget }));
    explore_in_ci(
        "watches answered in any order",
        all,
        &[sights::NO_WATCH, sights::ABSENT, sights::SWAPPED],
    );
}

/// One vertex with each feature and each two, and two events.
#[test]
fn model_one_vertex() {
    let budget = Budget { events: 2, ..SETTLED };
    let one = Budget { events: 1, total_events: 1, ..budget };
    let all = singles(1, budget).into_iter().chain(pairs(1, one));
    explore_in_ci(
        "1 vertex: each feature with 2 events, each two features with 1",
        all.collect(),
        &[sights::LIMITED, sights::STUCK],
    );
}

/// Two vertices with each feature, one event, one failure, and one turn.
#[test]
fn model_two_vertices() {
    let budget = Budget { events: 1, total_events: 1, ..SETTLED };
    let wanted = [sights::LIMITED, sights::WOULD_CHANGE, sights::SWAP_WAITS, sights::STUCK];
    explore_in_ci("2 vertices, each feature", singles(2, budget), &wanted);
}

/// Two vertices with each two features and one event.
#[test]
fn model_pairs_of_features() {
    let wanted = [sights::LIMITED, sights::WOULD_REFRESH, sights::STUCK, sights::OWING];
    let budget = Budget { turns: 1, ..EVENT };
    explore_in_ci("2 vertices, each two features", pairs(2, budget), &wanted);
}

/// Three vertices with each feature and one event, without failures, pauses and stops.
#[test]
fn model_three_vertices() {
    let unseen = [sights::FAILED, sights::STUCK];
    let all = larger::THREE.into_iter().filter(|sight| !unseen.contains(sight));
    let wanted: Vec<_> = all.chain([sights::LIMITED]).collect();
    let budget = Budget { failures: 0, ..EVENT };
    explore_in_ci("3 vertices, each feature, no failures", singles(3, budget), &wanted);
}

/// All 31 shapes of four vertices, plain and notifying, and one event, without failures, pauses and stops.
#[test]
fn model_four_vertices() {
    let features: [&[Feature]; 2] = [&[], &[Feature::Notify]];
    let budget = Budget { failures: 0, ..EVENT };
    let each = |graph| features.map(|features| configurations(&graph, features, budget));
    let all = graphs(4).into_iter().flat_map(each).flatten().collect();
    explore_in_ci(
        "4 vertices, all 31 graphs, plain and notifying, no failures",
        all,
        &[sights::REFRESHED, sights::WAITS_FOR_PARENT],
    );
}

#[test]
fn there_are_so_many_graphs_without_labels() {
    assert_eq!([1, 2, 3, 4].map(|count| graphs(count).len()), [1, 2, 6, 31]);
}
