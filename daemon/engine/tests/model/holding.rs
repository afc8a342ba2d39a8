//! Contention, the repair limit, windows, `realize`, groups and values: each alone, with each other, and with every
//! other feature (E-4, E-17, E-19, E-20).

use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::{
    Configuration, FEATURES, Feature, HOLDING, configurations, graphs,
};
use crate::model::exploration::sights;
use crate::model::{EVENT, SETTLED, explore, explore_in_ci};
use steadfast_engine::{Meta, VertexSpec};

/// Returns each feature alone on each graph of `count` vertices.
fn alone(features: &[Feature], count: u32, budget: Budget) -> Vec<Configuration> {
    let all = graphs(count);
    let each = |graph| features.iter().map(move |feature| (graph, std::slice::from_ref(feature)));
    let each = all.iter().flat_map(each);
    each.flat_map(|(graph, feature)| configurations(graph, feature, budget)).collect()
}

/// Returns each feature with every later one, and with every one of the others, on each graph of `count` vertices.
fn paired(features: &[Feature], count: u32, budget: Budget) -> Vec<Configuration> {
    let mut all = Vec::new();
    for graph in graphs(count) {
        for one in features {
            let later = HOLDING.iter().skip_while(|other| *other != one).skip(1);
            for other in FEATURES.iter().chain(later) {
                all.extend(configurations(&graph, &[*one, *other], budget));
            }
        }
    }
    all
}

const CONTENTIONS: [Feature; 4] = [HOLDING[0], HOLDING[1], HOLDING[2], HOLDING[3]];

/// One event, one failure, and one turn.
const ONE: Budget = Budget { events: 1, total_events: 1, ..SETTLED };
/// One event and one turn without failures.
const CALM: Budget = Budget { turns: 1, ..EVENT };

/// One event starts the contention, one extends its delay, and one changes a neighbour.
const THREE: Budget = Budget { events: 2, total_events: 3, failures: 0, ..CALM };
/// No events.
const QUIET: Budget = Budget { events: 0, total_events: 0, ..CALM };

/// Nothing has converged yet, and nothing fails.
const UNSETTLED: Budget = Budget { settled: false, failures: 0, ..QUIET };

/// E-20: contention and the repair limit on one and two vertices.
#[test]
fn model_contention() {
    let mut all = alone(&CONTENTIONS, 1, ONE);
    all.extend(alone(&CONTENTIONS, 1, Budget { events: 3, total_events: 3, ..EVENT }));
    all.extend(alone(&CONTENTIONS, 2, CALM));
    all.extend(alone(&CONTENTIONS[..1], 2, THREE));
    let wanted = [
        sights::CONTENDED,
        sights::CONTENDED_AT_REST,
        sights::CALM,
        sights::REPAIRED,
        sights::MUTED,
        sights::PASSED,
        sights::REPAIRS_SUSPENDED,
        sights::RELEASED,
    ];
    explore_in_ci("contentions and the repair limit, 1 and 2 vertices", all, &wanted);
}

/// E-20, E-17, E-4: windows, `realize`, groups and values on one and two vertices.
#[test]
fn model_windows_and_realize() {
    let rest = &HOLDING[4..];
    let mut all = alone(rest, 1, ONE);
    all.extend(alone(rest, 2, CALM));
    all.extend(alone(&[Feature::Realize], 3, QUIET));
    // The ancestors have never converged, either.
    all.extend(alone(&[Feature::Realize], 3, UNSETTLED));
    let wanted = [
        sights::SHUT,
        sights::LET_IN,
        sights::CUT,
        sights::TO_REALIZE,
        sights::REALIZED,
        sights::UNREALIZED,
        sights::RECEIVED,
        sights::SWAPPED,
    ];
    explore_in_ci("windows, realize, groups, values, 1 to 3 vertices", all, &wanted);
}

/// Returns these sets of features on each graph of `count` vertices.
fn together(sets: &[&[Feature]], count: u32, budget: Budget) -> Vec<Configuration> {
    let all = graphs(count);
    let each = |graph| sets.iter().flat_map(move |set| configurations(graph, set, budget));
    all.iter().flat_map(each).collect()
}

/// E-19: two of three vertices and all three are grouped, and separated; without events also with a pause, a stop and a
/// crash.
#[test]
fn model_groups() {
    let sets: [&[Feature]; 3] =
        [&[Feature::Group], &[Feature::Group, Feature::Notify], &[Feature::Group, Feature::Once]];
    let mut all = together(&sets, 3, CALM);
    let crashed: [&[Feature]; 1] = [&[Feature::Group, Feature::Notify, Feature::Crash]];
    all.extend(together(&crashed, 3, Budget { turns: 2, pauses: 1, stops: 1, ..QUIET }));
    let wanted = [
        sights::SWAPPED,
        sights::REFRESHED,
        sights::SWAP_WAITS,
        sights::SWAP_IN_PAUSE,
        sights::CRASH_AFTER_SWAP,
    ];
    explore_in_ci(
        "groups of three: 2 of 3 and 3 of 3, alone, notifying, beside a deed; notifying with two of a swap, a crash, a pause, a stop",
        all,
        &wanted,
    );
}

/// E-2, E-12, E-13: with a rare poll no vertex may need its tick to continue.
#[test]
fn model_what_a_poll_could_hide() {
    let sets: [&[Feature]; 6] = [
        &[Feature::Rare, Feature::Limit],
        &[Feature::Rare, Feature::Retry],
        &[Feature::Rare, Feature::Timeout],
        &[Feature::Rare, Feature::RepairLimiter],
        &[Feature::Rare, HOLDING[0]],
        &[Feature::Rare, Feature::Window],
    ];
    let all = together(&sets, 2, Budget { turns: 0, pauses: 0, stops: 0, ..ONE });
    let wanted = [
        sights::LIMITED,
        sights::DELAYED,
        sights::FAILED,
        sights::REPAIRS_SUSPENDED,
        sights::RELEASED,
        sights::CONTENDED,
        sights::REPAIRED,
    ];
    explore_in_ci(
        "a poll far away, with limit, retry, deadline, repair limit, contention, window",
        all,
        &wanted,
    );
}

/// E-19: groups of three with each feature; nothing fails.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_groups_of_three_with_every_feature() {
    let groups = paired(&[Feature::Group], 3, Budget { failures: 0, ..CALM });
    explore("3 vertices, Group with each", groups, &[sights::SWAPPED]);
}

/// E-19: groups of three that notify, an event and a crash; nothing fails.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_groups_of_three_with_a_crash() {
    let sets: [&[Feature]; 1] = [&[Feature::Group, Feature::Notify, Feature::Crash]];
    let crashed = together(&sets, 3, Budget { turns: 2, failures: 0, ..CALM });
    explore("3 vertices, Group, a crash, 1 event", crashed, &[sights::CRASH_IN_SWAP]);
}

/// E-20: each with every other feature on one vertex.
#[test]
fn model_what_holds_with_every_feature() {
    let wanted = [sights::CALM, sights::RELEASED, sights::LET_IN];
    explore_in_ci(
        "1 vertex, each of what holds with each feature",
        paired(&HOLDING, 1, CALM),
        &wanted,
    );
}

/// Returns the situations that must be seen if a feature is combined with each of the others.
fn shown_with_each(feature: Feature) -> Vec<&'static str> {
    let shown: &[&[&str]] = match feature {
        Feature::Contention(_) => &[
            &sights::QUEUES,
            &[sights::REFRESHED],
            &sights::CONTENTIONS,
            &sights::REPAIR_LIMIT,
            &sights::WINDOW,
            &sights::REALIZE,
        ],
        Feature::RepairLimiter => &[
            &sights::QUEUES,
            &[sights::REFRESHED],
            &sights::REPAIR_LIMIT,
            &sights::WINDOW,
            &sights::REALIZE,
        ],
        Feature::Window => &[&[sights::REFRESHED], &sights::WINDOW, &sights::REALIZE],
        Feature::Realize => {
            &[&sights::QUEUES, &[sights::REFRESHED, sights::UNKNOWN], &sights::REALIZE]
        }
        Feature::Value => &[&sights::QUEUES, &[sights::REFRESHED, sights::UNKNOWN]],
        _ => &[&sights::QUEUES],
    };
    [&sights::WITH_EACH[..], &shown.concat()].concat()
}

/// E-20: contention with every other feature on two vertices.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_contention_with_every_feature() {
    let three = Budget { failures: 1, ..THREE };
    explore("2 vertices, contentions, 3 events", alone(&CONTENTIONS, 2, three), &[sights::PASSED]);
    let wanted = shown_with_each(CONTENTIONS[0]);
    explore("2 vertices, contentions with each", paired(&CONTENTIONS[..1], 2, CALM), &wanted);
}

/// E-20: the other behaviours in a contention, each of both vertices, and the repair limit: nothing fails.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_answers_to_contention_with_every_feature() {
    let budget = Budget { failures: 0, ..CALM };
    for feature in &CONTENTIONS[1..] {
        let answers = |it: &VertexSpec| !matches!(feature, Feature::Contention(answer) if it.meta.on_conflict != *answer);
        let mut all = paired(std::slice::from_ref(feature), 2, budget);
        all.retain(|it| it.shapes.iter().any(|shape| shape.vertices.iter().all(answers)));
        let name = format!("2 vertices, {feature:?} with each, over all");
        explore(&name, all, &shown_with_each(*feature));
    }
}

/// E-20, E-17, E-4: windows, `realize`, groups and values with every other feature on two vertices.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_windows_and_realize_with_every_feature() {
    for feature in &HOLDING[4..] {
        let name = format!("2 vertices, {feature:?} with each");
        let all = paired(std::slice::from_ref(feature), 2, CALM);
        explore(&name, all, &shown_with_each(*feature));
    }
}

/// E-17: one of three vertices with `realize`, with each feature over all: no events and no failures.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_realize_of_three_with_every_feature() {
    let mut realize = paired(&[Feature::Realize], 3, Budget { failures: 0, ..QUIET });
    let is_of_one = |vertices: &[VertexSpec]| {
        let others = |it: &&VertexSpec| Meta { realize: false, ..Meta::clone(&it.meta) };
        let mut all = vertices.iter().map(|it| (others(&it), it.traits));
        let first = all.next();
        let marked = vertices.iter().filter(|it| it.meta.realize).count();
        marked == 1 && all.all(|it| Some(it) == first)
    };
    realize.retain(|it| it.shapes.first().is_some_and(|shape| is_of_one(&shape.vertices)));
    explore("3 vertices, Realize with each", realize, &[sights::REALIZED]);
}
